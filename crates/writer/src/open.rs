//! Opening for reading without leaving a trace.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Advice, Mode, OFlags, fadvise, openat};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

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
    use std::time::{Duration, SystemTime};

    use super::*;

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
