//! Finding files with equal contents.
//!
//! In: all files. Out: the distinct contents that are not empty, each with the files that have it, in the order of the
//! first of them. Files are hashed only if another one has the same size, and large ones only if the beginnings agree
//! too. Equal hashes count as equal contents. A file with holes only equals one with the same holes; the holes are not
//! read. Several threads hash; memory is some 50 bytes and a hash for each file that is hashed.
//!
//! Source: format specification, A.6.

use std::io;
use std::os::fd::BorrowedFd;

use durin_format::Result;
use durin_format::digest::{Digest, Hasher};

use crate::context::Context;
use crate::files::{File as FileFacts, FileIndex, Files, OpenFile, Opener};
use crate::sparse::{Extent, SparseFiles};
use crate::stats::{Stage, StageThread};
use crate::sync::map_in_parallel;
use crate::tree::{Tree, bytes_of, count_of};

/// Files of this size and more are compared by their first bytes before they are hashed.
const START_COMPARE_SIZE_MIN: u64 = 1 << 20;
/// How many first bytes.
const START_LEN: usize = 4096;
/// Bytes read at once for hashing: enough to make system calls cheap, few enough to stay in the processor's cache.
const READ_LEN: usize = 128 << 10;

/// The place of a content in [`Contents`].
pub(crate) type ContentIndex = u32;

/// What a file is compared by, and the file.
type Keyed<K> = (K, FileIndex);
/// The size and the hash of a file.
type Hashed = (u64, Box<[u8]>);

/// The distinct contents, in the order of their first files.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Where the files of each content begin in `files`, and the end.
    starts: Vec<u32>,
    files: Vec<FileIndex>,
}

impl Contents {
    pub(crate) fn len(&self) -> u32 {
        count_of(self.starts.len().saturating_sub(1))
    }

    /// Returns the memory that the tables take.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of(&self.starts) + bytes_of(&self.files)
    }

    /// Returns the files that have a content, in their order.
    pub(crate) fn files(&self, content: ContentIndex) -> &[FileIndex] {
        let start = self.starts[content as usize] as usize;
        let end = self.starts[content as usize + 1] as usize;
        &self.files[start..end]
    }

    /// Takes groups of files, each in order.
    fn from_groups(mut groups: Vec<Vec<FileIndex>>) -> Self {
        groups.sort_unstable_by_key(|group| group.first().copied());
        let mut contents = Self {
            starts: vec![0],
            files: Vec::new(),
        };
        for group in groups {
            contents.files.extend(group);
            contents.starts.push(count_of(contents.files.len()));
        }
        contents
    }
}

/// Finds the distinct contents.
///
/// # Errors
/// `Cancelled`. Files that cannot be read are reported and are part of no content.
pub(crate) fn dedupe(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    sparse: &SparseFiles,
    root: BorrowedFd<'_>,
) -> Result<Contents> {
    let search = Search {
        context,
        tree,
        files,
        sparse,
        root,
    };
    let not_empty = (0..count_of(files.list.len())).filter(|index| files.file(*index).size > 0);
    // All holes are equal, and nothing is saved by telling so: a hole takes one chunk.
    let file_hash = context.options.file_hash;
    let groups = match file_hash.filter(|_| !context.options.hollow) {
        None => not_empty.map(|file| vec![file]).collect(),
        Some(digest) => search.equal_files(not_empty.collect(), digest)?,
    };
    for group in groups.iter().filter(|group| group.len() > 1) {
        let copies = group.len() as u64 - 1;
        context.stats.duplicate_files.add(copies);
        let size = group.first().map_or(0, |file| files.file(*file).size);
        context.stats.duplicate_bytes.add(copies * size);
    }
    Ok(Contents::from_groups(groups))
}

struct Search<'a> {
    context: Context<'a>,
    tree: &'a Tree,
    files: &'a Files,
    sparse: &'a SparseFiles,
    root: BorrowedFd<'a>,
}

impl Search<'_> {
    fn equal_files(&self, files: Vec<FileIndex>, digest: Digest) -> Result<Vec<Vec<FileIndex>>> {
        let mut groups = Vec::new();
        let sized = files
            .into_iter()
            .map(|file| (self.files.file(file).size, file));
        let candidates = split_equal(sized.collect(), &mut groups);
        let candidates = self.compare_starts(candidates, &mut groups)?;
        let hashed = self.hash(&candidates, digest)?;
        let mut all = split_equal(hashed, &mut groups);
        // What is left agrees in size, in its start and in its hash.
        all.sort_unstable_by(|(a, file_a), (b, file_b)| a.cmp(b).then(file_a.cmp(file_b)));
        let equal = all.chunk_by(|(a, _), (b, _)| a == b);
        groups.extend(equal.map(|group| group.iter().map(|(_, file)| *file).collect()));
        Ok(groups)
    }

    /// Puts large files whose start differs from all others of the same size into groups of their own.
    fn compare_starts(
        &self,
        candidates: Vec<Keyed<u64>>,
        groups: &mut Vec<Vec<FileIndex>>,
    ) -> Result<Vec<Keyed<u64>>> {
        let is_large = |candidate: &(u64, FileIndex)| candidate.0 >= START_COMPARE_SIZE_MIN;
        let (large, mut rest): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_large);
        let start = || {
            let opener = Opener::new(self.tree, self.root);
            (
                opener,
                vec![0; START_LEN],
                self.context.stats.enter(Stage::Hash),
            )
        };
        let starts = map_in_parallel(
            self.context,
            &large,
            start,
            |(opener, buffer, _), (_, file)| {
                let mut read = || {
                    opener
                        .open(self.files.file(*file))?
                        .read_exact_at(buffer, 0)
                };
                self.keep_or_lose(*file, read())
                    .map(|()| start_hash(buffer))
            },
        );
        self.context.check_cancelled()?;
        let keyed = large.into_iter().zip(starts);
        let keyed = keyed.filter_map(|((size, file), start)| Some(((size, start?), file)));
        let same = split_equal(keyed.collect(), groups);
        rest.extend(same.into_iter().map(|((size, _), file)| (size, file)));
        Ok(rest)
    }

    /// Hashes the candidates; the key joins the size and the hash.
    fn hash(&self, candidates: &[Keyed<u64>], digest: Digest) -> Result<Vec<Keyed<Hashed>>> {
        let stats = self.context.stats;
        stats.hash_files_total.add(candidates.len() as u64);
        let mut in_order: Vec<FileIndex> = candidates.iter().map(|(_, file)| *file).collect();
        in_order.sort_unstable();
        let start = || {
            let opener = Opener::new(self.tree, self.root);
            (opener, vec![0; READ_LEN], stats.enter(Stage::Hash))
        };
        let work = |(opener, buffer, thread): &mut (Opener<'_>, Vec<u8>, StageThread), file: &_| {
            let FileFacts { entry, size, .. } = *self.files.file(*file);
            stats.set_current(|| self.tree.display(entry));
            thread.job(size, || self.tree.display(entry));
            let hash = self.hash_file(opener, buffer, *file, digest);
            thread.did(1, size);
            thread.job_end();
            self.keep_or_lose(*file, hash)
        };
        let hashes = map_in_parallel(self.context, &in_order, start, work);
        self.context.check_cancelled()?;
        let hashed = in_order.into_iter().zip(hashes);
        Ok(hashed
            .filter_map(|(file, hash)| Some(((self.files.file(file).size, hash?), file)))
            .collect())
    }

    fn hash_file(
        &self,
        opener: &mut Opener<'_>,
        buffer: &mut [u8],
        index: FileIndex,
        digest: Digest,
    ) -> io::Result<Box<[u8]>> {
        let file = self.files.file(index);
        let open = opener.open(file)?;
        let mut hasher = digest.hasher();
        let whole = [Extent {
            offset: 0,
            len: file.size,
        }];
        let extents = self.sparse.get(&index);
        for extent in extents.map_or(&whole[..], |extents| extents) {
            if extents.is_some() {
                hasher.update(&extent.offset.to_le_bytes());
                hasher.update(&extent.len.to_le_bytes());
            }
            self.hash_extent(&open, *extent, buffer, &mut hasher)?;
        }
        self.context.stats.hashed_files.add(1);
        let mut hash = hasher.finish();
        // Keeps data that look like the extents of another file apart from them.
        hash.push(u8::from(extents.is_some()));
        if open.is_modified(self.tree, file)? {
            // It may change again until it is read, and must not take the place of another file then.
            hash.extend_from_slice(&index.to_le_bytes());
        }
        Ok(hash.into())
    }

    fn hash_extent(
        &self,
        open: &OpenFile,
        extent: Extent,
        buffer: &mut [u8],
        hasher: &mut Hasher,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < extent.len {
            if self.context.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let left = usize::try_from(extent.len - done).unwrap_or(usize::MAX);
            let piece = buffer.len().min(left);
            let piece = &mut buffer[..piece];
            open.read_exact_at(piece, extent.offset + done)?;
            hasher.update(piece);
            done += piece.len() as u64;
            self.context.stats.hashed_bytes.add(piece.len() as u64);
        }
        Ok(())
    }

    /// A file that cannot be read is reported, unless the reason is that the user wants to stop.
    fn keep_or_lose<T>(&self, file: FileIndex, result: io::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if !self.context.is_cancelled() {
                    self.files.lose(file, self.tree, self.context, &error);
                }
                None
            }
        }
    }
}

fn start_hash(start: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(start)
}

/// Returns the files whose key another one has too; each other becomes a group of its own.
fn split_equal<K: Ord>(
    mut keyed: Vec<Keyed<K>>,
    groups: &mut Vec<Vec<FileIndex>>,
) -> Vec<Keyed<K>> {
    keyed.sort_unstable();
    let mut is_single = keyed
        .chunk_by(|(a, _), (b, _)| a == b)
        .flat_map(|group| std::iter::repeat_n(group.len() == 1, group.len()))
        .collect::<Vec<_>>()
        .into_iter();
    keyed.retain(|(_, file)| {
        let single = is_single.next() == Some(true);
        if single {
            groups.push(vec![*file]);
        }
        !single
    });
    keyed
}
