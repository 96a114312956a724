//! The files that were read, in the order of first access: `analysis_file`, made for `mkdwarfs --hotness-list`.
//!
//! Who reads a file leaves its number; a thread writes the paths, every second and when the mount ends, so that a driver
//! that is killed has written all but the last second. Paths come from one pass over the directories, when the first
//! one is needed: eight bytes an inode.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use durin_format::events::Events;
use durin_format::{InodeNum, Result};
use durin_reader::{FileKind, Image};

/// How long a path may wait to be written.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// Marks an inode that no directory has been seen to hold.
const NOWHERE: (u32, u32) = (u32::MAX, u32::MAX);

/// Where a list of accessed files goes; each clone is the same list.
#[derive(Clone, Debug)]
pub struct AccessLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    file: Mutex<File>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    seen: HashSet<u32>,
    /// Not yet written.
    waiting: Vec<InodeNum>,
    is_over: bool,
}

impl PartialEq for AccessLog {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AccessLog {}

/// The thread that writes; ended, with everything written, when this is dropped.
#[derive(Debug)]
pub(crate) struct Writer {
    log: AccessLog,
    thread: Option<JoinHandle<()>>,
}

impl AccessLog {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(Shared {
            file: Mutex::new(File::create(path)?),
            state: Mutex::default(),
            changed: Condvar::new(),
        })))
    }

    /// Notes that a file is used.
    pub(crate) fn note(&self, inode: InodeNum) {
        let mut state = self.state();
        if state.seen.insert(inode.0) {
            state.waiting.push(inode);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts writing. Without a thread to be had, all is written in the end.
    pub(crate) fn start(&self, image: &Arc<Image>, events: &Arc<dyn Events>) -> Writer {
        let (log, image, events) = (self.clone(), Arc::clone(image), Arc::clone(events));
        let thread = Builder::new().name("access-log".to_owned()).spawn(move || {
            if let Err(error) = log.write_until_over(&image) {
                events.warn(&format!("cannot write the analysis file: {error}"));
            }
        });
        Writer {
            log: self.clone(),
            thread: thread.ok(),
        }
    }

    fn write_until_over(&self, image: &Image) -> io::Result<()> {
        let mut paths = None;
        loop {
            let mut state = self.state();
            if !state.is_over {
                let waited = self.0.changed.wait_timeout(state, WRITE_EVERY);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            let (waiting, is_over) = (std::mem::take(&mut state.waiting), state.is_over);
            drop(state);
            if !waiting.is_empty() {
                let paths = paths.get_or_insert_with(|| Paths::of(image));
                self.write(image, paths, &waiting)?;
            }
            if is_over {
                return Ok(());
            }
        }
    }

    fn write(&self, image: &Image, paths: &Paths, inodes: &[InodeNum]) -> io::Result<()> {
        let mut text = Vec::new();
        for inode in inodes {
            // A path of a damaged image that cannot be told is left out, as is one that would not be one line.
            if let Ok(Some(path)) = paths.path(image, *inode)
                && !path.contains(&b'\n')
            {
                text.extend_from_slice(&path);
                text.push(b'\n');
            }
        }
        let file = self.0.file.lock();
        file.unwrap_or_else(PoisonError::into_inner)
            .write_all(&text)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.log.state().is_over = true;
        self.log.0.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so itself.
            thread.join().ok();
        }
    }
}

/// By inode: the directory that holds it and its place there. Of several names it is the first that is met.
struct Paths(Vec<(u32, u32)>);

impl Paths {
    fn of(image: &Image) -> Self {
        let count = usize::try_from(image.inode_count()).unwrap_or(0);
        let mut paths = Self(vec![NOWHERE; count]);
        let mut open = vec![image.root().inode];
        let mut name = Vec::new();
        while let Some(dir) = open.pop() {
            for index in 0..image.dir_len(dir).unwrap_or(0) {
                let Ok(entry) = image.dir_entry(dir, index, &mut name) else {
                    continue;
                };
                let number = usize::try_from(entry.inode.0).unwrap_or(usize::MAX);
                // What has a place already is a hard link, or a directory that a damaged image has twice.
                let Some(place) = paths.0.get_mut(number).filter(|place| **place == NOWHERE) else {
                    continue;
                };
                *place = (dir.0, index);
                if matches!(image.kind(entry), Ok(FileKind::Directory)) {
                    open.push(entry.inode);
                }
            }
        }
        paths
    }

    fn path(&self, image: &Image, inode: InodeNum) -> Result<Option<Vec<u8>>> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut inode = inode;
        while inode != image.root().inode {
            let place = usize::try_from(inode.0).ok().and_then(|at| self.0.get(at));
            let Some(&(dir, index)) = place.filter(|place| **place != NOWHERE) else {
                return Ok(None);
            };
            let mut name = Vec::new();
            image.dir_entry(InodeNum(dir), index, &mut name)?;
            names.push(name);
            // A circle of directories cannot be deeper than there are inodes.
            if names.len() > self.0.len() {
                return Ok(None);
            }
            inode = InodeNum(dir);
        }
        names.reverse();
        Ok(Some(names.join(&b'/')))
    }
}
