//! The images that are mounted, as the kernel lists them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use durin_format::{Error, Result};

/// Where the kernel lists the mounts that this process sees.
const TABLE: &str = "/proc/self/mountinfo";

/// The type of our file systems.
const FS_TYPE: &str = "fuse.dwarfs";

/// An attribute of the root directory that the driver answers root with its process.
const PID_ATTRIBUTE: &str = "user.dwarfs.driver.pid";

/// A mounted image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MountedImage {
    pub(super) image: PathBuf,
    pub(super) mountpoint: PathBuf,
    /// Options of the mount, such as `ro,nosuid`.
    pub(super) options: String,
}

impl MountedImage {
    /// The process that serves it, if it says so.
    pub(super) fn driver(&self) -> Option<u32> {
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
    Ok(table
        .split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect())
}

/// A line: number, parent, device, root, mount point, options, optional fields, `-`, type, source, super options.
fn parse(line: &[u8]) -> Option<MountedImage> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mountpoint = path(fields.nth(4)?);
    let options = String::from_utf8_lossy(fields.next()?).into_owned();
    fields.find(|field| *field == b"-")?;
    if fields.next()? != FS_TYPE.as_bytes() {
        return None;
    }
    Some(MountedImage {
        image: path(fields.next()?),
        mountpoint,
        options,
    })
}

/// Undoes `\040` and its like.
fn path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let code = match (first, tail.get(..3)) {
            (b'\\', Some(digits)) => std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 8).ok()),
            _ => None,
        };
        bytes.push(code.unwrap_or(first));
        rest = tail
            .get(if code.is_some() { 3 } else { 0 }..)
            .unwrap_or_default();
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Whether a mount is what a user means by `target`: its mount point, or its image.
pub(super) fn is_meant(mount: &MountedImage, target: &Path) -> bool {
    // A mount point whose driver has died cannot be asked for its true path.
    let absolute = std::path::absolute(target).unwrap_or_else(|_| target.to_owned());
    let canonical = target.canonicalize().unwrap_or_else(|_| absolute.clone());
    [&absolute, &canonical]
        .iter()
        .any(|path| **path == mount.mountpoint || **path == mount.image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let line = b"97 30 0:52 / /mnt/with\\040space ro,nosuid - fuse.dwarfs /tmp/a\\134b.dwarfs ro,user_id=0";
        let expect = MountedImage {
            image: "/tmp/a\\b.dwarfs".into(),
            mountpoint: "/mnt/with space".into(),
            options: "ro,nosuid".to_owned(),
        };
        assert_eq!(parse(line), Some(expect));
        let with_fields = b"97 30 0:52 / /mnt ro shared:3 master:1 - fuse.dwarfs x ro";
        assert!(parse(with_fields).is_some());
        for other in [&b"24 1 8:1 / / rw - ext4 /dev/vda rw"[..], b"", b"1 2 3 4"] {
            assert_eq!(parse(other), None);
        }
    }
}
