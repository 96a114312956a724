//! What the tasks print. Whoever reads it may go away at any time (`| head`): the task then ends quietly, with its mounts,
//! processes and folders put away on the way out, as for an error.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write as _};
use std::panic::{self, UnwindSafe};
use std::thread;

/// What unwinds the stack when nobody reads on.
struct NobodyReads;

/// Prints a line, as `println!` does, which would panic when nobody reads on.
macro_rules! say {
    () => { $crate::say::line(format_args!("")) };
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}
pub(crate) use say;

pub(crate) fn line(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    let written = out.write_fmt(text).and_then(|()| out.write_all(b"\n"));
    match written {
        // Who puts things away may go on.
        Err(_) if thread::panicking() => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            drop(out);
            if cfg!(panic = "abort") {
                std::process::exit(crate::NOBODY_READS.into());
            }
            panic::resume_unwind(Box::new(NobodyReads));
        }
        // A full disk: there is nowhere to say so, and the work itself may be worth something.
        Err(_) | Ok(()) => {}
    }
}

/// Prints a line to standard error, whether or not anybody reads it.
macro_rules! complain {
    ($($text:tt)*) => { $crate::say::error_line(format_args!($($text)*)) };
}
pub(crate) use complain;

pub(crate) fn error_line(text: Arguments<'_>) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Runs `work`; nothing comes back if it ended because nobody reads what it prints.
pub(crate) fn while_somebody_reads<T>(work: impl FnOnce() -> T + UnwindSafe) -> Option<T> {
    match panic::catch_unwind(work) {
        Ok(result) => Some(result),
        Err(reason) if reason.is::<NobodyReads>() => None,
        Err(reason) => panic::resume_unwind(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ends_are_not_hidden() {
        assert_eq!(while_somebody_reads(|| 7), Some(7));
        let quiet: Option<()> =
            while_somebody_reads(|| panic::resume_unwind(Box::new(NobodyReads)));
        assert_eq!(quiet, None);
        let loud = || while_somebody_reads(|| panic::resume_unwind(Box::new("another reason")));
        assert!(panic::catch_unwind(loud).is_err());
    }
}
