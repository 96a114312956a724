//! Putting the file system into the tree of mounts and taking it out again.
//!
//! Root calls mount(2) itself, so that no program of libfuse need be installed; everybody else goes through `fusermount3`,
//! see [`crate::fusermount`]. The mount is done here and not by `fuser`, because only so it gets its full type
//! (`fuse.dwarfs`), is detached when it is busy, and is never mistaken for another one that stands in its place later.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use durin_format::{Error, Result};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::device::PATH as DEVICE;
use crate::fusermount;
use crate::mount_table;
use crate::options::MountOptions;
use durin_format::events::Events;

/// Reading ahead by this much keeps two requests of the largest size (1 MiB) under way for a sequential reader.
const READ_AHEAD_KIB: &str = "2048";

/// Asks `statx` for that number in the place of the mount's.
const STATX_MNT_ID_UNIQUE: u32 = 0x4000;

/// A mount of ours.
#[derive(Debug)]
pub(crate) struct Mounted {
    path: PathBuf,
    /// The numbers the kernel gave to it, by which it is told from any other at the same place.
    numbers: Numbers,
    /// A number that the kernel never gives again, where it has such (Linux 6.8).
    unique_number: Option<u64>,
    /// Its type, as the kernel lists it.
    kind: String,
    /// Whether the kernel has ended it, after which it gives the number to the next one.
    is_gone: AtomicBool,
    /// The end of `fusermount3`'s leash: it unmounts when this closes.
    _auto_unmount: Option<UnixStream>,
}

/// How the kernel tells mounts apart. Each number is given anew once what had it has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Major and minor number of the file system's device.
    pub(crate) device: (u32, u32),
    /// The mount's own number, which stays when it is moved; 0 from kernels before 5.8.
    pub(crate) mount: u64,
}

/// How the file system was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// Nobody used it, or it was gone already.
    Clean,
    /// It is out of sight, but lives until its last user has gone.
    Detached,
    /// It stands below another mount, and stays.
    Covered,
    /// It is not in the tree that this process sees, but may have users, or stand in other namespaces.
    NotFound,
}

/// Mounts at `mountpoint` and returns the connection to the kernel.
///
/// # Errors
/// `NotFound` or `InvalidInput` for an unusable mount point, `Io` if the kernel or `fusermount3` refuse.
pub(crate) fn mount(
    mountpoint: &Path,
    options: &MountOptions,
    events: &dyn Events,
) -> Result<(OwnedFd, Mounted)> {
    let path = resolve(mountpoint)?;
    let (fd, auto_unmount) = if options.auto_unmount {
        mount_on_leash(&path, options, events)?
    } else {
        match mount_directly(&path, options)? {
            Some(fd) => (fd, None),
            None => fusermount::mount(&path, options)?,
        }
    };
    let numbers = match numbers_at(&path) {
        Ok(numbers) => numbers,
        Err(errno) => {
            detach(&path);
            return Err(Error::io(
                format!("cannot find the new mount at {}", path.display()),
                errno.into(),
            ));
        }
    };
    let mounted = Mounted {
        unique_number: unique_number_at(&path),
        path,
        numbers,
        kind: kind(options),
        is_gone: AtomicBool::new(false),
        _auto_unmount: auto_unmount,
    };
    Ok((fd, mounted))
}

/// Unmounts whatever file system stands at `path`. When somebody uses it, that is an error unless `lazily`, which takes it
/// out of sight until its last user has gone.
///
/// # Errors
/// `Io` if there is none, or the kernel or `fusermount3` refuse.
pub fn unmount(path: &Path, lazily: bool) -> Result<Unmounted> {
    let failed =
        |errno: Errno| Error::io(format!("cannot unmount {}", path.display()), errno.into());
    match rustix::mount::unmount(path, UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(Unmounted::Clean),
        Err(Errno::PERM) => fusermount::unmount(path, lazily),
        Err(Errno::BUSY) if lazily => {
            let flags = UnmountFlags::NOFOLLOW | UnmountFlags::DETACH;
            rustix::mount::unmount(path, flags).map_err(failed)?;
            Ok(Unmounted::Detached)
        }
        Err(errno) => Err(failed(errno)),
    }
}

impl Mounted {
    /// Takes the file system out of the tree, from any thread, also if it was moved; does nothing if it is no longer there.
    ///
    /// # Errors
    /// `Io` if the kernel or `fusermount3` refuse.
    pub(crate) fn unmount(&self) -> Result<Unmounted> {
        if self.is_gone.load(Ordering::Relaxed) {
            return Ok(Unmounted::Clean);
        }
        let path = match self.place() {
            Ok(path) => path,
            Err(unmounted) => return Ok(unmounted),
        };
        let failed = |errno: Errno| {
            let text = format!("cannot unmount {}", path.display());
            Error::io(text, errno.into())
        };
        match rustix::mount::unmount(&path, UnmountFlags::NOFOLLOW) {
            // Another thread or program was faster.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(Unmounted::Clean),
            Err(Errno::BUSY) => {
                let flags = UnmountFlags::NOFOLLOW | UnmountFlags::DETACH;
                rustix::mount::unmount(&path, flags).map_err(failed)?;
                Ok(Unmounted::Detached)
            }
            Err(Errno::PERM) => fusermount::unmount(&path, true),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Where it was mounted; absolute.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Has the kernel read ahead further than its default; only root can, and it is of no harm if that fails.
    pub(crate) fn read_ahead(&self) -> std::io::Result<()> {
        let (major, minor) = self.numbers.device;
        std::fs::write(
            format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"),
            READ_AHEAD_KIB,
        )
    }

    /// Whether it still stands, though its connection has ended: `umount -f` leaves it so while somebody uses it.
    ///
    /// Before Linux 6.8 that is not known: somebody else's mount may have got the same numbers, and whoever asks that itself
    /// waits for an answer.
    pub(crate) fn stands(&self) -> bool {
        let Ok(path) = self.place() else { return false };
        let found = unique_number_at(&path);
        found.is_some() && found == self.unique_number
    }

    /// Says that there is nothing to unmount any more.
    pub(crate) fn set_gone(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    /// Where it stands with nothing above it, or why it cannot be unmounted.
    fn place(&self) -> std::result::Result<PathBuf, Unmounted> {
        let is_on_top =
            |path: &Path| numbers_at(path).is_ok_and(|found| found.device == self.numbers.device);
        if is_on_top(&self.path) {
            return Ok(self.path.clone());
        }
        match mount_table::find(self.numbers, &self.kind) {
            Some(path) if is_on_top(&path) => Ok(path),
            Some(_) => Err(Unmounted::Covered),
            None => Err(Unmounted::NotFound),
        }
    }
}

fn resolve(mountpoint: &Path) -> Result<PathBuf> {
    let path = mountpoint.canonicalize().map_err(|error| {
        let text = format!("mount point {}", mountpoint.display());
        Error::io(text, error)
    })?;
    if !path.is_dir() {
        let text = format!("mount point {} is not a directory", path.display());
        return Err(Error::invalid_input(text));
    }
    Ok(path)
}

/// Mounts through a `fusermount3` that stays, and unmounts when this process has gone.
///
/// It finds out by opening the mount point as root, which takes that the kernel lets others in; who is let in is then
/// checked with each request, see [`crate::session`].
fn mount_on_leash(
    path: &Path,
    options: &MountOptions,
    events: &dyn Events,
) -> Result<(OwnedFd, Option<UnixStream>)> {
    let open_to_all = MountOptions {
        allow_other: true,
        ..options.clone()
    };
    fusermount::mount(path, &open_to_all).or_else(|error| {
        if options.allow_other || options.allow_root {
            return Err(error);
        }
        let mounted = fusermount::mount(path, options)?;
        events.warn(&format!("auto_unmount may not work: {error}"));
        Ok(mounted)
    })
}

/// Returns `None` if this is for `fusermount3` to do.
fn mount_directly(path: &Path, options: &MountOptions) -> Result<Option<OwnedFd>> {
    let device = match rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(device) => device,
        Err(Errno::ACCESS | Errno::PERM) => return Ok(None),
        Err(errno) => {
            let text = format!("cannot open {DEVICE} (is the kernel's module 'fuse' there?)");
            return Err(Error::io(text, errno.into()));
        }
    };
    let source = options.fsname.as_str();
    let data = kernel_options(&device, path, options)?;
    match rustix::mount::mount(source, path, kind(options), flags(options), data.as_c_str()) {
        Ok(()) => Ok(Some(device)),
        Err(Errno::PERM) => Ok(None),
        Err(errno) => Err(Error::io(
            format!("cannot mount at {}", path.display()),
            errno.into(),
        )),
    }
}

fn kernel_options(device: &OwnedFd, path: &Path, options: &MountOptions) -> Result<CString> {
    let stat = rustix::fs::stat(path)
        .map_err(|errno| Error::io(format!("mount point {}", path.display()), errno.into()))?;
    let kind = FileType::from_raw_mode(stat.st_mode).as_raw_mode();
    let mut list = vec![
        format!("fd={}", device.as_raw_fd()),
        format!("rootmode={kind:o}"),
        format!("user_id={}", rustix::process::getuid().as_raw()),
        format!("group_id={}", rustix::process::getgid().as_raw()),
    ];
    if options.default_permissions {
        list.push("default_permissions".to_owned());
    }
    // The kernel knows only "others"; that it is root alone is checked with each request.
    if options.allow_other || options.allow_root {
        list.push("allow_other".to_owned());
    }
    if let Some(len) = options.max_read {
        list.push(format!("max_read={len}"));
    }
    list.extend(options.extra.iter().cloned());
    CString::new(list.join(",")).map_err(|_| Error::invalid_input("a mount option contains a NUL"))
}

fn kind(options: &MountOptions) -> String {
    format!("fuse.{}", options.subtype)
}

fn flags(options: &MountOptions) -> MountFlags {
    [
        (options.ro, MountFlags::RDONLY),
        (!options.dev, MountFlags::NODEV),
        (!options.suid, MountFlags::NOSUID),
        (!options.exec, MountFlags::NOEXEC),
        (!options.symfollow, MountFlags::NOSYMFOLLOW),
    ]
    .into_iter()
    .filter_map(|(is_set, flag)| is_set.then_some(flag))
    .fold(MountFlags::empty(), |all, flag| all | flag)
}

/// Returns the numbers of what is mounted at `path`, without a request to the file system itself, which may not be served
/// yet or any more.
fn numbers_at(path: &Path) -> rustix::io::Result<Numbers> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let stat = rustix::fs::statx(CWD, path, flags, StatxFlags::MNT_ID)?;
    Ok(Numbers {
        device: (stat.stx_dev_major, stat.stx_dev_minor),
        mount: stat.stx_mnt_id,
    })
}

/// Returns the number of the mount at `path` that no other ever gets, if the kernel has one.
fn unique_number_at(path: &Path) -> Option<u64> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let unique = StatxFlags::from_bits_retain(STATX_MNT_ID_UNIQUE);
    let stat = rustix::fs::statx(CWD, path, flags, unique).ok()?;
    (stat.stx_mask & STATX_MNT_ID_UNIQUE != 0).then_some(stat.stx_mnt_id)
}

fn detach(path: &Path) {
    let flags = UnmountFlags::NOFOLLOW | UnmountFlags::DETACH;
    if rustix::mount::unmount(path, flags).is_err() {
        // The caller reports its own error; that this failed, too, adds nothing to it.
        fusermount::unmount(path, true).ok();
    }
}

/// Whether this process can open the device again, as cloned descriptors need.
pub(crate) fn can_clone() -> bool {
    File::options().read(true).write(true).open(DEVICE).is_ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use durin_format::ErrorKind;
    use durin_format::events::Quiet;

    #[test]
    fn a_mount_point_is_a_directory_that_exists() {
        let dir = tempfile::tempdir().unwrap();
        let options = MountOptions::default();
        let absent = mount(&dir.path().join("absent"), &options, &Quiet).unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::Io);
        assert!(absent.to_string().contains("absent"), "{absent}");

        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = mount(&file, &options, &Quiet).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("not a directory"), "{error}");
    }

    #[test]
    fn flags_are_safe_unless_asked_for() {
        let mut options = MountOptions::default();
        assert_eq!(
            flags(&options),
            MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOSUID
        );
        options.ro = false;
        options.dev = true;
        options.suid = true;
        assert_eq!(flags(&options), MountFlags::empty());
    }
}
