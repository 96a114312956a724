//! The odd tree that every round trip must survive: all that a file system allows and a careless program forgets.
//!
//! The tree is the same on every run, but for what needs root; what had to be left out is reported.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, makedev};

use crate::random::Random;
use crate::skip::{can_make_devices, is_root};

/// How large the tree shall be.
#[derive(Debug, Clone, Copy)]
pub struct MadeTreeOptions {
    /// Entries of the one wide directory.
    pub wide: usize,
    /// Apparent size of the sparse files, in bytes.
    pub sparse_len: u64,
}

impl Default for MadeTreeOptions {
    /// All sizes as large as the requirements ask.
    fn default() -> Self {
        Self {
            wide: 100_000,
            sparse_len: 1 << 40,
        }
    }
}

/// Makes the tree in the empty directory `top`, and returns what had to be left out.
///
/// # Errors
///
/// Whatever the file system refuses.
pub fn make(top: &Path, options: &MadeTreeOptions) -> io::Result<Vec<String>> {
    let mut left_out = Vec::new();
    make_names(&top.join("names"))?;
    make_contents(&top.join("contents"))?;
    make_links(&top.join("links"))?;
    make_deep(&top.join("deep"))?;
    make_wide(&top.join("wide"), options.wide)?;
    make_sparse(&top.join("sparse"), options.sparse_len)?;
    make_modes(&top.join("modes"))?;
    make_specials(&top.join("specials"), &mut left_out)?;
    make_owners(&top.join("owners"), &mut left_out)?;
    make_times(&top.join("times"))?;
    Ok(left_out)
}

/// Every byte that a name may hold, alone and among others; the longest names.
fn make_names(dir: &Path) -> io::Result<()> {
    fs::create_dir(dir)?;
    let allowed: Vec<u8> = (1..=255).filter(|&byte| byte != b'/').collect();
    for &byte in &allowed {
        put(dir, &[b'a', byte, b'z'], &[byte])?;
        if byte != b'.' {
            put(dir, &[byte], b"")?;
        }
    }
    put(dir, &allowed, b"all bytes")?;
    put(dir, &[b'f'; 255], b"255 bytes")?;
    fs::create_dir(dir.join(OsStr::from_bytes(&[b'd'; 255])))?;
    symlink("x", dir.join(OsStr::from_bytes(&[0xff; 255])))?;
    for name in [
        "-rf",
        "...",
        " ",
        "new\nline",
        "na\u{ef}ve-\u{65e5}\u{672c}.txt",
        "e\u{301}",
    ] {
        put(dir, name.as_bytes(), name.as_bytes())?;
    }
    Ok(())
}

/// Empty, tiny and large files around the limits of pages and blocks; duplicates and near duplicates.
fn make_contents(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir.join("empty-dir/empty-inside"))?;
    put(dir, b"empty", b"")?;
    let mut random = Random::new(1);
    for len in [
        1,
        511,
        512,
        4095,
        4096,
        4097,
        65_536,
        (1 << 20) - 1,
        1 << 20,
        (1 << 20) + 1,
    ] {
        put(dir, format!("random-{len}").as_bytes(), &random.bytes(len))?;
        put(dir, format!("text-{len}").as_bytes(), &random.text(len))?;
    }
    let large = random.text(5 << 20);
    for copy in 0..3 {
        put(dir, format!("duplicate-{copy}").as_bytes(), &large)?;
    }
    let mut near = large;
    near[4 << 20] ^= 1;
    put(dir, b"near-duplicate", &near)?;
    put(dir, b"zeros", &vec![0; 3 << 20])?;
    for copy in 0..5 {
        put(
            dir,
            format!("small-duplicate-{copy}").as_bytes(),
            b"the same few bytes\n",
        )?;
    }
    Ok(())
}

/// Hard links in and across directories; symlinks of every length and to anywhere.
fn make_links(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir.join("a"))?;
    fs::create_dir_all(dir.join("b"))?;
    put(dir, b"origin", b"linked three times")?;
    fs::hard_link(dir.join("origin"), dir.join("a/second"))?;
    fs::hard_link(dir.join("origin"), dir.join("b/third"))?;
    put(dir, b"b/empty", b"")?;
    fs::hard_link(dir.join("b/empty"), dir.join("a/empty"))?;
    put(dir, b"copy-not-link", b"linked three times")?;

    let long: Vec<u8> = b"component/".repeat(400);
    symlink(OsStr::from_bytes(&long), dir.join("long-target"))?;
    let odd: Vec<u8> = (1..=255).collect();
    symlink(OsStr::from_bytes(&odd), dir.join("odd-target"))?;
    for (name, target) in [
        ("dangling", "/no/such/place"),
        ("up", "../../../.."),
        ("self", "self"),
        ("backslash", "a\\b"),
        ("to-dir", "a"),
        ("to-dir-again", "a"),
    ] {
        symlink(target, dir.join(name))?;
    }
    Ok(())
}

fn make_deep(dir: &Path) -> io::Result<()> {
    let mut deepest = dir.to_owned();
    for level in 1..40 {
        deepest.push(format!("level-{level}"));
    }
    fs::create_dir_all(&deepest)?;
    put(&deepest, b"bottom", b"forty levels down")
}

fn make_wide(dir: &Path, entries: usize) -> io::Result<()> {
    fs::create_dir(dir)?;
    for index in 0..entries {
        let content: &[u8] = if index % 10 == 0 {
            name_of(index).as_bytes()
        } else {
            b""
        };
        put(dir, format!("entry-{index}").as_bytes(), content)?;
    }
    Ok(())
}

/// A few contents that the files of the wide directory share.
const fn name_of(index: usize) -> &'static str {
    match index / 10 % 3 {
        0 => "first of the contents",
        1 => "second of the contents",
        _ => "third of the contents",
    }
}

/// Holes at the start, between, at the end, everywhere, and very large.
fn make_sparse(dir: &Path, len: u64) -> io::Result<()> {
    fs::create_dir(dir)?;
    let sparse = |name: &str, len: u64, data: &[(u64, &[u8])]| -> io::Result<()> {
        let file = File::create(dir.join(name))?;
        for (offset, bytes) in data {
            file.write_all_at(bytes, *offset)?;
        }
        file.set_len(len)
    };
    let page = Random::new(2).bytes(4096);
    sparse("all-hole", 10 << 20, &[])?;
    sparse("huge-all-hole", len, &[])?;
    sparse(
        "huge",
        len,
        &[(0, &page), (len / 2, &page), (len - 4096, &page)],
    )?;
    sparse("huge-tail", len + 5, &[(0, b"start")])?;
    sparse("hole-first", 1 << 20, &[((1 << 20) - 4096, &page)])?;
    sparse("hole-last", 1 << 20, &[(0, &page)])?;
    let many: Vec<(u64, &[u8])> = (0..200).map(|n| (n << 16, page.as_slice())).collect();
    sparse("many-holes", 200 << 16, &many)
}

fn make_modes(dir: &Path) -> io::Result<()> {
    fs::create_dir(dir)?;
    for mode in [
        0o000, 0o400, 0o644, 0o755, 0o1644, 0o2755, 0o4755, 0o6711, 0o7777,
    ] {
        let file = put(dir, format!("file-{mode:04o}").as_bytes(), b"mode");
        let sub = dir.join(format!("dir-{mode:04o}"));
        file.and_then(|()| fs::create_dir(&sub))?;
        // Without root a directory must stay readable to be walked.
        let dir_mode = if is_root() { mode } else { mode | 0o500 };
        let file_mode = if is_root() { mode } else { mode | 0o400 };
        fs::set_permissions(sub, PermissionsExt::from_mode(dir_mode))?;
        let file = dir.join(format!("file-{mode:04o}"));
        fs::set_permissions(file, PermissionsExt::from_mode(file_mode))?;
    }
    Ok(())
}

fn make_specials(dir: &Path, left_out: &mut Vec<String>) -> io::Result<()> {
    fs::create_dir(dir)?;
    let node = |name: &str, kind, mode: u32, device| {
        rustix::fs::mknodat(CWD, dir.join(name), kind, Mode::from_raw_mode(mode), device)
    };
    node("fifo", FileType::Fifo, 0o620, 0)?;
    node("socket", FileType::Socket, 0o711, 0)?;
    if can_make_devices() {
        node("null", FileType::CharacterDevice, 0o666, makedev(1, 3))?;
        node("disk", FileType::BlockDevice, 0o660, makedev(259, 70_000))?;
        node(
            "far",
            FileType::CharacterDevice,
            0o600,
            makedev(4000, 1_000_000),
        )?;
    } else {
        left_out.push("devices (need root)".to_owned());
    }
    Ok(())
}

fn make_owners(dir: &Path, left_out: &mut Vec<String>) -> io::Result<()> {
    fs::create_dir(dir)?;
    if !is_root() {
        left_out.push("foreign owners (need root)".to_owned());
        return Ok(());
    }
    for (uid, gid) in [
        (0, 1),
        (1000, 100),
        (65_534, 65_535),
        (65_536, 70_000),
        (4_000_000_000, 3),
    ] {
        let name = format!("owned-{uid}-{gid}");
        put(dir, name.as_bytes(), b"owner")?;
        lchown(dir.join(&name), Some(uid), Some(gid))?;
        let link = dir.join(format!("link-{uid}"));
        symlink(&name, &link)?;
        lchown(link, Some(uid), Some(gid))?;
    }
    fs::set_permissions(
        dir.join("owned-1000-100"),
        PermissionsExt::from_mode(0o4755),
    )
}

/// Times before 1970, after 2038 and 2106, and nanoseconds; the directories last, so that they keep theirs.
fn make_times(dir: &Path) -> io::Result<()> {
    fs::create_dir(dir)?;
    let times = [
        ("epoch", 0, 0),
        ("before-epoch", -1, 999_999_999),
        ("1902", -2_145_916_800, 1),
        ("2038", 2_147_483_648, 500_000_000),
        ("after-2106", 4_294_967_296, 123_456_789),
        ("2400", 13_569_465_600, 999_999_999),
        ("now-ish", 1_700_000_000, 987_654_321),
    ];
    let mut dirs = vec![];
    for (name, sec, nsec) in times {
        put(dir, name.as_bytes(), name.as_bytes())?;
        set_times(&dir.join(name), sec, nsec)?;
        let link = dir.join(format!("link-{name}"));
        symlink(name, &link)?;
        set_times(&link, sec, nsec)?;
        let sub = dir.join(format!("dir-{name}"));
        fs::create_dir(&sub)?;
        put(&sub, b"inside", b"")?;
        dirs.push((sub, sec, nsec));
    }
    dirs.push((dir.to_owned(), 1_234_567_890, 1));
    dirs.iter()
        .try_for_each(|(path, sec, nsec)| set_times(path, *sec, *nsec))
}

/// Sets the modification time, and an access time that differs from it, without following a symlink.
///
/// # Errors
///
/// Whatever the file system refuses.
pub fn set_times(path: &Path, sec: i64, nsec: u32) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: sec + 86_400,
            tv_nsec: i64::from(nsec) / 2,
        },
        last_modification: Timespec {
            tv_sec: sec,
            tv_nsec: nsec.into(),
        },
    };
    Ok(rustix::fs::utimensat(
        CWD,
        path,
        &times,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

fn put(dir: &Path, name: &[u8], content: &[u8]) -> io::Result<()> {
    fs::write(dir.join(OsStr::from_bytes(name)), content)
}

/// Makes a tree of many empty and tiny files, a thousand a directory, and returns its number of files.
///
/// # Errors
///
/// Whatever the file system refuses.
pub fn make_many(top: &Path, files: usize) -> io::Result<usize> {
    const PER_DIR: usize = 1000;
    let mut dir = PathBuf::new();
    for index in 0..files {
        if index % PER_DIR == 0 {
            dir = top.join(format!("group-{}", index / PER_DIR / 10));
            dir.push(format!("part-{}", index / PER_DIR % 10));
            fs::create_dir_all(&dir)?;
        }
        let content = match index % 4 {
            0 => String::new(),
            1 => format!("unique content of file {index}\n"),
            _ => format!("shared content {}\n", index % 4000),
        };
        fs::write(dir.join(format!("file_{index}.txt")), content)?;
    }
    Ok(files)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::compare::{Aspects, assert_same, trees};
    use crate::tree::{Digest, Kind, TreeOptions, snapshot};

    #[test]
    fn the_tree_holds_what_it_promises() {
        let dir = tempfile::tempdir().unwrap();
        let options = MadeTreeOptions {
            wide: 50,
            ..MadeTreeOptions::default()
        };
        let left_out = make(dir.path(), &options).unwrap();
        let read = || {
            snapshot(
                dir.path(),
                &TreeOptions {
                    digest: Digest::Positions,
                },
            )
            .unwrap()
        };
        let tree = read();
        let has = |kind| tree.nodes.iter().any(|node| node.kind == kind);
        assert!(has(Kind::Fifo) && has(Kind::Socket) && has(Kind::Symlink));
        assert_eq!(
            has(Kind::CharDevice) && has(Kind::BlockDevice),
            left_out.is_empty()
        );
        assert!(tree.nodes.iter().any(|node| node.target.len() == 4000));
        assert_eq!(tree.find(b"sparse/huge").unwrap().size, 1 << 40);
        assert_eq!(tree.find(b"links/origin").unwrap().nlink, 3);
        assert_same("read twice", &trees(&tree, &read(), &Aspects::all(1)));
    }
}
