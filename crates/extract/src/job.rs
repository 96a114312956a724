//! What all stages of one extraction share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use durin_format::{Error, ErrorKind, Result};
use durin_reader::Image;
use rustix::io::Errno;

use crate::dirs::Dirs;
use crate::options::{ExtractOptions, OwnerRestore, Stats};
use crate::plan::Plan;
use durin_format::events::Events;

/// One extraction under way.
pub(crate) struct Job<'a> {
    pub(crate) image: &'a Image,
    pub(crate) options: &'a ExtractOptions,
    pub(crate) stats: &'a Stats,
    pub(crate) plan: &'a Plan,
    pub(crate) dirs: Dirs<'a>,
    pub(crate) counts: Counts,
    /// Whether owners are restored.
    pub(crate) owners: bool,
    events: &'a dyn Events,
    cancel: &'a AtomicBool,
}

/// What has been made so far.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) files: AtomicU64,
    pub(crate) links: AtomicU64,
    pub(crate) directories: AtomicU64,
    pub(crate) symlinks: AtomicU64,
    pub(crate) nodes: AtomicU64,
    pub(crate) errors: AtomicU64,
    /// Things whose time the target's file system cannot hold.
    pub(crate) clamped_times: AtomicU64,
}

impl<'a> Job<'a> {
    pub(crate) fn new(
        image: &'a Image,
        options: &'a ExtractOptions,
        stats: &'a Stats,
        plan: &'a Plan,
        dirs: Dirs<'a>,
        events: &'a dyn Events,
        cancel: &'a AtomicBool,
    ) -> Self {
        let owners = match options.owner {
            OwnerRestore::Auto => rustix::process::geteuid().is_root(),
            OwnerRestore::Always => true,
            OwnerRestore::Never => false,
        };
        Self {
            image,
            options,
            stats,
            plan,
            dirs,
            counts: Counts::default(),
            owners,
            events,
            cancel,
        }
    }

    /// Ends the extraction if the user asked for it.
    pub(crate) fn check_cancel(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::cancelled());
        }
        Ok(())
    }

    /// Something is not extracted: reports it and goes on, or returns it, as the user chose.
    /// What would hit everything else, too, is always returned.
    pub(crate) fn skip(&self, error: Error) -> Result<()> {
        let is_hopeless = error.kind() == ErrorKind::Cancelled || target_is_useless(&error);
        if is_hopeless || !self.options.continue_on_error {
            return Err(error);
        }
        add(&self.counts.errors);
        self.events.error(&error.to_string());
        Ok(())
    }

    /// Something is extracted, but not quite as it should be: reports it.
    pub(crate) fn imperfect(&self, error: &Error) {
        add(&self.counts.errors);
        self.events.warn(&error.to_string());
    }

    /// Says something that is no error.
    pub(crate) fn note(&self, message: &str) {
        self.events.warn(message);
    }
}

fn target_is_useless(error: &Error) -> bool {
    let errno = error.io_source().and_then(Errno::from_io_error);
    matches!(errno, Some(Errno::NOSPC | Errno::DQUOT | Errno::ROFS))
}

/// Counts one more.
pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
