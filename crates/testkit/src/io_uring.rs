//! Has the kernel offer FUSE over io_uring while a test runs.
//!
//! It does so only where somebody has switched it on for the whole machine. Root's tests do that and undo it; mounts that others
//! make meanwhile are offered it, too, and work all the same. Elsewhere, on older kernels above all, the same tests run
//! with what takes its place.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

const PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// While it lives, the kernel offers io_uring, if it can.
#[derive(Debug)]
pub struct Offer {
    /// Whether it does.
    pub is_there: bool,
    /// What was there before, if that was something else.
    before: Option<String>,
    _lock: MutexGuard<'static, ()>,
}

impl Offer {
    /// Switches it on.
    #[must_use]
    pub fn new() -> Self {
        let lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let found = std::fs::read_to_string(PARAMETER).unwrap_or_default();
        let was_on = found.trim() == "Y";
        let is_there = was_on || std::fs::write(PARAMETER, "Y").is_ok();
        if !is_there {
            tell_once();
        }
        Self {
            is_there,
            before: (is_there && !was_on).then_some(found),
            _lock: lock,
        }
    }
}

/// Says in the test run that io_uring itself is not tested on this machine. No failure where `CI` is set, unlike
/// `skip`: no package brings a kernel that has it, and all tests run.
fn tell_once() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        let mut stderr = std::io::stderr();
        let why = "cannot be set to Y, the same tests use the device";
        drop(writeln!(
            stderr,
            "SKIPPED: FUSE over io_uring: {PARAMETER} {why}"
        ));
    });
}

impl Default for Offer {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // If that fails, the machine keeps what its kernel offers anyway.
            std::fs::write(PARAMETER, before).ok();
        }
    }
}
