//! What all stages of one extraction share.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use durin_format::events::Events;
use durin_format::{Error, ErrorKind, Result};
use durin_reader::Image;

use crate::dirs::Dirs;
use crate::make::Spared;
use crate::options::{ExtractOptions, OwnerRestore, Report, Stats};
use crate::plan::Plan;

/// One extraction under way, to wherever.
pub(crate) struct Run<'a> {
    pub(crate) image: &'a Image,
    /// The file that is read, if it is one.
    pub(crate) spared: Spared,
    pub(crate) options: &'a ExtractOptions,
    pub(crate) stats: &'a Stats,
    pub(crate) plan: &'a Plan,
    pub(crate) counts: Counts,
    events: &'a dyn Events,
    cancel: &'a AtomicBool,
}

/// One extraction to a directory.
pub(crate) struct Job<'a> {
    run: Run<'a>,
    pub(crate) dirs: Dirs<'a>,
    /// Whether owners are restored.
    pub(crate) owners: bool,
    /// The user and the group that new files belong to, as a rule.
    pub(crate) own: (u32, u32),
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
    /// Things whose time the target cannot hold.
    pub(crate) clamped_times: AtomicU64,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        image: &'a Image,
        options: &'a ExtractOptions,
        stats: &'a Stats,
        plan: &'a Plan,
        events: &'a dyn Events,
        cancel: &'a AtomicBool,
    ) -> Self {
        Self {
            image,
            spared: image.source().file_id(),
            options,
            stats,
            plan,
            counts: Counts::default(),
            events,
            cancel,
        }
    }

    /// Says what the plan has left out, and that nothing is asked for.
    pub(crate) fn begin(&self, refused: Vec<Error>) -> Result<()> {
        for error in refused {
            self.skip(error)?;
        }
        if self.options.pattern.is_some() && self.plan.is_empty() {
            self.note("nothing in the image matches");
        }
        Ok(())
    }

    /// Ends the extraction if the user asked for it.
    pub(crate) fn check_cancel(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::cancelled());
        }
        Ok(())
    }

    /// Something cannot be read from the image, or the format of an archive cannot hold it: reports it and goes on, or
    /// returns it, as the user chose. A target that cannot be written is nothing for this.
    #[track_caller]
    pub(crate) fn skip(&self, error: Error) -> Result<()> {
        if error.kind() == ErrorKind::Cancelled || !self.options.continue_on_error {
            return Err(error);
        }
        self.imperfect(&error);
        Ok(())
    }

    /// Something is not extracted, or not quite as it should be: reports it.
    #[track_caller]
    pub(crate) fn imperfect(&self, error: &Error) {
        add(&self.counts.errors);
        self.events.warn(&error.to_string());
    }

    /// Says something that is no error.
    #[track_caller]
    pub(crate) fn note(&self, message: &str) {
        self.events.warn(message);
    }

    /// What has been extracted.
    pub(crate) fn report(&self) -> Report {
        let counts = &self.counts;
        Report {
            files: counts.files.load(Ordering::Relaxed),
            links: counts.links.load(Ordering::Relaxed),
            directories: counts.directories.load(Ordering::Relaxed),
            symlinks: counts.symlinks.load(Ordering::Relaxed),
            nodes: counts.nodes.load(Ordering::Relaxed),
            bytes: self.stats.bytes_done.load(Ordering::Relaxed),
            errors: counts.errors.load(Ordering::Relaxed),
        }
    }
}

impl<'a> Job<'a> {
    pub(crate) fn new(run: Run<'a>, dirs: Dirs<'a>) -> Self {
        let owners = match run.options.owner {
            OwnerRestore::Auto => rustix::process::geteuid().is_root(),
            OwnerRestore::Always => true,
            OwnerRestore::Never => false,
        };
        let own = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        Self {
            run,
            dirs,
            owners,
            own,
        }
    }
}

// A job is a run with a target; spelling that out at each use would only hide what is used.
impl<'a> Deref for Job<'a> {
    type Target = Run<'a>;

    fn deref(&self) -> &Run<'a> {
        &self.run
    }
}

/// Counts one more.
pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
