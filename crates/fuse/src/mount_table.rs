//! The kernel's list of the mounts that this process sees.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use crate::kernel_mount::Numbers;

/// Where the kernel lists the mounts.
const TABLE: &str = "/proc/self/mountinfo";

/// Returns where the mount with these numbers and of this type stands now.
///
/// Numbers are given anew: with the type as well, what stands where a mount of ours has gone is not taken for it.
pub(crate) fn find(numbers: Numbers, kind: &str) -> Option<PathBuf> {
    // A list that cannot be read has nothing in it.
    let table = std::fs::read(TABLE).ok()?;
    find_in(&table, numbers, kind)
}

fn find_in(table: &[u8], numbers: Numbers, kind: &str) -> Option<PathBuf> {
    let device = format!("{}:{}", numbers.device.0, numbers.device.1);
    let is_same = |line: &Line<'_>| {
        line.id == numbers.mount && line.device == device.as_bytes() && line.kind == kind.as_bytes()
    };
    lines(table).find(is_same).map(|line| line.mountpoint)
}

/// A mount as the kernel lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The kernel's number of the mount.
    pub id: u64,
    /// Major and minor number of the file system's device, as `0:52`.
    pub device: &'a [u8],
    /// Where it stands.
    pub mountpoint: PathBuf,
    /// Options of the mount, such as `ro,nosuid`.
    pub options: &'a [u8],
    /// The type of the file system.
    pub kind: &'a [u8],
    /// What was mounted, as it was given.
    pub source: PathBuf,
}

/// The mounts in a list of the form of `/proc/PID/mountinfo`, in the order in which they were mounted.
pub fn lines(table: &[u8]) -> impl Iterator<Item = Line<'_>> {
    table.split(|byte| *byte == b'\n').filter_map(parse)
}

/// A line: number, parent, device, root, mount point, options, optional fields, `-`, type, source, super options.
fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let device = fields.nth(1)?;
    let mountpoint = unescape(fields.nth(1)?);
    let options = fields.next()?;
    fields.find(|field| *field == b"-")?;
    Some(Line {
        id,
        device,
        mountpoint,
        options,
        kind: fields.next()?,
        source: unescape(fields.next()?),
    })
}

/// Undoes `\040` and its like in a field of the kernel's list.
fn unescape(field: &[u8]) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_none_are_left_out() {
        let ids = |table| lines(table).map(|line| line.id).collect::<Vec<_>>();
        assert_eq!(ids(b"24 1 8:1 / / rw - ext4 /dev/vda rw"), [24]);
        for broken in [&b""[..], b"1 2 3 4", b"x 1 8:1 / / rw - ext4 /dev/vda rw"] {
            assert!(ids(broken).is_empty());
        }
    }

    #[test]
    fn a_mount_is_known_by_its_numbers_and_type() {
        let table = b"24 1 8:1 / / rw shared:1 - ext4 /dev/vda rw
97 24 0:52 / /mnt/with\\040space ro,nosuid shared:3 master:1 - fuse.dwarfs /x ro
98 24 0:52 /sub /bound ro - fuse.dwarfs /x ro
";
        let find = |device, mount, kind| find_in(table, Numbers { device, mount }, kind);
        let there = Some("/mnt/with space".into());
        assert_eq!(find((0, 52), 97, "fuse.dwarfs"), there);
        assert_eq!(find((0, 52), 97, "overlay"), None);
        assert_eq!(find((0, 53), 97, "fuse.dwarfs"), None);
        assert_eq!(find((0, 52), 0, "fuse.dwarfs"), None);
    }
}
