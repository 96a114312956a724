//! Becoming a background process that tells its parent when it is ready.
//!
//! Parent and child share a pipe. The child writes one byte once the mount is usable; if it ends before, the parent
//! sees the end of the pipe and takes over the child's exit code.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};

use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::common::exit;
use crate::common::system::{self, Fork};

/// On which side of the fork the caller goes on.
pub(super) enum Side {
    Parent(Waiting),
    Child(Readiness),
}

/// The parent, which waits for the child.
pub(super) struct Waiting {
    child: i32,
    pipe: PipeReader,
}

/// The child's duty to tell when it is ready.
pub(super) struct Readiness {
    pipe: PipeWriter,
}

/// Forks. Must come before the first thread starts.
pub(super) fn split() -> io::Result<Side> {
    let (reader, writer) = io::pipe()?;
    match system::fork_single_threaded()? {
        Fork::Parent { child } => {
            // Or else the pipe would never end.
            drop(writer);
            Ok(Side::Parent(Waiting {
                child,
                pipe: reader,
            }))
        }
        Fork::Child => {
            drop(reader);
            // Signals of the terminal are for the parent's process group from now on.
            rustix::process::setsid()?;
            Ok(Side::Child(Readiness { pipe: writer }))
        }
    }
}

impl Waiting {
    /// Waits until the child is ready or has ended; returns the exit code for the parent.
    pub(super) fn verdict(mut self) -> u8 {
        let mut ready = [0];
        match self.pipe.read_exact(&mut ready) {
            Ok(()) => exit::SUCCESS,
            Err(_) => exit_code_of(self.child),
        }
    }
}

/// The exit code of a child that has closed its end of the pipe. The child has reported the reason itself.
fn exit_code_of(child: i32) -> u8 {
    let status = Pid::from_raw(child)
        .and_then(|pid| {
            rustix::process::waitpid(Some(pid), WaitOptions::empty())
                .ok()
                .flatten()
        })
        .map(|(_, status)| status);
    status
        .and_then(WaitStatus::exit_status)
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(exit::FAILURE)
}

impl Readiness {
    /// Lets go of the terminal and of the directory the program was started in, and lets the parent return.
    pub(super) fn enter_background(mut self) -> io::Result<()> {
        rustix::process::chdir("/")?;
        let null: File = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        self.pipe.write_all(&[0])
    }
}
