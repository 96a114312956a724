//! The kernel's list of the mounts that this process sees, where a mount is found that was moved.

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

/// A line: number, parent, device, root, mount point, options, optional fields, `-`, type, source, super options.
fn find_in(table: &[u8], numbers: Numbers, kind: &str) -> Option<PathBuf> {
    let id = numbers.mount.to_string();
    let device = format!("{}:{}", numbers.device.0, numbers.device.1);
    table.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let is_same = fields.next()? == id.as_bytes() && fields.nth(1)? == device.as_bytes();
        let mountpoint = fields.nth(1)?;
        fields.find(|field| *field == b"-")?;
        (is_same && fields.next()? == kind.as_bytes()).then(|| unescape(mountpoint))
    })
}

/// Undoes `\040` and its like in a field of the kernel's list.
#[must_use]
pub fn unescape(field: &[u8]) -> PathBuf {
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
