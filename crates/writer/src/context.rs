//! What every stage of a build is given.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use durin_format::{Error, Result};

use crate::options::BuildOptions;
use crate::sampler::Sampler;
use crate::stats::Stats;
use durin_format::events::Events;

/// Why a build cannot go on, from whichever thread finds out first.
pub(crate) type Failure = OnceLock<Error>;

/// The surroundings of a build.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) options: &'a BuildOptions,
    pub(crate) stats: &'a Stats,
    pub(crate) events: &'a dyn Events,
    /// Set by the user.
    cancel: &'a AtomicBool,
    failure: &'a Failure,
    /// The size of a block, as a power of two; once files were looked at, what is right for so much data.
    pub(crate) block_size_bits: u32,
    /// Has blocks sampled instead of compressed, where only an estimate is wanted.
    pub(crate) sampler: Option<&'a Arc<Sampler>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        options: &'a BuildOptions,
        stats: &'a Stats,
        events: &'a dyn Events,
        cancel: &'a AtomicBool,
        failure: &'a Failure,
    ) -> Self {
        Self {
            options,
            stats,
            events,
            cancel,
            failure,
            block_size_bits: options.block_size_bits,
            sampler: None,
        }
    }

    /// The size of a block in bytes.
    pub(crate) fn block_size(&self) -> u32 {
        1 << self.block_size_bits
    }

    /// Ends the build with this error, unless another one came before: all stages stop as if the user wanted it.
    pub(crate) fn fail(&self, error: Error) {
        self.failure.set(error).ok();
    }

    /// Counts and reports what is missing from the image; the build goes on.
    pub(crate) fn problem(&self, message: &str) {
        // There will be no image for anything to be missing from.
        if self.is_cancelled() {
            return;
        }
        self.stats.errors.add(1);
        self.events.error(message);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed) || self.failure.get().is_some()
    }

    pub(crate) fn check_cancelled(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }
}
