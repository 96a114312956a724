//! Directories by index, and symlink targets.

use durin_format::{InodeNum, Result};

use crate::image::{EntryRef, Image};
use crate::metadata::Rank;
use crate::perfmon::{Operation, Perfmon};

impl Image {
    /// Returns the number of entries of a directory; `.` and `..` are not stored.
    ///
    /// # Errors
    /// `NotFound` or `InvalidInput` if `dir` is no directory, `Corrupt` if a value in the metadata is wrong.
    pub fn dir_len(&self, dir: InodeNum) -> Result<u32> {
        let range = self.metadata().entry_range(dir)?;
        Ok(range.end - range.start)
    }

    /// Puts the name of entry `index` (from 0, in stored order) of a directory into `name` and returns the entry.
    ///
    /// # Errors
    /// As [`Self::dir_len`], `NotFound` if there is no such entry, and `Corrupt` if the name cannot be one: empty, `.`,
    /// `..`, or with a `/` or NUL.
    pub fn dir_entry(&self, dir: InodeNum, index: u32, name: &mut Vec<u8>) -> Result<EntryRef> {
        let range = self.metadata().entry_range(dir)?;
        let entry_index = range
            .start
            .checked_add(index)
            .filter(|entry| range.contains(entry))
            .ok_or_else(|| {
                durin_format::Error::not_found(format!("directory {dir} has no entry {index}"))
            })?;
        self.entry(entry_index, name)
    }

    /// Returns the entries of a directory in stored order, which is sorted by name. What cannot be an entry is an error
    /// in its place.
    ///
    /// # Errors
    /// As [`Self::dir_len`].
    pub fn dir(
        &self,
        dir: InodeNum,
    ) -> Result<impl ExactSizeIterator<Item = Result<(Vec<u8>, EntryRef)>> + '_> {
        let range = self.metadata().entry_range(dir)?;
        let range = usize_range(range);
        Ok(range.map(move |entry_index| {
            let mut name = Vec::new();
            #[expect(clippy::cast_possible_truncation, reason = "made from a range of u32")]
            let entry = self.entry(entry_index as u32, &mut name)?;
            Ok((name, entry))
        }))
    }

    /// Returns the directory that holds directory `dir`; the root holds itself.
    ///
    /// # Errors
    /// As [`Self::dir_len`].
    pub fn parent(&self, dir: InodeNum) -> Result<InodeNum> {
        self.metadata().parent_of(dir)
    }

    /// Returns the target of a symlink, with the separators of the system that built the image turned into `/`.
    ///
    /// # Errors
    /// `NotFound` or `InvalidInput` if `inode` is no symlink, `Corrupt` if the target cannot be one.
    pub fn read_link(&self, inode: InodeNum) -> Result<Vec<u8>> {
        let _timer = Perfmon::start(self.perfmon(), Operation::Readlink);
        let mut target = self.read_link_raw(inode)?;
        let separator = self.metadata().tables.preferred_path_separator;
        if let Some(separator) = separator.and_then(|code| u8::try_from(code).ok())
            && separator != b'/'
            && separator.is_ascii()
        {
            for byte in &mut target {
                if *byte == separator {
                    *byte = b'/';
                }
            }
        }
        if target.is_empty() || target.contains(&0) {
            return Err(self
                .metadata()
                .corrupt(format!("inode {inode}: symlink target empty or with a NUL")));
        }
        Ok(target)
    }

    /// Returns the target of a symlink as it is stored.
    ///
    /// # Errors
    /// As [`Self::read_link`].
    pub fn read_link_raw(&self, inode: InodeNum) -> Result<Vec<u8>> {
        let metadata = self.metadata();
        let index = self.target_index(inode)?;
        let mut buf = Vec::new();
        let target = metadata
            .tables
            .symlinks
            .get(metadata.data(), index, &mut buf)
            .map_err(|error| metadata.place(error))?;
        Ok(target.to_vec())
    }

    /// Bytes of a symlink target.
    pub(crate) fn target_len(&self, inode: InodeNum) -> Result<u64> {
        let metadata = self.metadata();
        let index = self.target_index(inode)?;
        metadata
            .tables
            .symlinks
            .decoded_len(metadata.data(), index)
            .map_err(|error| metadata.place(error))
    }

    fn target_index(&self, inode: InodeNum) -> Result<u64> {
        let metadata = self.metadata();
        if metadata.partition.rank(inode) != Some(Rank::Symlink) {
            return Err(metadata.not_a(inode, "symlink"));
        }
        let index = inode.0 - metadata.partition.first_symlink;
        metadata.value(
            &metadata.tables.symlink_table,
            index.into(),
            "symlink_table",
        )
    }

    /// Entry `entry_index` of the whole image, with its checked name.
    fn entry(&self, entry_index: u32, name: &mut Vec<u8>) -> Result<EntryRef> {
        let inode = self.metadata().inode_of_entry(entry_index)?;
        let mut buf = Vec::new();
        let stored = self.name(entry_index, &mut buf)?;
        if !is_valid_name(stored) {
            let shown = stored.escape_ascii().to_string();
            return Err(self.metadata().corrupt(format!(
                "directory entry {entry_index}: \"{shown}\" cannot be a name"
            )));
        }
        name.clear();
        name.extend_from_slice(stored);
        Ok(EntryRef { inode, entry_index })
    }

    /// The stored name of an entry, not checked.
    pub(crate) fn name<'a>(&'a self, entry_index: u32, buf: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let metadata = self.metadata();
        let index = metadata.name_index(entry_index)?;
        metadata
            .tables
            .names
            .get(metadata.data(), index.into(), buf)
            .map_err(|error| metadata.place(error))
    }
}

/// Whether an entry can have this name: anything else could lead out of the directory or cannot be asked for.
pub(crate) fn is_valid_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "usize has 32 bits at least, and the size is needed for an exact iterator"
)]
fn usize_range(range: std::ops::Range<u32>) -> std::ops::Range<usize> {
    u64::from(range.start) as usize..u64::from(range.end) as usize
}
