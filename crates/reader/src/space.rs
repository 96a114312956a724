//! What files take in the image.
//!
//! A block is compressed as a whole and may serve many files. Its stored bytes are shared out among all that refers to it,
//! in proportion to the bytes referred to, so that the shares of all files add up to the blocks.

use durin_format::section::SectionType;
use durin_format::{InodeNum, Result};

use crate::chunks::Place;
use crate::image::Image;

/// The share of the stored bytes that each content has, for one of the inodes that have it.
#[derive(Clone, Debug)]
pub struct StoredSizes {
    by_content: Vec<f64>,
}

impl Image {
    /// Works out what each file takes in the image; takes the time of one look at every chunk.
    ///
    /// # Errors
    /// `Corrupt` if a value in the metadata is wrong.
    pub fn stored_sizes(&self) -> Result<StoredSizes> {
        self.metadata().check_chunk_order()?;
        let partition = &self.metadata().partition;
        // By content: any inode that has it, and the number of those.
        let mut users: Vec<(Option<InodeNum>, u32)> = Vec::new();
        for inode in partition.first_regular..partition.first_device {
            let inode = InodeNum(inode);
            let content = to_usize(self.content_number(inode)?);
            if users.len() <= content {
                users.resize(content + 1, (None, 0));
            }
            if let Some((any, count)) = users.get_mut(content) {
                any.get_or_insert(inode);
                *count += 1;
            }
        }
        let rates = self.stored_rates(&users)?;
        let mut by_content = Vec::with_capacity(users.len());
        for (inode, _) in users {
            let mut stored = 0.0;
            if let Some(inode) = inode {
                self.each_piece(inode, |block, len| {
                    stored += len * rates.get(block).copied().unwrap_or(0.0);
                })?;
            }
            by_content.push(stored);
        }
        Ok(StoredSizes { by_content })
    }

    /// By block: stored bytes for each byte that something refers to.
    fn stored_rates(&self, users: &[(Option<InodeNum>, u32)]) -> Result<Vec<f64>> {
        let mut referred = vec![0.0; to_usize(self.block_count())];
        for (inode, count) in users {
            let Some(inode) = *inode else { continue };
            self.each_piece(inode, |block, len| {
                if let Some(referred) = referred.get_mut(block) {
                    *referred += len * f64::from(*count);
                }
            })?;
        }
        let blocks = self
            .sections()
            .iter()
            .filter(|section| section.section_type == SectionType::Block);
        let rates = blocks.zip(&referred).map(|(section, referred)| {
            if *referred > 0.0 {
                to_f64(section.payload_len) / referred
            } else {
                0.0
            }
        });
        Ok(rates.collect())
    }

    /// Calls `piece` with block and length of each chunk that is no hole.
    fn each_piece(&self, inode: InodeNum, mut piece: impl FnMut(usize, f64)) -> Result<()> {
        for extent in self.chunks(inode)? {
            let extent = extent?;
            if let Place::Data { block, .. } = extent.place {
                piece(to_usize(block.0), to_f64(extent.len));
            }
        }
        Ok(())
    }
}

impl StoredSizes {
    /// Returns the stored bytes that are due to a content, see [`Image::content_number`], for one of its inodes.
    #[must_use]
    pub fn of(&self, content: u32) -> f64 {
        self.by_content
            .get(to_usize(content))
            .copied()
            .unwrap_or(0.0)
    }
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "shares of sizes, shown with four digits"
)]
const fn to_f64(number: u64) -> f64 {
    number as f64
}
