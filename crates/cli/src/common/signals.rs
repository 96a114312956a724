//! Interruption: the signals that ask a program to stop become a flag that the libraries look at.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The signals that end a program in an orderly way.
pub(crate) const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The signal received last; 0 before the first one.
static RECEIVED: std::sync::LazyLock<Arc<AtomicUsize>> = std::sync::LazyLock::new(Arc::default);

/// Returns a flag that is set once one of [`ENDING`] arrives; from now on they no longer end the process.
pub(crate) fn cancel_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in ENDING {
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
