//! A mounted image as a fixture: mounted when it is made, unmounted when it goes, also when a test panics.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::run::{Run, peak_resident_bytes};

const READY_MAX: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(5);

/// Whether file systems in user space can be mounted here.
///
/// # Errors
///
/// Says what is missing, for [`crate::require!`].
pub fn available() -> Result<(), String> {
    if let Err(error) = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
    {
        return Err(format!("no FUSE: /dev/fuse: {error}"));
    }
    if crate::skip::is_root() {
        return if may_mount() {
            Ok(())
        } else {
            Err("no FUSE: root in this container may not mount".to_owned())
        };
    }
    let helper = Command::new("fusermount3")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    helper
        .map(drop)
        .map_err(|error| format!("no FUSE: fusermount3: {error}"))
}

/// Whether this process has the capability to mount, which root in a container often lacks.
fn may_mount() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    effective.is_some_and(|capabilities| capabilities & (1 << CAP_SYS_ADMIN) != 0)
}

/// A mounted image.
#[derive(Debug)]
pub struct Mount {
    point: PathBuf,
    /// The driver, when it runs in the foreground.
    driver: Option<Child>,
    /// Removed after the unmount.
    _dir: TempDir,
}

impl Mount {
    /// Mounts an image the way a user does: the driver returns when the mount is usable, and runs on behind.
    ///
    /// # Panics
    ///
    /// If the driver fails, or returns before anything is mounted.
    #[must_use]
    #[track_caller]
    pub fn new(driver: &Path, image: &Path, options: &[&str]) -> Self {
        let mount = Self::prepared();
        let run = Run::new(driver)
            .arg(image)
            .arg(&mount.point)
            .args(with_flags(options));
        run.time_max(READY_MAX).succeed();
        assert!(
            is_mount_point(&mount.point),
            "the driver returned and nothing is mounted"
        );
        mount
    }

    /// Mounts an image with the driver in the foreground, as a child whose memory can be watched.
    ///
    /// # Panics
    ///
    /// If the mount does not come up.
    #[must_use]
    #[track_caller]
    pub fn foreground(driver: &Path, image: &Path, options: &[&str]) -> Self {
        let mut mount = Self::prepared();
        let mut command = Command::new(driver);
        command
            .arg(image)
            .arg(&mount.point)
            .arg("-f")
            .args(with_flags(options));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = command
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", driver.display()));
        let child = mount.driver.insert(started);
        let start = Instant::now();
        while !is_mount_point(&mount.point) {
            let ended = child.try_wait().is_ok_and(|status| status.is_some());
            assert!(
                !ended && start.elapsed() < READY_MAX,
                "{}: no mount",
                image.display()
            );
            std::thread::sleep(POLL_EVERY);
        }
        mount
    }

    fn prepared() -> Self {
        let dir = tempfile::Builder::new().prefix("durin-mount-").tempdir();
        let dir = dir.unwrap_or_else(|error| panic!("no temporary directory: {error}"));
        // The directory's own device is compared with its parent's, so the mount point is one level down.
        let point = dir.path().join("mnt");
        std::fs::create_dir(&point).unwrap_or_else(|error| panic!("no mount point: {error}"));
        Self {
            point,
            driver: None,
            _dir: dir,
        }
    }

    /// Returns the directory where the image is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Returns the process id of a driver in the foreground.
    #[must_use]
    pub fn driver_pid(&self) -> Option<u32> {
        self.driver.as_ref().map(Child::id)
    }

    /// Returns the most resident memory that a driver in the foreground has held, in bytes.
    #[must_use]
    pub fn peak_bytes(&self) -> Option<u64> {
        self.driver
            .as_ref()
            .and_then(|driver| peak_resident_bytes(driver.id()))
    }

    /// Unmounts, and returns the exit code of a driver in the foreground.
    ///
    /// # Panics
    ///
    /// If it cannot be unmounted.
    pub fn unmount(mut self) -> Option<i32> {
        let unmounted = self.take_down();
        unmounted.unwrap_or_else(|error| panic!("cannot unmount {}: {error}", self.point.display()))
    }

    fn take_down(&mut self) -> io::Result<Option<i32>> {
        if is_mount_point(&self.point) {
            unmount(&self.point)?;
        }
        let Some(mut driver) = self.driver.take() else {
            return Ok(None);
        };
        let start = Instant::now();
        loop {
            if let Some(status) = driver.try_wait()? {
                return Ok(status.code());
            }
            if start.elapsed() > READY_MAX {
                driver.kill()?;
                driver.wait()?;
                return Err(io::Error::other("the driver outlived its mount"));
            }
            std::thread::sleep(POLL_EVERY);
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Nothing is left to do about a failure here; `unmount` is for those who want to know.
        drop(self.take_down());
    }
}

fn with_flags<'a>(options: &[&'a str]) -> Vec<&'a str> {
    options.iter().flat_map(|option| ["-o", option]).collect()
}

/// Whether something is mounted on `path`.
#[must_use]
pub fn is_mount_point(path: &Path) -> bool {
    let device = |path: &Path| rustix::fs::stat(path).map(|stat| stat.st_dev);
    let parent = path.parent().unwrap_or(path);
    // A mount whose driver died answers no stat, but is still a mount.
    device(path).map_or(true, |own| device(parent).is_ok_and(|other| other != own))
}

/// Unmounts, waiting a while for what still uses the mount, and detaches it in the end.
///
/// # Errors
///
/// What the last attempt said.
pub fn unmount(point: &Path) -> io::Result<()> {
    let attempt = |program: &str, flags: &[&str]| {
        let mut command = Command::new(program);
        let output = command.args(flags).arg(point).stdin(Stdio::null()).output();
        output
            .map(|output| output.status.success())
            .unwrap_or(false)
    };
    let program = if crate::skip::is_root() {
        ("umount", [].as_slice(), ["-l"].as_slice())
    } else {
        ("fusermount3", ["-u"].as_slice(), ["-u", "-z"].as_slice())
    };
    for _ in 0..50 {
        if attempt(program.0, program.1) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if attempt(program.0, program.2) {
        Ok(())
    } else {
        Err(io::Error::other("still in use"))
    }
}
