//! Interruption: the signals that ask a program to stop become a flag that the libraries look at.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use durin_format::{Error, ErrorKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::exit::{self, Failure};
use super::logger::Logger;
use super::program;

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

/// How long a program that is to stop may tidy up after itself. Stages look every 50 ms, but sorting millions of names takes
/// longer, and so may a disk that does not answer, and a pipe without a reader for ever.
const TIDY_TIME_MAX: Duration = Duration::from_millis(200);
/// How long the last words may take: a pipe that is full and not read would keep them for ever.
const SAY_TIME_MAX: Duration = Duration::from_millis(100);
/// How often the flag is looked at: not to be felt, and no load.
const POLL: Duration = Duration::from_millis(20);

/// Ends the process if it does not end soon after it was asked to.
///
/// Dropped when the work has ended, which is not survived for an instant: either the work's own end counts or this.
#[derive(Debug)]
pub(crate) struct Deadline {
    cancel: Arc<AtomicBool>,
    state: Arc<Mutex<State>>,
}

/// What an end at this moment would come upon. Whoever ends the process keeps it locked.
#[derive(Debug, Default)]
struct State {
    /// To be removed first.
    temporary: Option<PathBuf>,
    /// The work has come to its own end.
    is_over: bool,
}

impl Deadline {
    /// Takes over the signals of [`ending`] and watches for them.
    ///
    /// Where no thread is given for it, the work ends when it ends.
    pub(crate) fn start(logger: &Logger) -> Result<Self, Error> {
        let cancel = cancel_flag().map_err(|error| Error::io("cannot watch for signals", error))?;
        let state = Arc::new(Mutex::new(State::default()));
        let watch = {
            let (cancel, state) = (Arc::clone(&cancel), Arc::clone(&state));
            let logger = logger.sharing_screen();
            move || {
                while !cancel.load(Ordering::Relaxed) {
                    std::thread::sleep(POLL);
                }
                std::thread::sleep(TIDY_TIME_MAX);
                let state = lock(&state);
                if !state.is_over {
                    end(state.temporary.as_deref(), logger);
                }
                drop(state);
                // What is left is to say how it went, which only waits for a reader that does not read.
                std::thread::sleep(TIDY_TIME_MAX);
                leave(exit::code(ErrorKind::Cancelled));
            }
        };
        std::thread::Builder::new().spawn(watch).ok();
        Ok(Self { cancel, state })
    }

    /// The flag that is set once a signal has arrived.
    pub(crate) const fn cancel(&self) -> &Arc<AtomicBool> {
        &self.cancel
    }

    /// From now on a process that is ended removes the file `temporary` first.
    pub(crate) fn set_temporary(&self, temporary: Option<PathBuf>) {
        lock(&self.state).temporary = temporary;
    }

    /// Does the last step of the work, which is not to be interrupted; its end is that of the work.
    pub(crate) fn conclude<T>(&self, step: impl FnOnce() -> T) -> T {
        let mut state = lock(&self.state);
        let result = step();
        state.is_over = true;
        result
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        lock(&self.state).is_over = true;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process. Its other threads may wait for standard error for ever, and hold what guards it.
fn end(temporary: Option<&Path>, logger: Logger) -> ! {
    if let Some(temporary) = temporary {
        // There is nobody left to tell; what remains has a name that shows it is temporary.
        drop(std::fs::remove_file(temporary));
    }
    let failure = Failure::Error(Error::cancelled());
    let code = failure.code();
    let (saying, said) = mpsc::channel::<()>();
    let say = move || {
        program::report(&logger, &failure);
        logger.end(code);
        drop(saying);
    };
    std::thread::Builder::new().spawn(say).ok();
    said.recv_timeout(SAY_TIME_MAX).ok();
    leave(code)
}

/// Leaves without what a program does at its end, which may wait for other threads, too.
fn leave(code: u8) -> ! {
    signal_hook::low_level::exit(i32::from(code))
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
