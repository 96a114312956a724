//! Opening for reading without leaving a trace, and waiting for descriptors to open with.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use durin_format::Error;
use rustix::fs::{Advice, Mode, OFlags, fadvise, openat};
use rustix::io::{Errno, Result};
use rustix::path::Arg;
use rustix::process::{Resource, getrlimit};

use crate::context::Context;

/// From this size on it pays to tell the kernel that all of a file will be read: its window ahead is 128 KiB by default.
const ADVICE_SIZE_MIN: u64 = 512 << 10;

/// Opens `name` so that reading does not change the time of access, if this process may ask for that: only owners may.
pub(crate) fn open_unnoticed(
    dir: impl AsFd,
    name: impl Arg + Copy,
    flags: OFlags,
) -> Result<OwnedFd> {
    let dir = dir.as_fd();
    match openat(dir, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(dir, name, flags, Mode::empty()),
        other => other,
    }
}

/// How long one waits for others to give descriptors back before trying again.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(10);
/// How often one tries: for some seconds. What other threads have open they close after at most a directory or a run of
/// data, so what is still short then stays so.
const SHORTAGE_ATTEMPTS_MAX: u32 = 500;

/// Whether there were no descriptors left, which says nothing of what was to be opened.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

/// Calls `open` until there are descriptors for it. If there are none for long, the build fails: an image must not depend
/// on how many there were.
pub(crate) fn patiently<T>(
    context: Context<'_>,
    mut open: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    for _ in 1..SHORTAGE_ATTEMPTS_MAX {
        match open() {
            Err(error) if is_shortage(&error) && !context.is_cancelled() => {
                thread::sleep(SHORTAGE_PAUSE);
            }
            other => return other,
        }
    }
    open().inspect_err(|error| {
        if is_shortage(error) {
            context.fail(no_descriptors(error));
        }
    })
}

fn no_descriptors(error: &io::Error) -> Error {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::MFILE);
    let whose = match (errno, getrlimit(Resource::Nofile).current) {
        (Errno::MFILE, Some(limit)) => {
            format!("this process may have {limit} descriptors (RLIMIT_NOFILE, ulimit -n)")
        }
        _ => "the system has none left for anybody".to_owned(),
    };
    Error::io(
        format!("too few descriptors to read the input: {whose}"),
        errno.into(),
    )
}

/// Says that a file of this size will be read from its beginning to its end.
pub(crate) fn will_be_read(file: impl AsFd, size: u64) {
    if size >= ADVICE_SIZE_MIN {
        // Only advice: there is nothing to do about a refusal.
        fadvise(file, 0, None, Advice::Sequential).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, SystemTime};

    use durin_format::events::Quiet;

    use super::*;
    use crate::context::Failure;
    use crate::options::{BuildOptions, Input};
    use crate::stats::Stats;

    #[test]
    fn a_shortage_is_waited_for_and_nothing_else() {
        let options = BuildOptions::new(Input::Directory("/".into()));
        let (stats, cancel) = (Stats::default(), AtomicBool::new(false));
        let failure = Failure::default();
        let context = Context::new(&options, &stats, &Quiet, &cancel, &failure);
        let mut attempts = 0;
        let mut after = |count, error: Errno| {
            attempts = 0;
            let opened = patiently(context, || {
                attempts += 1;
                if attempts == count {
                    Ok(())
                } else {
                    Err(error.into())
                }
            });
            (opened.is_ok(), attempts)
        };
        assert_eq!(after(3, Errno::MFILE), (true, 3));
        assert_eq!(after(2, Errno::NFILE), (true, 2));
        assert_eq!(after(3, Errno::ACCESS), (false, 1));
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(after(3, Errno::MFILE), (false, 1));
        assert!(failure.get().is_none());
    }

    #[test]
    fn time_of_access_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::write(&path, "data").expect("written");
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let file = File::options().write(true).open(&path).expect("opened");
        let times = std::fs::FileTimes::new().set_accessed(old);
        file.set_times(times).expect("set");
        let handle = File::open(dir.path()).expect("opened");
        let found = open_unnoticed(&handle, "file", OFlags::RDONLY | OFlags::CLOEXEC);
        let found = found.expect("opened");
        will_be_read(&found, 1 << 30);
        let mut buffer = [0; 4];
        rustix::io::pread(&found, &mut buffer, 0).expect("read");
        assert_eq!(&buffer, b"data");
        assert_eq!(path.metadata().expect("there").atime(), 1);
    }
}
