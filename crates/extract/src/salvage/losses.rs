//! Which files need what is lost.

use durin_format::{InodeNum, Result};
use durin_reader::{Image, Place};

/// A range of a file that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostRange {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// The block that held them.
    pub block: u32,
}

/// Which blocks cannot be read.
pub(super) fn bad_blocks(image: &Image) -> Vec<bool> {
    let cache = image.cache();
    (0..image.block_count())
        .map(durin_format::BlockIndex)
        .map(|block| {
            if image.version().has_v1_sections() {
                // Only decoding tells.
                return cache.decode(block).is_err();
            }
            cache.verify(block).is_err()
        })
        .collect()
}

/// The lost ranges of a file, those of one block joined.
///
/// # Errors
/// `Corrupt` if the metadata of the file are damaged, too.
pub(super) fn of_file(image: &Image, inode: InodeNum, bad: &[bool]) -> Result<Vec<LostRange>> {
    let mut lost: Vec<LostRange> = Vec::new();
    for extent in image.chunks(inode)? {
        let extent = extent?;
        let Place::Data { block, .. } = extent.place else {
            continue;
        };
        // One behind the end of the image is as lost as one that is damaged.
        if !bad.get(block.0 as usize).copied().unwrap_or(true) {
            continue;
        }
        match lost.last_mut() {
            Some(last) if last.block == block.0 && last.offset + last.len == extent.offset => {
                last.len += extent.len;
            }
            _ => lost.push(LostRange {
                offset: extent.offset,
                len: extent.len,
                block: block.0,
            }),
        }
    }
    Ok(lost)
}
