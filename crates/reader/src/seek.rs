//! Finding data and holes in sparse files.

use durin_format::{InodeNum, Result};

use crate::chunks::Place;
use crate::image::Image;

impl Image {
    /// Returns the first offset from `offset` on that is not in a hole; `None` if no data follows or `offset` is not
    /// inside the file.
    ///
    /// # Errors
    /// `NotFound` or `InvalidInput` if `inode` is no regular file, `Corrupt` if a value in the metadata is wrong.
    pub fn seek_data(&self, inode: InodeNum, offset: u64) -> Result<Option<u64>> {
        let content = self.content_number(inode)?;
        for extent in self.extents_from(content, offset)? {
            let extent = extent?;
            if extent.offset + extent.len > offset && extent.place != Place::Hole {
                return Ok(Some(extent.offset.max(offset)));
            }
        }
        Ok(None)
    }

    /// Returns the first offset from `offset` on that is in a hole, the end of the file being one;
    /// `None` if `offset` is not inside the file.
    ///
    /// # Errors
    /// As [`Self::seek_data`].
    pub fn seek_hole(&self, inode: InodeNum, offset: u64) -> Result<Option<u64>> {
        let content = self.content_number(inode)?;
        let mut end = 0;
        for extent in self.extents_from(content, offset)? {
            let extent = extent?;
            end = extent.offset + extent.len;
            if end > offset && extent.place == Place::Hole {
                return Ok(Some(extent.offset.max(offset)));
            }
        }
        Ok((offset < end).then_some(end))
    }

    /// Returns where the hole ends that `offset` is in, at data or the end of the file; `None` if it is in none.
    ///
    /// # Errors
    /// As [`Self::seek_data`].
    pub fn hole_end(&self, inode: InodeNum, offset: u64) -> Result<Option<u64>> {
        let content = self.content_number(inode)?;
        let mut end = None;
        for extent in self.extents_from(content, offset)? {
            let extent = extent?;
            let extent_end = extent.offset + extent.len;
            if extent_end <= offset {
                continue;
            }
            if extent.place != Place::Hole {
                break;
            }
            end = Some(extent_end);
        }
        Ok(end)
    }
}
