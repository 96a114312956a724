//! The file system as a whole.

use durin_testkit::require;

use crate::{Mount, open, ready};

#[test]
fn sizes_are_in_bytes_and_nothing_is_free() {
    let vectors = require!(ready());
    let path = vectors.image("generated", "default-l7-S16");
    let image = open(&path);
    let mount = Mount::new(&path);
    let stat = rustix::fs::statvfs(mount.path()).unwrap();
    assert_eq!((stat.f_bsize, stat.f_frsize), (1, 1));
    assert_eq!(stat.f_blocks, image.statfs().allocated_size);
    assert_eq!(stat.f_files, u64::from(image.inode_count()));
    assert_eq!((stat.f_bfree, stat.f_bavail, stat.f_ffree), (0, 0, 0));
    assert_eq!(stat.f_namemax, 4096);
    assert!(stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
}

#[test]
fn the_table_of_mounts_names_the_image() {
    let vectors = require!(ready());
    let options = durin_fuse::MountOptions {
        fsname: "/images/a,b.dwarfs".to_owned(),
        ..durin_fuse::MountOptions::default()
    };
    let image = vectors.image("handmade", "base");
    let mount = Mount::with(&image, &durin_fuse::FsOptions::default(), &options);
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = mount.path().to_str().unwrap();
    let line = table.lines().find(|line| line.contains(point)).unwrap();
    let (_, kind) = line.split_once(" - ").unwrap();
    assert!(
        kind.starts_with("fuse.dwarfs /images/a,b.dwarfs ro,"),
        "{kind}"
    );
    assert!(line.contains("nosuid,nodev"), "{line}");
}
