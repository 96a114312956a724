//! What POSIX asks of a file system that cannot be changed, call by call, in the manner of pjdfstest.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use durin_testkit::mount::{self, Mount};
use durin_testkit::require;
use rustix::fs::{
    Access, AtFlags, CWD, FileType, Gid, Mode, OFlags, StatVfsMountFlags, Timespec, Timestamps,
    Uid, XattrFlags,
};
use rustix::io::Errno;

use crate::support::{programs, subdir, work_dir};

struct Place {
    mounted: Mount,
    _work: tempfile::TempDir,
}

impl Place {
    fn new(options: &[&str]) -> Self {
        let work = work_dir();
        let tree = subdir(&work, "tree");
        fs::create_dir_all(tree.join("dir/inner")).unwrap();
        fs::write(tree.join("dir/file"), "content").unwrap();
        fs::hard_link(tree.join("dir/file"), tree.join("hard")).unwrap();
        fs::write(tree.join("private"), "x").unwrap();
        fs::set_permissions(tree.join("private"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("dir/file", tree.join("link")).unwrap();
        symlink("loop2", tree.join("loop1")).unwrap();
        symlink("loop1", tree.join("loop2")).unwrap();
        symlink("nowhere", tree.join("dangling")).unwrap();
        let image = work.path().join("image");
        programs().build(&tree, &image).arg("-l1").succeed();
        let mounted = Mount::new(&programs().path("dwarfs"), &image, options);
        Self {
            mounted,
            _work: work,
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.mounted.path().join(path)
    }
}

#[track_caller]
fn check<T>(what: &str, result: rustix::io::Result<T>, expect: Errno) {
    assert_eq!(result.err(), Some(expect), "{what}");
}

fn open(path: &Path, flags: OFlags) -> rustix::io::Result<()> {
    rustix::fs::open(path, flags, Mode::RUSR).map(|_| ())
}

const NOW: Timestamps = Timestamps {
    last_access: Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    },
    last_modification: Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    },
};

#[test]
fn every_change_is_refused() {
    require!(mount::available());
    let place = Place::new(&[]);
    let (file, dir, new, link) = (
        place.at("dir/file"),
        place.at("dir"),
        place.at("new"),
        place.at("link"),
    );
    let rofs = |what: &str, result: rustix::io::Result<()>| check(what, result, Errno::ROFS);
    let mode = Mode::from_raw_mode(0o644);
    let own = (Some(Uid::from_raw(1)), Some(Gid::from_raw(1)));
    rofs("open to write", open(&file, OFlags::WRONLY));
    rofs("open to read and write", open(&file, OFlags::RDWR));
    rofs(
        "open to truncate",
        open(&file, OFlags::WRONLY | OFlags::TRUNC),
    );
    rofs("create", open(&new, OFlags::WRONLY | OFlags::CREATE));
    rofs("mkdir", rustix::fs::mkdir(&new, mode));
    rofs("rmdir", rustix::fs::rmdir(place.at("dir/inner")));
    rofs("rmdir of a full one", rustix::fs::rmdir(&dir));
    rofs("unlink", rustix::fs::unlink(&file));
    rofs("symlink", rustix::fs::symlink("x", &new));
    rofs("link", rustix::fs::link(&file, &new));
    rofs("rename", rustix::fs::rename(&file, &new));
    rofs("rename over", rustix::fs::rename(&file, place.at("hard")));
    rofs(
        "mkfifo",
        rustix::fs::mknodat(CWD, &new, FileType::Fifo, mode, 0),
    );
    rofs("chmod", rustix::fs::chmod(&file, mode));
    rofs("chown", rustix::fs::chown(&file, own.0, own.1));
    rofs(
        "lchown",
        rustix::fs::chownat(CWD, &link, own.0, own.1, AtFlags::SYMLINK_NOFOLLOW),
    );
    rofs(
        "utimens",
        rustix::fs::utimensat(CWD, &file, &NOW, AtFlags::empty()),
    );
    rofs(
        "setxattr",
        rustix::fs::setxattr(&file, "user.x", b"1", XattrFlags::empty()),
    );
    rofs("removexattr", rustix::fs::removexattr(&file, "user.x"));
    rofs(
        "access to write",
        rustix::fs::access(&file, Access::WRITE_OK),
    );
    let read = rustix::fs::open(&file, OFlags::RDONLY, Mode::empty()).unwrap();
    check("fchmod", rustix::fs::fchmod(&read, mode), Errno::ROFS);
    check("futimens", rustix::fs::futimens(&read, &NOW), Errno::ROFS);
    // Not for want of permission, but because of how it was opened.
    check("write", rustix::io::write(&read, b"x"), Errno::BADF);
    check("ftruncate", rustix::fs::ftruncate(&read, 0), Errno::INVAL);
    assert_eq!(fs::read(&file).unwrap(), b"content");
}

#[test]
fn what_is_wrong_with_a_name_is_told() {
    require!(mount::available());
    let place = Place::new(&[]);
    let read = OFlags::RDONLY;
    let at = |path: &str| place.at(path);
    check("absent", open(&at("absent"), read), Errno::NOENT);
    check("absent, again", open(&at("absent"), read), Errno::NOENT);
    check("below a file", open(&at("dir/file/x"), read), Errno::NOTDIR);
    check(
        "a file with a slash",
        open(&at("dir/file/"), read),
        Errno::NOTDIR,
    );
    check(
        "a file as a directory",
        open(&at("dir/file"), read | OFlags::DIRECTORY),
        Errno::NOTDIR,
    );
    check(
        "a directory to write",
        open(&at("dir"), OFlags::WRONLY),
        Errno::ISDIR,
    );
    check(
        "what is there, anew",
        open(&at("hard"), OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY),
        Errno::EXIST,
    );
    check("a circle of links", open(&at("loop1"), read), Errno::LOOP);
    check(
        "a link itself",
        open(&at("link"), read | OFlags::NOFOLLOW),
        Errno::LOOP,
    );
    check("a dangling link", open(&at("dangling"), read), Errno::NOENT);
    check(
        "a file's target",
        rustix::fs::readlink(at("hard"), Vec::new()),
        Errno::INVAL,
    );
    check(
        "mkdir of what is there",
        rustix::fs::mkdir(at("dir"), Mode::RWXU),
        Errno::EXIST,
    );
    check(
        "a long path",
        open(&at(&"d/".repeat(2100)), read),
        Errno::NAMETOOLONG,
    );
    let long = "n".repeat(256);
    let error = open(&at(&long), read).unwrap_err();
    assert!(
        [Errno::NAMETOOLONG, Errno::NOENT].contains(&error),
        "{error}"
    );
    for path in [
        "link",
        "dir/../hard",
        "dir/./inner/../file",
        "dir//file",
        "./dir/inner/../../hard",
    ] {
        assert_eq!(fs::read(at(path)).unwrap(), b"content", "{path}");
    }
    assert!(fs::metadata(at("dir/inner/")).unwrap().is_dir());
    // Nul cannot be part of a name; the call never gets here.
    assert!(CString::new("a\0b").is_err());
}

#[test]
fn numbers_are_what_they_should_be() {
    require!(mount::available());
    let place = Place::new(&[]);
    let stat = |path: &str| fs::symlink_metadata(place.at(path)).unwrap();
    let (file, hard) = (stat("dir/file"), stat("hard"));
    assert_eq!((file.nlink(), file.ino()), (2, hard.ino()));
    assert_eq!(stat("private").nlink(), 1);
    assert_ne!(stat("private").ino(), file.ino());
    assert_eq!(stat("link").len(), "dir/file".len() as u64);
    assert_eq!(stat("dir/..").ino(), stat("").ino());
    assert_eq!(stat("dir/inner/..").ino(), stat("dir").ino());
    for entry in fs::read_dir(place.at("")).unwrap() {
        use std::os::unix::fs::DirEntryExt;
        let entry = entry.unwrap();
        assert_eq!(entry.ino(), entry.metadata().unwrap().ino(), "{entry:?}");
        assert_eq!(
            entry.file_type().unwrap(),
            entry.metadata().unwrap().file_type()
        );
    }
    let before = stat("dir/file").ino();
    std::fs::write("/proc/sys/vm/drop_caches", "2").ok();
    assert_eq!(stat("dir/file").ino(), before);
    let all = rustix::fs::statvfs(place.at("")).unwrap();
    assert!(all.f_flag.contains(StatVfsMountFlags::RDONLY));
    assert_eq!((all.f_bfree, all.f_bavail, all.f_ffree), (0, 0, 0));
    assert!(all.f_files >= 8 && all.f_blocks > 0);
    let file = File::open(place.at("hard")).unwrap();
    rustix::fs::fsync(&file).unwrap();
}

#[test]
fn permissions_hold_if_asked_for() {
    require!(mount::available());
    if !durin_testkit::skip::is_root() {
        durin_testkit::skip::skipped("only root can become somebody else");
        return;
    }
    use std::os::unix::process::CommandExt;
    let place = Place::new(&["allow_other,default_permissions"]);
    let reads = |path: &str| {
        let mut cat = std::process::Command::new("cat");
        cat.arg(place.at(path)).uid(65_534).gid(65_534);
        cat.stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        cat.status().unwrap().success()
    };
    assert!(reads("hard"));
    assert!(!reads("private"));
    assert!(fs::read(place.at("private")).is_ok(), "root may");
    let run = rustix::fs::access(place.at("hard"), Access::EXEC_OK);
    check("access to run", run, Errno::ACCESS);
}
