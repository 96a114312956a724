//! Looking at files before anything is stored: one pass, each file read at most once.
//!
//! In: all files. Out: the distinct contents; what categories they have; sketches of them, if the order wants any.
//! The files are read in their order, by several threads, and a file is read only as far as somebody wants to know more:
//! not at all where it is alone with its size, the order does not look at contents and there are no categorizers.
//! Holes are not read. Memory: a buffer for each thread, a sketch and some words for each file.

mod file;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use durin_format::Result;
use durin_format::digest::Digest;

use crate::categorize::Categorizer;
use crate::category::{CATEGORY_NAMES, Category};
use crate::context::Context;
use crate::dedupe::{self, Candidates, ContentIndex, Contents, Hash};
use crate::files::{FileIndex, Files};
use crate::memory;
use crate::order::sketch_kind;
use crate::sketch::{Sketch, SketchKind, SliceSketch, Slices, slice_len};
use crate::sparse::SparseFiles;
use crate::stats::Stage;
use crate::sync::in_parallel;
use crate::tree::{Tree, bytes_of, count_of};

/// The most files that a thread takes at once, which makes taking small ones cheap.
const BATCH_MAX: usize = 16;
/// The least number of times that a thread goes for files, so that slow ones are shared out.
const BATCHES_PER_THREAD_MIN: usize = 32;

/// What has been found out.
pub(crate) struct Analysis {
    pub(crate) contents: Contents,
    pub(crate) found: Found,
    pub(crate) sketches: Sketches,
}

/// The number of a category among those found, in any order; 0 is the default one.
pub(crate) type FoundIndex = u32;

/// The categories of contents.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// All but the default one, which comes before them.
    pub(crate) categories: Vec<Category>,
    of_file: HashMap<FileIndex, Ranked>,
}

/// The categories of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Whole(FoundIndex),
    /// Lengths of fragments that follow each other.
    Fragments(Box<[(u64, FoundIndex)]>),
}

/// What a categorizer has found, and its place among the categorizers.
#[derive(Clone, Debug)]
struct Ranked {
    rank: usize,
    kind: Kind,
}

/// Sketches of contents, of each kind that an order wants.
#[derive(Debug, Default)]
pub(crate) struct Sketches {
    of_kinds: Vec<(SketchKind, Vec<Sketch>)>,
    /// Of large contents, if an order looks at similarity.
    slices: HashMap<ContentIndex, Slices>,
}

impl Sketches {
    /// Returns the sketch of a content, or nothing if no order wants any of this kind.
    pub(crate) fn of(&self, kind: SketchKind, content: ContentIndex) -> Option<&Sketch> {
        let (_, sketches) = self.of_kinds.iter().find(|(of, _)| *of == kind)?;
        sketches.get(content as usize)
    }

    /// Returns the slices of a content, if it is large and an order looks at its similarity.
    pub(crate) fn slices(&self, content: ContentIndex) -> Option<&Slices> {
        self.slices.get(&content)
    }

    /// How many slices all contents have.
    pub(crate) fn slice_count(&self) -> u64 {
        let counts = self.slices.values().map(|slices| slices.sketches.len());
        counts.sum::<usize>() as u64
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let of_kinds = self.of_kinds.iter();
        let of_contents: u64 = of_kinds.map(|(_, sketches)| bytes_of(sketches)).sum();
        of_contents + self.slice_count() * size_of::<SliceSketch>() as u64
    }
}

impl Found {
    /// Returns the categories of a content, or nothing if it is of the default one.
    ///
    /// Equal files can differ only in what the user says of them, and what the first categorizer says counts.
    pub(crate) fn of(&self, contents: &Contents, content: ContentIndex) -> Option<&Kind> {
        if self.of_file.is_empty() {
            return None;
        }
        let files = contents.files(content).iter();
        let ranked = files.filter_map(|file| self.of_file.get(file));
        let first = ranked.min_by_key(|ranked| ranked.rank)?;
        Some(&first.kind)
    }
}

/// Looks at all files.
///
/// # Errors
/// `Cancelled`. Files that cannot be read are reported and are part of no content.
pub(crate) fn analyze(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    sparse: &SparseFiles,
    root: BorrowedFd<'_>,
) -> Result<Analysis> {
    let candidates = dedupe::candidates(context, tree, files, root)?;
    let pass = Pass {
        context,
        tree,
        files,
        sparse,
        root,
        digest: context.options.file_hash,
        kinds: wanted_sketches(context),
        slice_len: slice_len(
            files.list.iter().map(|file| file.size),
            memory::slices_max(context.options.memory_limit),
        ),
        hot: hot_files(context, tree, files),
        interner: Mutex::default(),
    };
    let parts = pass.run(&candidates)?;
    Ok(pass.join(candidates, parts))
}

/// Returns the kinds of sketches that the orders of all categories want.
fn wanted_sketches(context: Context<'_>) -> Vec<SketchKind> {
    let orders = CATEGORY_NAMES
        .iter()
        .map(|name| context.options.order.of(name));
    let mut kinds = Vec::new();
    let script = context.options.script_with(|hooks| hooks.similarity);
    let of_script = script.map(|_| SketchKind::Similarity);
    for kind in orders.map(sketch_kind).chain(of_script) {
        if kind != SketchKind::None && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// Returns the files of the user's list.
fn hot_files(context: Context<'_>, tree: &Tree, files: &Files) -> HashSet<FileIndex> {
    use std::os::unix::ffi::OsStrExt;

    let options = &context.options.categorize;
    if !options.categorizers.contains(&Categorizer::Hotness) {
        return HashSet::new();
    }
    let mut hot = HashSet::new();
    for path in &options.hot_paths {
        let entry = tree.find(path.as_os_str().as_bytes());
        match entry.and_then(|entry| files.of_entry(entry)) {
            Some(file) => drop(hot.insert(file)),
            None => context.events.info(&format!(
                "'{}' of the hotness list is not a file of the input",
                path.display()
            )),
        }
    }
    hot
}

/// The surroundings of the pass.
struct Pass<'a> {
    context: Context<'a>,
    tree: &'a Tree,
    files: &'a Files,
    sparse: &'a SparseFiles,
    root: BorrowedFd<'a>,
    digest: Option<Digest>,
    kinds: Vec<SketchKind>,
    /// How long slices of large contents are.
    slice_len: u64,
    hot: HashSet<FileIndex>,
    interner: Mutex<Interner>,
}

/// The categories found so far.
#[derive(Debug, Default)]
struct Interner {
    places: BTreeMap<(String, String), FoundIndex>,
    list: Vec<Category>,
}

/// What one thread has found out.
#[derive(Default)]
struct Findings {
    hashes: Vec<(FileIndex, Hash)>,
    sketched: Vec<FileIndex>,
    /// For each of these files as many as the pass has kinds.
    sketches: Vec<Sketch>,
    slices: Vec<(FileIndex, Slices)>,
    kinds: Vec<(FileIndex, Ranked)>,
}

impl Pass<'_> {
    /// Reads the files that somebody wants to know more of.
    fn run(&self, candidates: &Candidates) -> Result<Vec<Findings>> {
        let stats = self.context.stats;
        stats.hash_files_total.add(candidates.to_hash.len() as u64);
        let looks_inside = !self.kinds.is_empty() || !self.categorizers().is_empty();
        let wants_all = looks_inside && !self.context.options.hollow;
        let mut is_hashed = candidates.to_hash.iter().copied().peekable();
        let jobs: Vec<(FileIndex, bool)> = if wants_all {
            let mut all = candidates.all();
            all.retain(|file| !self.files.is_lost(*file));
            all.into_iter()
                .map(|file| (file, is_hashed.next_if_eq(&file).is_some()))
                .collect()
        } else {
            is_hashed.map(|file| (file, true)).collect()
        };
        let stage = if wants_all {
            Stage::Analyze
        } else {
            Stage::Hash
        };
        let next = AtomicUsize::new(0);
        let threads = self.context.options.scanner_workers.min(jobs.len()).max(1);
        let batch_len = (jobs.len() / threads / BATCHES_PER_THREAD_MIN).clamp(1, BATCH_MAX);
        let parts = in_parallel(threads, || {
            let mut findings = Findings::default();
            let mut worker = file::Worker::new(self, stage);
            loop {
                let first = next.fetch_add(batch_len, Ordering::Relaxed);
                let batch = jobs.iter().skip(first).take(batch_len);
                if batch.len() == 0 || self.context.is_cancelled() {
                    return findings;
                }
                for (file, is_hashed) in batch {
                    worker.work(*file, *is_hashed, &mut findings);
                }
            }
        });
        self.context.check_cancelled()?;
        Ok(parts)
    }

    fn join(self, candidates: Candidates, mut parts: Vec<Findings>) -> Analysis {
        let hashes = parts
            .iter_mut()
            .flat_map(|part| std::mem::take(&mut part.hashes));
        let contents = candidates.contents(self.context, self.files, hashes.collect());
        let mut of_kinds: Vec<_> = self
            .kinds
            .iter()
            .map(|kind| (*kind, vec![Sketch::default(); contents.len() as usize]))
            .collect();
        let mut content_of = vec![None; self.files.list.len()];
        for content in 0..contents.len() {
            if let Some(first) = contents.files(content).first() {
                content_of[*first as usize] = Some(content as usize);
            }
        }
        let mut of_file = HashMap::new();
        let mut slices = HashMap::new();
        for part in parts {
            for (file, of_file) in part.slices {
                if let Some(content) = content_of[file as usize] {
                    slices.insert(count_of(content), of_file);
                }
            }
            let of_files = part.sketches.chunks(self.kinds.len().max(1));
            for (file, sketches) in part.sketched.iter().zip(of_files) {
                let Some(content) = content_of[*file as usize] else {
                    continue;
                };
                for ((_, list), sketch) in of_kinds.iter_mut().zip(sketches) {
                    list[content] = *sketch;
                }
            }
            of_file.extend(part.kinds);
        }
        let interner = self.interner.into_inner();
        let interner = interner.unwrap_or_else(PoisonError::into_inner);
        Analysis {
            contents,
            found: Found {
                categories: interner.list,
                of_file,
            },
            sketches: Sketches { of_kinds, slices },
        }
    }

    fn categorizers(&self) -> &[Categorizer] {
        &self.context.options.categorize.categorizers
    }

    /// Returns the number of a category, or of a new one.
    fn number(&self, category: Category) -> FoundIndex {
        let mut interner = self.interner.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (category.name.clone(), category.subcategory.clone());
        let next = count_of(interner.list.len() + 1);
        match interner.places.entry(key) {
            std::collections::btree_map::Entry::Occupied(known) => *known.get(),
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(next);
                interner.list.push(category);
                next
            }
        }
    }
}
