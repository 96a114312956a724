//! Open directories of the target.
//!
//! Every path is walked one name at a time from the descriptor of its parent, never following a symlink: whatever lies in
//! the target, and whatever happens in it meanwhile, nothing outside of it is reached. The most recently used directories
//! stay open, as many as the process's limit allows.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use durin_format::{Error, Result};
use rustix::fs::{Mode, OFlags};
use rustix::process::Resource;

use crate::plan::{Plan, TOP};

/// The most directories that stay open; a thousand are more than the breadth-first order ever comes back to.
const OPEN_MAX: usize = 1024;

/// Even with the smallest limit on descriptors a few must be open to get anywhere.
const OPEN_MIN: usize = 4;

/// Opens directories of the plan.
pub(crate) struct Dirs<'a> {
    plan: &'a Plan,
    top: Arc<OwnedFd>,
    recent: Mutex<Recent>,
}

/// Descriptors in the order of their last use.
struct Recent {
    open: HashMap<u32, (Arc<OwnedFd>, u64)>,
    by_use: BTreeMap<u64, u32>,
    clock: u64,
    open_max: usize,
}

impl<'a> Dirs<'a> {
    pub(crate) fn new(plan: &'a Plan, top: OwnedFd) -> Self {
        Self {
            plan,
            top: Arc::new(top),
            recent: Mutex::new(Recent {
                open: HashMap::new(),
                by_use: BTreeMap::new(),
                clock: 0,
                open_max: open_max(),
            }),
        }
    }

    /// Returns a descriptor of a directory that has been made.
    pub(crate) fn open(&self, dir: u32) -> Result<Arc<OwnedFd>> {
        let mut missing = Vec::new();
        let mut above = dir;
        let mut fd = loop {
            if above == TOP {
                break Arc::clone(&self.top);
            }
            if let Some(fd) = self.recent().find(above) {
                break fd;
            }
            missing.push(above);
            above = self
                .plan
                .dirs
                .get(above as usize)
                .map_or(TOP, |dir| dir.parent);
        };
        while let Some(place) = missing.pop() {
            fd = Arc::new(self.open_below(&fd, place)?);
            self.recent().keep(place, &fd);
        }
        Ok(fd)
    }

    fn open_below(&self, parent: &OwnedFd, dir: u32) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(parent, self.plan.dir_name(dir), flags, Mode::empty()).map_err(|errno| {
            let path = self.plan.shown_dir(dir);
            Error::io(format!("cannot open the directory {path}"), errno.into())
        })
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recent {
    fn find(&mut self, dir: u32) -> Option<Arc<OwnedFd>> {
        let (fd, used) = self.open.get_mut(&dir)?;
        self.by_use.remove(used);
        self.clock += 1;
        *used = self.clock;
        self.by_use.insert(self.clock, dir);
        Some(Arc::clone(fd))
    }

    fn keep(&mut self, dir: u32, fd: &Arc<OwnedFd>) {
        self.clock += 1;
        if let Some((_, used)) = self.open.insert(dir, (Arc::clone(fd), self.clock)) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.clock, dir);
        while self.open.len() > self.open_max {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                break;
            };
            self.open.remove(&oldest);
        }
    }
}

/// A quarter of what the process may open: files, threads and the image need some, too.
fn open_max() -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile).current;
    limit
        .and_then(|limit| usize::try_from(limit / 4).ok())
        .unwrap_or(OPEN_MAX)
        .clamp(OPEN_MIN, OPEN_MAX)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_is_closed() {
        let fd = || Arc::new(OwnedFd::from(std::fs::File::open("/").unwrap()));
        let mut recent = Recent {
            open: HashMap::new(),
            by_use: BTreeMap::new(),
            clock: 0,
            open_max: 3,
        };
        for dir in 1..=3 {
            recent.keep(dir, &fd());
        }
        assert!(recent.find(1).is_some());
        recent.keep(4, &fd());
        assert!(recent.find(2).is_none());
        for dir in [1, 3, 4] {
            assert!(recent.find(dir).is_some(), "{dir}");
        }
        // Opened by two threads at once: the second one counts.
        recent.keep(4, &fd());
        assert_eq!((recent.open.len(), recent.by_use.len()), (3, 3));
    }
}
