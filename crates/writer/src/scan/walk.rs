//! Reading a directory and all below it, with several threads.
//!
//! Threads take directories from a common stack, so that the walk goes deep first and few descriptors stay open.
//! A directory's descriptor lives as long as one of its subdirectories waits; above a limit it is closed at once and
//! the subdirectories are opened name by name from the root instead.
//!
//! A script that filters is asked as directories are read, so that nothing below one that it does not want is looked at.
//! One thread does the walk then, so that the script is asked in an order that depends on names only.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use durin_format::{Error, Result};
use rustix::fs::RawDir;
use rustix::process::{Resource, getrlimit};

use super::DIRECTORY_FLAGS;
use super::batch::Batch;
use super::entry::Examiner;
use super::listing::{FoundDir, Listing};
use super::script_filter;
use crate::context::Context;
use crate::filter::Verdict;
use crate::open::{open_unnoticed, patiently};
use crate::script::Script;
use crate::stats::{Stage, StageThread};
use crate::sync::in_parallel;
use crate::tree::{Detail, printable};

/// Bytes of directory entries asked for at once; some hundreds of names, as the C library does.
const DIRECTORY_BUFFER_LEN: usize = 64 << 10;
/// The share of the process's descriptors that waiting directories may use.
const DESCRIPTOR_SHARE: u64 = 4;
/// How long an idle thread sleeps before it looks whether the user wants to stop.
const IDLE: Duration = Duration::from_millis(50);

/// What becomes of entries that the filter excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excluded {
    Drop,
    /// They are listed, but not what is below them.
    Keep,
}

/// Reads the directory `root` and returns a listing for each directory; that of the root comes first.
pub(crate) fn walk(
    context: Context<'_>,
    root: &OwnedFd,
    excluded: Excluded,
) -> Result<Vec<Listing>> {
    let walk = Walk {
        context,
        examiner: Examiner::new(context),
        root: root.as_fd(),
        excluded,
        state: Mutex::new(State::at_root()),
        wake: Condvar::new(),
        handle_count: Arc::default(),
        handles_max: handles_max(),
    };
    let threads = if walk.script().is_some() {
        1
    } else {
        context.options.scanner_workers
    };
    in_parallel(threads, || walk.work());
    context.check_cancelled()?;
    let state = walk.state.into_inner();
    let state = state.unwrap_or_else(PoisonError::into_inner);
    match state.failure {
        Some(error) => Err(error),
        None => Ok(state.listings),
    }
}

struct Walk<'a> {
    context: Context<'a>,
    examiner: Examiner<'a>,
    root: BorrowedFd<'a>,
    excluded: Excluded,
    state: Mutex<State>,
    wake: Condvar,
    /// Descriptors of directories kept open for their subdirectories.
    handle_count: Arc<AtomicUsize>,
    handles_max: usize,
}

/// What the threads share; `places` and `listings` are indexed by the number of discovery.
struct State {
    pending: Vec<Pending>,
    /// Threads that may still add to `pending`.
    busy: usize,
    places: Vec<Place>,
    listings: Vec<Listing>,
    failure: Option<Error>,
}

/// A directory that nobody has read yet.
struct Pending {
    number: FoundDir,
    parent: Option<Arc<Handle>>,
}

/// Where a directory is; a chain of these is a path.
struct Place {
    parent: FoundDir,
    name: Box<[u8]>,
}

/// An open directory whose subdirectories wait.
struct Handle {
    fd: OwnedFd,
    count: Arc<AtomicUsize>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl State {
    fn at_root() -> Self {
        Self {
            pending: vec![Pending {
                number: 0,
                parent: None,
            }],
            busy: 0,
            places: vec![Place {
                parent: 0,
                name: Box::default(),
            }],
            listings: vec![Listing::default()],
            failure: None,
        }
    }

    /// Returns the names that lead from the root to a directory.
    fn names_to(&self, number: FoundDir) -> Vec<Box<[u8]>> {
        let mut names = Vec::new();
        let mut at = number;
        while at != 0 {
            let place = &self.places[at as usize];
            names.push(place.name.clone());
            at = place.parent;
        }
        names.reverse();
        names
    }

    /// Gives the subdirectories of a finished listing their numbers.
    fn number_dirs(&mut self, parent: FoundDir, listing: &mut Listing) -> Result<Vec<FoundDir>> {
        let mut numbers = Vec::new();
        for index in 0..listing.found.len() {
            let found = listing.found[index];
            if !matches!(found.detail, Detail::Directory { .. }) {
                continue;
            }
            let number = FoundDir::try_from(self.places.len())
                .map_err(|_| Error::limit("more than 2^32 directories"))?;
            self.places.push(Place {
                parent,
                name: listing.name(&found).into(),
            });
            self.listings.push(Listing::default());
            listing.found[index].detail = Detail::Directory { number };
            numbers.push(number);
        }
        Ok(numbers)
    }
}

impl Walk<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut buffer = Vec::with_capacity(DIRECTORY_BUFFER_LEN);
        let mut thread = self.context.stats.enter(Stage::Scan);
        while let Some(pending) = thread.wait_in(|| self.next()) {
            self.read_dir(pending, buffer.spare_capacity_mut(), &thread);
            thread.job_end();
            self.lock().busy -= 1;
            self.wake.notify_all();
        }
    }

    /// Takes the directory found last, and waits if there is none but may be one soon.
    fn next(&self) -> Option<Pending> {
        let mut state = self.lock();
        loop {
            if self.context.is_cancelled() || state.failure.is_some() {
                return None;
            }
            if let Some(pending) = state.pending.pop() {
                state.busy += 1;
                return Some(pending);
            }
            if state.busy == 0 {
                return None;
            }
            let (guard, _) = self
                .wake
                .wait_timeout(state, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            state = guard;
        }
    }

    fn read_dir(&self, pending: Pending, buffer: &mut [MaybeUninit<u8>], thread: &StageThread) {
        let number = pending.number;
        let path = self.lock().names_to(number).join(&b'/');
        self.context.stats.set_current(|| printable(&path));
        thread.job(0, || printable(&path));
        let fd = match self.open(&pending) {
            Ok(fd) => fd,
            Err(error) => return self.unreadable(&path, error),
        };
        drop(pending);
        let mut listing = self.list(&fd, &path, buffer);
        listing.sort();
        listing.drop_repeated(|found| self.examiner.uncount(found));
        thread.did(listing.found.len() as u64, 0);
        let excluded = self.apply_filter(&path, &mut listing);
        if let Some(script) = self.script()
            && let Err(error) = script_filter::of_listing(self.context, script, &path, &mut listing)
        {
            self.lock().failure = Some(error);
            return;
        }
        listing.shrink();
        let mut state = self.lock();
        match state.number_dirs(number, &mut listing) {
            Ok(mut numbers) => {
                numbers.retain(|number| !excluded.contains(&state.places[*number as usize].name));
                let parent = (!numbers.is_empty()).then(|| self.keep(fd)).flatten();
                // The first is taken first.
                let pending = numbers.into_iter().rev().map(|number| Pending {
                    number,
                    parent: parent.clone(),
                });
                state.pending.extend(pending);
            }
            Err(error) => state.failure = Some(error),
        }
        state.listings[number as usize] = listing;
    }

    /// The script that filters, unless what is left out is to be seen.
    fn script(&self) -> Option<&dyn Script> {
        let options = self.context.options;
        options
            .script_with(|hooks| hooks.filter)
            .filter(|_| self.excluded == Excluded::Drop)
    }

    fn unreadable(&self, path: &[u8], error: impl std::fmt::Display) {
        let path = if path.is_empty() { b"." } else { path };
        let path = printable(path);
        self.context
            .problem(&format!("cannot read directory '{path}': {error}"));
    }

    fn list(&self, fd: &OwnedFd, path: &[u8], buffer: &mut [MaybeUninit<u8>]) -> Listing {
        let mut listing = Listing::default();
        let mut batch = Batch::default();
        let mut entries = RawDir::new(fd, buffer);
        let mut examine = |batch: &mut Batch| {
            batch.take(|name| {
                let display = || printable(&join(path, name.to_bytes()));
                self.examiner
                    .examine(fd.as_fd(), name, &mut listing, display);
                !self.context.is_cancelled()
            });
        };
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.unreadable(path, error);
                    break;
                }
            };
            if self.context.is_cancelled() {
                break;
            }
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            batch.push(entry.ino(), name);
            if batch.is_full() {
                examine(&mut batch);
            }
        }
        examine(&mut batch);
        listing
    }

    /// Removes what the filter excludes, or returns the names of directories that are excluded but kept.
    fn apply_filter(&self, path: &[u8], listing: &mut Listing) -> Vec<Box<[u8]>> {
        let filter = &self.context.options.filter;
        let mut excluded_dirs = Vec::new();
        if filter.is_empty() {
            return excluded_dirs;
        }
        let mut found = std::mem::take(&mut listing.found);
        found.retain(|found| {
            let name = listing.name(found);
            let is_dir = matches!(found.detail, Detail::Directory { .. });
            if filter.verdict(&join(path, name), is_dir) == Verdict::Include {
                return true;
            }
            if self.excluded == Excluded::Drop {
                self.examiner.uncount(found);
                return false;
            }
            if is_dir {
                excluded_dirs.push(name.into());
            }
            true
        });
        listing.found = found;
        excluded_dirs
    }

    /// Keeps a directory open for its subdirectories, if not too many are.
    fn keep(&self, fd: OwnedFd) -> Option<Arc<Handle>> {
        let count = &self.handle_count;
        if count.load(Ordering::Relaxed) >= self.handles_max {
            return None;
        }
        count.fetch_add(1, Ordering::Relaxed);
        Some(Arc::new(Handle {
            fd,
            count: Arc::clone(count),
        }))
    }

    fn open(&self, pending: &Pending) -> io::Result<OwnedFd> {
        let open = |dir: BorrowedFd<'_>, name: &[u8]| -> io::Result<OwnedFd> {
            Ok(open_unnoticed(dir, name, DIRECTORY_FLAGS)?)
        };
        if let Some(parent) = &pending.parent {
            let name = self.lock().places[pending.number as usize].name.clone();
            return patiently(self.context, || open(parent.fd.as_fd(), &name));
        }
        let names = self.lock().names_to(pending.number);
        patiently(self.context, || {
            let root = open(self.root, b".")?;
            names
                .iter()
                .try_fold(root, |dir, name| open(dir.as_fd(), name))
        })
    }
}

fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() {
        name.to_vec()
    } else {
        [dir, name].join(&b'/')
    }
}

/// Returns how many directories may be kept open.
fn handles_max() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(descriptors / DESCRIPTOR_SHARE)
        .unwrap_or(usize::MAX)
        .clamp(1, 4096)
}
