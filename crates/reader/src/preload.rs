//! Filling the cache before anybody asks: `preload_category` and `preload_all`.
//!
//! Threads take the blocks in their order and stop when the cache is full, so that what was preloaded first stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Builder;

use durin_format::{BlockIndex, Error, Result};

use crate::image::Image;

/// Which blocks are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreloadBlocks {
    /// All of them, as far as they fit.
    All,
    /// Those of one category.
    Category(String),
}

/// A preload under way; it ends with the block at hand when this is dropped.
#[derive(Debug)]
pub struct Preload {
    is_over: Arc<AtomicBool>,
}

impl Image {
    /// Returns the blocks of a category in their order.
    ///
    /// # Errors
    /// `NotFound` if the image has no such category, with the names of those that it has.
    pub fn blocks_of_category(&self, name: &str) -> Result<Vec<BlockIndex>> {
        let (tables, data) = self.tables();
        let names = tables.category_names.as_deref().unwrap_or_default();
        let number = names.iter().position(|known| known == name);
        let number = number.and_then(|number| u64::try_from(number).ok());
        let (Some(number), Some(categories)) = (number, tables.block_categories) else {
            let known = if names.is_empty() {
                "it has none".to_owned()
            } else {
                format!("it has {}", names.join(", "))
            };
            return Err(Error::not_found(format!(
                "no category '{name}' in the image: {known}"
            )));
        };
        let is_of_category = |block: &u32| categories.get(data, u64::from(*block)) == Some(number);
        let blocks = (0..self.block_count()).filter(is_of_category);
        Ok(blocks.map(BlockIndex).collect())
    }

    /// Decodes blocks in the background, with so many threads, until they are done or the cache is full.
    ///
    /// # Errors
    /// Those of [`Self::blocks_of_category`], `Io` if the system gives no thread.
    pub fn preload(self: &Arc<Self>, blocks: &PreloadBlocks, threads: usize) -> Result<Preload> {
        let blocks = match blocks {
            PreloadBlocks::All => (0..self.block_count()).map(BlockIndex).collect(),
            PreloadBlocks::Category(name) => self.blocks_of_category(name)?,
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let work = Arc::new((blocks, AtomicUsize::new(0)));
        for number in 0..threads.max(1) {
            let (image, work, is_over) =
                (Arc::clone(self), Arc::clone(&work), Arc::clone(&is_over));
            let started = Builder::new()
                .name(format!("preload-{number}"))
                .spawn(move || {
                    let next = || work.0.get(work.1.fetch_add(1, Ordering::Relaxed)).copied();
                    while let Some(block) = next() {
                        if is_over.load(Ordering::Relaxed) || !image.cache().preload(block) {
                            break;
                        }
                    }
                });
            if let Err(error) = started {
                if number == 0 {
                    return Err(Error::io("cannot start a thread that preloads", error));
                }
                break;
            }
        }
        Ok(Preload { is_over })
    }
}

impl Drop for Preload {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
