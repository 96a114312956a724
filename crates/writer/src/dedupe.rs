//! Finding files with equal contents.
//!
//! In: all files; later their hashes, which `analyze` makes. Out: which files must be hashed; later the distinct contents
//! that are not empty, each with the files that have it, in the order of the first of them. Files are hashed only if
//! another one has the same size, and large ones only if the beginnings agree too. Equal hashes count as equal contents.
//! Memory is some 50 bytes and a hash for each file that is hashed.
//!
//! Source: format specification, A.6.

use std::os::fd::BorrowedFd;

use durin_format::Result;

use crate::context::Context;
use crate::files::{FileIndex, Files, Opener};
use crate::stats::{Stage, StageThread};
use crate::sync::map_in_parallel;
use crate::tree::{Tree, bytes_of, count_of};

/// Files of this size and more are compared by their first bytes before they are hashed.
const START_COMPARE_SIZE_MIN: u64 = 1 << 20;
/// How many first bytes.
const START_LEN: usize = 4096;

/// The place of a content in [`Contents`].
pub(crate) type ContentIndex = u32;

/// What a file is compared by, and the file.
type Keyed<K> = (K, FileIndex);
/// The size and the hash of a file.
type Hashed = (u64, Hash);

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

    /// Takes files with the first file of their group.
    fn from_groups(mut grouped: Vec<(FileIndex, FileIndex)>) -> Self {
        grouped.sort_unstable();
        let mut contents = Self {
            starts: vec![0],
            files: Vec::with_capacity(grouped.len()),
        };
        for group in grouped.chunk_by(|(a, _), (b, _)| a == b) {
            contents.files.extend(group.iter().map(|(_, file)| *file));
            contents.starts.push(count_of(contents.files.len()));
        }
        contents
    }
}

/// What a hash says of a file, with which files are compared.
pub(crate) type Hash = Box<[u8]>;

/// Files by what is known of them before any is hashed.
pub(crate) struct Candidates {
    /// Files that no other is equal to.
    single: Vec<FileIndex>,
    /// Files that must be hashed, in their order.
    pub(crate) to_hash: Vec<FileIndex>,
}

/// Finds the files that may be equal to another.
///
/// # Errors
/// `Cancelled`. Files that cannot be read are reported and are no candidates.
pub(crate) fn candidates(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    root: BorrowedFd<'_>,
) -> Result<Candidates> {
    let not_empty = (0..count_of(files.list.len())).filter(|index| files.file(*index).size > 0);
    // All holes are equal, and nothing is saved by telling so: a hole takes one chunk.
    if context.options.file_hash.is_none() || context.options.hollow {
        return Ok(Candidates {
            single: not_empty.collect(),
            to_hash: Vec::new(),
        });
    }
    let mut single = Vec::new();
    let sized = not_empty.map(|file| (files.file(file).size, file));
    let candidates = split_equal(sized.collect(), &mut single);
    let candidates = compare_starts(context, tree, files, root, candidates, &mut single)?;
    let mut to_hash: Vec<FileIndex> = candidates.iter().map(|(_, file)| *file).collect();
    to_hash.sort_unstable();
    Ok(Candidates { single, to_hash })
}

/// Lets files whose start differs from all others of the same size go by themselves, if they are large.
fn compare_starts(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    root: BorrowedFd<'_>,
    candidates: Vec<Keyed<u64>>,
    single: &mut Vec<FileIndex>,
) -> Result<Vec<Keyed<u64>>> {
    let is_large = |candidate: &(u64, FileIndex)| candidate.0 >= START_COMPARE_SIZE_MIN;
    let (large, mut rest): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_large);
    let start = || {
        let opener = Opener::new(context, tree, files, root);
        (opener, vec![0; START_LEN], context.stats.enter(Stage::Hash))
    };
    let read = |(opener, buffer, _): &mut (Opener<'_>, Vec<u8>, StageThread),
                (_, file): &Keyed<u64>| {
        let open = opener.open(files.file(*file));
        let read = open.and_then(|open| open.read_exact_at(buffer, 0));
        match read {
            Ok(()) => Some(start_hash(buffer)),
            Err(error) => {
                files.lose(*file, tree, context, &error);
                None
            }
        }
    };
    let starts = map_in_parallel(context, &large, start, read);
    context.check_cancelled()?;
    let keyed = large.into_iter().zip(starts);
    let keyed = keyed.filter_map(|((size, file), start)| Some(((size, start?), file)));
    let same = split_equal(keyed.collect(), single);
    rest.extend(same.into_iter().map(|((size, _), file)| (size, file)));
    Ok(rest)
}

impl Candidates {
    /// Returns all files that are not empty and could be read so far, in their order.
    pub(crate) fn all(&self) -> Vec<FileIndex> {
        let mut all = [&self.single[..], &self.to_hash[..]].concat();
        all.sort_unstable();
        all
    }

    /// Joins the files that have equal hashes; those that were to be hashed and have no hash are part of no content.
    pub(crate) fn contents(
        self,
        context: Context<'_>,
        files: &Files,
        hashes: Vec<(FileIndex, Hash)>,
    ) -> Contents {
        let mut single = self.single;
        let keyed = hashes
            .into_iter()
            .map(|(file, hash)| ((files.file(file).size, hash), file));
        let mut all: Vec<Keyed<Hashed>> = split_equal(keyed.collect(), &mut single);
        // What is left agrees in size, in its start and in its hash.
        all.sort_unstable_by(|(a, file_a), (b, file_b)| a.cmp(b).then(file_a.cmp(file_b)));
        single.retain(|file| !files.is_lost(*file));
        let mut grouped: Vec<_> = single.into_iter().map(|file| (file, file)).collect();
        for group in all.chunk_by(|(a, _), (b, _)| a == b) {
            let Some(((size, _), first)) = group.first() else {
                continue;
            };
            grouped.extend(group.iter().map(|(_, file)| (*first, *file)));
            let copies = group.len() as u64 - 1;
            context.stats.duplicate_files.add(copies);
            context.stats.duplicate_bytes.add(copies * size);
        }
        Contents::from_groups(grouped)
    }
}

fn start_hash(start: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(start)
}

/// Returns the files whose key another one has too; each other is single.
fn split_equal<K: Ord>(mut keyed: Vec<Keyed<K>>, singles: &mut Vec<FileIndex>) -> Vec<Keyed<K>> {
    keyed.sort_unstable();
    let mut is_single = keyed
        .chunk_by(|(a, _), (b, _)| a == b)
        .flat_map(|group| std::iter::repeat_n(group.len() == 1, group.len()))
        .collect::<Vec<_>>()
        .into_iter();
    keyed.retain(|(_, file)| {
        let single = is_single.next() == Some(true);
        if single {
            singles.push(*file);
        }
        !single
    });
    keyed
}
