//! The extended attributes that the driver makes up.

use std::path::Path;

use durin_testkit::require;
use rustix::io::Errno;

use crate::{Mount, ready};

pub(crate) fn xattr(path: &Path, name: &str) -> Result<String, Errno> {
    let mut value = [0; 4096];
    let len = rustix::fs::lgetxattr(path, name, &mut value[..])?;
    Ok(String::from_utf8(value[..len].to_vec()).unwrap())
}

fn names(path: &Path) -> Vec<String> {
    let mut list = [0_u8; 4096];
    let len = rustix::fs::llistxattr(path, &mut list[..]).unwrap();
    String::from_utf8(list[..len].to_vec())
        .unwrap()
        .split_terminator('\0')
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_root_tells_the_driver_and_all_tell_where_they_are() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("good", "compat-v0.4.1"));
    let pid = std::process::id().to_string();
    let all = ["user.dwarfs.driver.pid", "user.dwarfs.inodeinfo"];
    assert_eq!(names(mount.path()), all);
    assert_eq!(xattr(mount.path(), all[0]), Ok(pid));

    let file = mount.join("bench.sh");
    assert_eq!(names(&file), all[1..]);
    assert_eq!(xattr(&file, all[0]), Err(Errno::NODATA));
    assert_eq!(xattr(&file, "security.capability"), Err(Errno::NODATA));
    let info = xattr(&file, all[1]).unwrap();
    let info = durin_testkit::json::parse(&info).unwrap();
    assert_eq!(info["modestring"], "-rw-r--r--");
    assert_eq!(info["uid"], 1000);
    assert_eq!(info["chunks"], "too many chunks to show (28)");
}

/// Whoever copies a file with its attributes wants each that is listed.
#[test]
fn all_that_is_listed_can_be_had() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("good", "compat-v0.4.1"));
    let mut links = 0;
    for name in ["", "foobar", "bench.sh"] {
        let path = mount.join(name);
        links += usize::from(path.is_symlink());
        for attribute in names(&path) {
            let value = xattr(&path, &attribute).unwrap();
            let size = rustix::fs::lgetxattr_query(&path, &attribute).unwrap();
            assert_eq!(size, value.len(), "{attribute}");
        }
        assert_eq!(names(&path).is_empty(), path.is_symlink(), "{name}");
    }
    assert_eq!(links, 1);
}

#[test]
fn few_chunks_are_shown() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("generated", "default-l7-S16"));
    let info = xattr(&mount.join("bin/run.sh"), "user.dwarfs.inodeinfo").unwrap();
    let info = durin_testkit::json::parse(&info).unwrap();
    assert_eq!(info["chunks"][0]["kind"], "data");
    assert_eq!(info["chunks"][0]["size"], 17);
    assert_eq!(info["modestring"], "-rwxr-xr-x");
}

#[test]
fn a_short_buffer_is_refused() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("good", "compat-v0.4.1"));
    let mut short = [0; 3];
    let got = rustix::fs::lgetxattr(mount.path(), "user.dwarfs.inodeinfo", &mut short[..]);
    assert_eq!(got, Err(Errno::RANGE));
    let size = rustix::fs::lgetxattr_query(mount.path(), "user.dwarfs.inodeinfo");
    assert!(size.is_ok_and(|size| size > 3), "{size:?}");
}

#[test]
fn the_session_is_told_on_the_root_alone() {
    let vectors = require!(ready());
    let mount = Mount::new(&vectors.image("good", "compat-v0.4.1"));
    let name = "user.dwarfs.driver.session";
    let session = durin_testkit::json::parse(&xattr(mount.path(), name).unwrap()).unwrap();
    assert!(session["requests"]["getxattr"].as_u64() > Some(0));
    assert_eq!(xattr(&mount.join("bench.sh"), name), Err(Errno::NODATA));
}
