//! Names of a directory in the order of their inodes.
//!
//! A file system lists names in the order of their hashes, or in any other, but keeps inodes by number: asking for
//! attributes in the order of numbers turns random reads into a pass over the table, which is what a rotating disk or
//! a server far away needs.

use std::ffi::CStr;

/// Names that are sorted at once: a directory of any size takes some mebibytes, and so many inodes fill whole blocks.
pub(super) const BATCH_MAX: usize = 1 << 14;

/// Names that nobody has looked at yet.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The number of the inode, and where in `names` the name begins.
    entries: Vec<(u64, usize)>,
    /// Each with the NUL that ends it.
    names: Vec<u8>,
}

impl Batch {
    pub(super) fn push(&mut self, inode: u64, name: &CStr) {
        self.entries.push((inode, self.names.len()));
        self.names.extend_from_slice(name.to_bytes_with_nul());
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= BATCH_MAX
    }

    /// Calls `visit` for each name, in the order of inodes, until it says false, and forgets them.
    pub(super) fn take(&mut self, mut visit: impl FnMut(&CStr) -> bool) {
        self.entries.sort_unstable();
        for (_, start) in &self.entries {
            let name = CStr::from_bytes_until_nul(&self.names[*start..]);
            if !name.is_ok_and(&mut visit) {
                break;
            }
        }
        self.entries.clear();
        self.names.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_by_inode() {
        let mut batch = Batch::default();
        for _ in 0..2 {
            for (inode, name) in [(30, c"a"), (10, c"bb"), (20, c"ccc")] {
                batch.push(inode, name);
            }
            let mut seen = Vec::new();
            batch.take(|name| {
                seen.push(name.to_owned());
                seen.len() < 3
            });
            assert_eq!(seen, [c"bb", c"ccc", c"a"].map(CStr::to_owned));
        }
        assert!(!batch.is_full());
    }
}
