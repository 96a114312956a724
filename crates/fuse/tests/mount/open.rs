//! Opening and changing: nothing can be changed, and how that is said.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use durin_fuse::{FsOptions, MountOptions};
use durin_testkit::require;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::{Mount, ready};

const FILE: &str = "bench.sh";
const LINK: &str = "foobar";

fn errno<T>(result: io::Result<T>) -> Option<Errno> {
    result.err().as_ref().and_then(Errno::from_io_error)
}

fn check_changes(mount: &Mount) {
    let file = mount.join(FILE);
    let new = mount.join("new");
    let changes = [
        ("create", errno(File::create_new(&new))),
        ("mkdir", errno(fs::create_dir(&new))),
        ("symlink", errno(symlink("x", &new))),
        ("link", errno(fs::hard_link(&file, &new))),
        ("unlink", errno(fs::remove_file(&file))),
        (
            "rmdir",
            errno(fs::remove_dir(mount.join("empty/alsoempty"))),
        ),
        ("rename", errno(fs::rename(&file, &new))),
        (
            "chmod",
            errno(fs::set_permissions(
                &file,
                fs::metadata(&file).unwrap().permissions(),
            )),
        ),
        ("truncate", errno(truncate(&file))),
    ];
    for (what, found) in changes {
        assert_eq!(found, Some(Errno::ROFS), "{what}");
    }
    assert_eq!(fs::metadata(&file).unwrap().len(), 1517);
}

/// Truncates by opening; which of the two errors it gives depends on who refuses.
fn truncate(path: &Path) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::TRUNC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::ACCESS) => Err(Errno::ROFS.into()),
        opened => Ok(opened.map(|_| ())?),
    }
}

#[test]
fn a_mount_is_read_only() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("good", "compat-v0.4.1"));
    check_changes(&mount);
    let for_writing = OpenOptions::new().append(true).open(mount.join(FILE));
    assert_eq!(errno(for_writing), Some(Errno::ROFS));
    assert_eq!(errno(File::open(mount.join("absent"))), Some(Errno::NOENT));
    assert_eq!(errno(fs::read(mount.join("empty"))), Some(Errno::ISDIR));
}

#[test]
fn a_mount_with_rw_refuses_to_open_for_writing() {
    let vectors = require!(ready());
    let options = MountOptions {
        ro: false,
        ..MountOptions::default()
    };
    let image = vectors.image("good", "compat-v0.4.1");
    let mount = Mount::with(&image, &FsOptions::default(), &options);
    check_changes(&mount);
    for (what, options) in [
        ("write", OpenOptions::new().write(true).clone()),
        ("append", OpenOptions::new().append(true).clone()),
        (
            "read and write",
            OpenOptions::new().read(true).write(true).clone(),
        ),
    ] {
        let opened = options.open(mount.join(FILE));
        assert_eq!(errno(opened), Some(Errno::ACCESS), "{what}");
    }
    assert_eq!(fs::read(mount.join(FILE)).unwrap().len(), 1517);
}

#[test]
fn modes_and_owners_as_asked() {
    let vectors = require!(ready());
    let fs = FsOptions {
        readonly: true,
        uid: Some(4711),
        gid: Some(4712),
        blocksize: 65_536,
        ..FsOptions::default()
    };
    let image = vectors.image("good", "compat-v0.4.1");
    let plain = Mount::new(&image);
    let mount = Mount::with(&image, &fs, &MountOptions::default());
    for path in ["", FILE, "foo"] {
        let before = fs::metadata(plain.join(path)).unwrap();
        let after = fs::metadata(mount.join(path)).unwrap();
        assert_ne!(before.mode() & 0o222, 0, "{path}");
        assert_eq!(after.mode(), before.mode() & !0o222, "{path}");
        assert_eq!((after.uid(), after.gid()), (4711, 4712), "{path}");
        // Small directories are listed with small buffers.
        let sizes = match before.is_dir() {
            true => (4096, 4096),
            false => (512 * 1024, 65_536),
        };
        assert_eq!((before.blksize(), after.blksize()), sizes, "{path}");
    }
}

#[test]
fn others_are_let_in_only_when_asked_for() {
    let vectors = require!(ready());
    if !durin_testkit::skip::is_root() {
        durin_testkit::skip::skipped("only root can become somebody else");
        return;
    }
    let image = vectors.image("good", "compat-v0.4.1");
    for (allow_other, allow_root, expected) in [
        (false, false, false),
        (false, true, false),
        (true, false, true),
    ] {
        let options = MountOptions {
            allow_other,
            allow_root,
            ..MountOptions::default()
        };
        let mount = Mount::with(&image, &FsOptions::default(), &options);
        // What is cached must not be a way in either.
        fs::read_dir(mount.path()).unwrap().for_each(drop);
        fs::read(mount.join(FILE)).unwrap();
        for (program, path) in [("ls", mount.path().to_owned()), ("cat", mount.join(FILE))] {
            let status = Command::new(program)
                .arg(path)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .uid(65_534)
                .gid(65_534)
                .status()
                .unwrap();
            let what = format!("{program}: other {allow_other}, root {allow_root}");
            assert_eq!(status.success(), expected, "{what}");
        }
    }
}

#[test]
fn what_the_owner_has_looked_at_is_not_shown_to_others() {
    let vectors = require!(ready());
    if !durin_testkit::skip::is_root() {
        durin_testkit::skip::skipped("only root can become somebody else");
        return;
    }
    let image = vectors.image("good", "compat-v0.4.1");
    for (options, expected) in [
        ("allow_other", true),
        ("allow_root", false),
        ("auto_unmount", false),
    ] {
        let has_helper = Command::new("fusermount3").arg("-V").output().is_ok();
        if options == "auto_unmount" && !has_helper {
            durin_testkit::skip::skipped("no fusermount3");
            continue;
        }
        let mut mount_options = MountOptions::default();
        mount_options.set(options).unwrap();
        let mount = Mount::with(&image, &FsOptions::default(), &mount_options);
        for _ in 0..2 {
            fs::metadata(mount.join(FILE)).unwrap();
            fs::read_link(mount.join(LINK)).unwrap();
            for arguments in [["stat", FILE], ["stat", "foo"], ["readlink", LINK]] {
                let mut looking = Command::new(arguments[0]);
                looking.arg(mount.join(arguments[1]));
                let output = looking.uid(65_534).gid(65_534).output().unwrap();
                let what = format!("{options}: {arguments:?}: {output:?}");
                assert_eq!(output.status.success(), expected, "{what}");
            }
        }
    }
}

/// A name that somebody may not look up would be dropped by the kernel, with the mounts below it.
#[test]
fn whom_is_not_let_in_takes_no_mounts_away() {
    let vectors = require!(ready());
    if !durin_testkit::skip::is_root() {
        durin_testkit::skip::skipped("only root can become somebody else");
        return;
    }
    let mut options = MountOptions::default();
    options.set("allow_root").unwrap();
    let image = vectors.image("good", "compat-v0.4.1");
    let outer = Mount::with(&image, &FsOptions::default(), &options);
    let inside = outer.join("foo");
    let mut mounting = Command::new("mount");
    mounting.args(["-t", "tmpfs", "none"]).arg(&inside);
    assert!(mounting.status().unwrap().success());
    let mut looking = Command::new("stat");
    let looked = looking.arg(&inside).uid(65_534).gid(65_534).output();
    let is_there = durin_testkit::mount::is_mount_point(&inside);
    if is_there {
        durin_testkit::mount::unmount(&inside).unwrap();
    }
    assert!(looked.is_ok() && is_there);
}
