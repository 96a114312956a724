//! Where files have data and where they have holes.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::context::Context;
use crate::files::{FileIndex, Files, Opener};
use crate::stats::Stage;
use crate::sync::map_in_parallel;
use crate::tree::{Tree, count_of};

/// A range of a file that holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Bytes from the start of the file.
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// The data of files that have holes; files without holes are not in it.
pub(crate) type SparseFiles = BTreeMap<FileIndex, Box<[Extent]>>;

/// Asks the file system about all files that have less allocated than their size needs.
///
/// A file that cannot be opened is not reported here: whoever reads it next will.
pub(crate) fn find(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    root: BorrowedFd<'_>,
) -> SparseFiles {
    if !context.options.sparse_files {
        return SparseFiles::new();
    }
    if context.options.hollow {
        let all = 0..count_of(files.list.len());
        return all
            .filter(|index| files.file(*index).size > 0)
            .map(|index| (index, Box::default()))
            .collect();
    }
    let candidates: Vec<FileIndex> = (0..count_of(files.list.len()))
        .filter(|index| files.file(*index).maybe_sparse)
        .collect();
    let start = || {
        (
            Opener::new(context, tree, files, root),
            context.stats.enter(Stage::Sparse),
        )
    };
    let extents = map_in_parallel(context, &candidates, start, |(opener, thread), index| {
        let file = files.file(*index);
        thread.did(1, 0);
        let extents = data_extents(opener, file).ok()?;
        let is_whole = extents.iter().map(|extent| extent.len).sum::<u64>() == file.size;
        (!is_whole).then_some((*index, extents))
    });
    extents.into_iter().flatten().collect()
}

/// Returns how many bytes of all files are holes.
pub(crate) fn hole_bytes(sparse: &SparseFiles, files: &Files) -> u64 {
    let files_with_holes = sparse.keys();
    let holes =
        files_with_holes.map(|file| files.file(*file).size - data_len(sparse, files, *file));
    holes.sum()
}

/// Returns how many bytes of a file are data.
pub(crate) fn data_len(sparse: &SparseFiles, files: &Files, file: FileIndex) -> u64 {
    match sparse.get(&file) {
        Some(extents) => extents.iter().map(|extent| extent.len).sum(),
        None => files.file(file).size,
    }
}

fn data_extents(opener: &mut Opener<'_>, file: &crate::files::File) -> io::Result<Box<[Extent]>> {
    let open = opener.open(file)?;
    let mut extents = Vec::new();
    let mut at = 0;
    while at < file.size {
        let start = match seek(&open.fd, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Only a hole is left.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = seek(&open.fd, SeekFrom::Hole(start))?.min(file.size);
        if end <= start {
            break;
        }
        extents.push(Extent {
            offset: start,
            len: end - start,
        });
        at = end;
    }
    Ok(extents.into())
}
