//! The images that are mounted, as the kernel lists them.

use std::path::{Path, PathBuf};

use durin_format::{Error, Result};
use durin_fuse::mount_table;

/// Where the kernel lists the mounts that this process sees.
const TABLE: &str = "/proc/self/mountinfo";

/// The type of our file systems.
const FS_TYPE: &str = "fuse.dwarfs";

/// An attribute of the root directory that the driver answers root with its process.
const PID_ATTRIBUTE: &str = "user.dwarfs.driver.pid";

/// A mounted image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MountedImage {
    /// The kernel's number of the mount.
    pub(super) id: u64,
    pub(super) image: PathBuf,
    pub(super) mountpoint: PathBuf,
    /// Options of the mount, such as `ro,nosuid`.
    pub(super) options: String,
    /// Something else was mounted over it, at the same place.
    pub(super) is_covered: bool,
}

impl MountedImage {
    /// The process that serves it, if it says so.
    pub(super) fn driver(&self) -> Option<u32> {
        if self.is_covered {
            return None;
        }
        let mut value = [0; 32];
        let len = rustix::fs::getxattr(&self.mountpoint, PID_ATTRIBUTE, &mut value[..]).ok()?;
        std::str::from_utf8(value.get(..len)?)
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

/// Lists mounted images, in the order in which they were mounted.
///
/// # Errors
/// `Io` if the kernel's list cannot be read.
pub(super) fn read() -> Result<Vec<MountedImage>> {
    let table =
        std::fs::read(TABLE).map_err(|error| Error::io(format!("cannot read {TABLE}"), error))?;
    Ok(images(&table))
}

fn images(table: &[u8]) -> Vec<MountedImage> {
    let mut images: Vec<MountedImage> = Vec::new();
    for line in mount_table::lines(table) {
        for earlier in &mut images {
            earlier.is_covered |= earlier.mountpoint == line.mountpoint;
        }
        if line.kind == FS_TYPE.as_bytes() {
            images.push(MountedImage {
                id: line.id,
                image: line.source,
                mountpoint: line.mountpoint,
                options: String::from_utf8_lossy(line.options).into_owned(),
                is_covered: false,
            });
        }
    }
    images
}

/// Returns what a user means by `target`: the image on top at that mount point, or all mounts of that image.
pub(super) fn meant<'a>(mounts: &'a [MountedImage], target: &Path) -> Vec<&'a MountedImage> {
    // A mount point whose driver has died cannot be asked for its true path.
    let absolute = std::path::absolute(target).unwrap_or_else(|_| target.to_owned());
    let canonical = target.canonicalize().unwrap_or_else(|_| absolute.clone());
    let is_target = |path: &Path| path == absolute || path == canonical;
    let is_on_top = |mount: &&MountedImage| !mount.is_covered && is_target(&mount.mountpoint);
    // The kernel keeps an image's path as it was given.
    let is_image =
        |path: &Path| is_target(path) || path.canonicalize().is_ok_and(|path| is_target(&path));
    match mounts.iter().find(is_on_top) {
        Some(mount) => vec![mount],
        None => mounts
            .iter()
            .filter(|mount| is_image(&mount.image))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let line = b"97 30 0:52 / /mnt/with\\040space ro,nosuid - fuse.dwarfs /tmp/a\\134b.dwarfs ro,user_id=0";
        let expect = MountedImage {
            id: 97,
            image: "/tmp/a\\b.dwarfs".into(),
            mountpoint: "/mnt/with space".into(),
            options: "ro,nosuid".to_owned(),
            is_covered: false,
        };
        assert_eq!(images(line), [expect]);
        let with_fields = b"97 30 0:52 / /mnt ro shared:3 master:1 - fuse.dwarfs x ro";
        assert_eq!(images(with_fields).len(), 1);
        let other = b"24 1 8:1 / / rw - ext4 /dev/vda rw";
        assert!(images(other).is_empty());
    }

    #[test]
    fn mounts_over_each_other() {
        let table = b"1 0 0:1 / /a ro - fuse.dwarfs /x ro
2 0 0:2 / /b ro - fuse.dwarfs /x ro
3 1 0:3 / /a ro - fuse.dwarfs /y ro
4 2 0:4 / /b rw - tmpfs none rw
";
        let mounts = images(table);
        let meant = |target: &str| {
            let meant = meant(&mounts, Path::new(target));
            meant.iter().map(|mount| mount.id).collect::<Vec<_>>()
        };
        assert_eq!(meant("/a"), [3], "the upper one");
        assert!(meant("/b").is_empty(), "what is on top is not ours");
        assert_eq!(meant("/x"), [1, 2]);
        assert_eq!(meant("/y"), [3]);
    }
}
