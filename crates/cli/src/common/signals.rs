//! Interruption: the signals that ask a program to stop become a flag that the libraries look at.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use durin_format::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::exit::Failure;

/// The signals that end a program in an orderly way: not the one for a lost terminal when whoever started it has said,
/// as `nohup` does, that it shall outlive that.
pub(crate) fn ending() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut signals = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP, &status) {
        signals.push(SIGHUP);
    }
    signals
}

/// Whether the process with this `/proc/PID/status` ignores a signal.
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The signal received last; 0 before the first one.
static RECEIVED: std::sync::LazyLock<Arc<AtomicUsize>> = std::sync::LazyLock::new(Arc::default);

/// Returns a flag that is set once one of [`ending`] arrives; from now on they no longer end the process.
pub(crate) fn cancel_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in ending() {
        let number = usize::try_from(signal).unwrap_or_default();
        signal_hook::flag::register_usize(signal, Arc::clone(&RECEIVED), number)?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// The signal that set the flag, if one did.
pub(crate) fn received() -> Option<u8> {
    match RECEIVED.load(Ordering::Relaxed) {
        0 => None,
        signal => u8::try_from(signal).ok(),
    }
}

/// How long a build that is to stop may tidy up after itself. Stages look every 50 ms, but sorting millions of names takes
/// longer, and so may a disk that does not answer.
const TIDY_TIME_MAX: Duration = Duration::from_millis(200);
/// How often the flag is looked at: not to be felt, and no load.
const POLL: Duration = Duration::from_millis(20);

/// Ends the process if work does not end soon after it was asked to.
///
/// Dropped when the work has ended, which it does not survive for an instant: either the work's own end counts or this.
#[derive(Debug)]
pub(crate) struct Deadline {
    is_over: Arc<AtomicBool>,
}

impl Deadline {
    /// Watches the flag `cancel`. A process that is ended removes the file `temporary` first.
    ///
    /// Where no thread is given for it, the work ends when it ends.
    pub(crate) fn after(cancel: &Arc<AtomicBool>, temporary: Option<PathBuf>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let watch = {
            let (cancel, is_over) = (Arc::clone(cancel), Arc::clone(&is_over));
            move || {
                while !cancel.load(Ordering::Relaxed) {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    std::thread::sleep(POLL);
                }
                std::thread::sleep(TIDY_TIME_MAX);
                if !is_over.swap(true, Ordering::SeqCst) {
                    end(temporary.as_deref());
                }
            }
        };
        std::thread::Builder::new().spawn(watch).ok();
        Self { is_over }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        while self.is_over.swap(true, Ordering::SeqCst) {
            // The process is being ended.
            std::thread::park();
        }
    }
}

fn end(temporary: Option<&Path>) {
    if let Some(temporary) = temporary {
        // There is nobody left to tell; what remains has a name that shows it is temporary.
        drop(std::fs::remove_file(temporary));
    }
    let failure = Failure::Error(Error::cancelled());
    if let Some(message) = failure.message() {
        drop(writeln!(io::stderr(), "{message}"));
    }
    std::process::exit(i32::from(failure.code()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_known() {
        let status =
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(SIGHUP, status));
        assert!(!is_ignored(SIGINT, status));
        assert!(!is_ignored(SIGTERM, status));
        assert!(!is_ignored(SIGHUP, ""));
    }
}
