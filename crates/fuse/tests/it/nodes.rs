//! Node numbers, which the kernel may make up.

use durin_fuse::fs::{Caching, Full, Seek};
use durin_fuse::node::ROOT;
use durin_reader::Filling;
use durin_testkit::require;
use durin_testkit::vectors::Vectors;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::open;

#[test]
fn numbers_never_handed_out_do_not_exist() {
    let vectors = require!(Vectors::find());
    for (folder, name) in [("good", "compat-v0.4.1"), ("generated", "default-l7-S16")] {
        let fs = open(&vectors.image(folder, name));
        let inode_count = u64::from(fs.image().inode_count());
        let wrong = [
            0,
            inode_count + 1_000_000,
            u64::from(u32::MAX),
            u64::from(u32::MAX) + 1,
            u64::from(u32::MAX) * 2,
            u64::MAX,
        ];
        for number in wrong {
            let no = Some(Errno::NOENT);
            assert_eq!(fs.node(number).err(), no, "{name} {number}");
            assert_eq!(fs.lookup(number, b"a").err(), no);
            assert_eq!(fs.read_link(number).err(), no);
            assert_eq!(fs.open(number, OFlags::RDONLY).err(), no);
            assert_eq!(fs.open_dir(number).err(), no);
            assert_eq!(fs.read(number, 0, 1, &mut Filling(&mut [0])).err(), no);
            assert_eq!(fs.seek(number, 0, Seek::Data).err(), no);
            assert_eq!(fs.xattr(number, b"user.dwarfs.inodeinfo").err(), no);
            let listed = fs.read_dir(number, 0, &mut |_| Ok(Full::No));
            assert_eq!(listed.err(), no);
        }
    }
}

#[test]
fn the_wrong_operation_for_the_kind() {
    let vectors = require!(Vectors::find());
    let fs = open(&vectors.image("good", "compat-v0.4.1"));
    let file = fs.lookup(ROOT, b"bench.sh").unwrap().unwrap().number;
    assert_eq!(fs.lookup(file, b"a").err(), Some(Errno::NOTDIR));
    assert_eq!(fs.open_dir(file).err(), Some(Errno::NOTDIR));
    assert_eq!(fs.read_link(file).err(), Some(Errno::INVAL));
    let read = fs.read(ROOT, 0, 1, &mut Filling(&mut [0]));
    assert_eq!(read.err(), Some(Errno::ISDIR));
    assert_eq!(fs.open(ROOT, OFlags::RDONLY).err(), Some(Errno::ISDIR));
    assert_eq!(
        fs.lookup(ROOT, b"absent").unwrap().map(|node| node.number),
        None
    );
}

#[test]
fn opening_is_for_reading() {
    let vectors = require!(Vectors::find());
    let fs = open(&vectors.image("good", "compat-v0.4.1"));
    let file = fs.lookup(ROOT, b"bench.sh").unwrap().unwrap().number;
    assert_eq!(fs.open(file, OFlags::RDONLY), Ok(Caching::Keep));
    for flags in [
        OFlags::WRONLY,
        OFlags::RDWR,
        OFlags::RDONLY | OFlags::APPEND,
        OFlags::RDONLY | OFlags::TRUNC,
    ] {
        assert_eq!(fs.open(file, flags), Err(Errno::ACCESS), "{flags:?}");
    }
}

#[test]
fn reads_and_seeks_beyond_the_end() {
    let vectors = require!(Vectors::find());
    let fs = open(&vectors.image("good", "compat-v0.4.1"));
    let file = fs.lookup(ROOT, b"bench.sh").unwrap().unwrap();
    let size = file.attr.size;
    let mut buf = [0; 64];
    let mut read = |offset| fs.read(file.number, offset, 64, &mut Filling(&mut buf));
    assert_eq!(read(size - 10), Ok(10));
    for offset in [size, size + 1, u64::MAX] {
        assert_eq!(read(offset), Ok(0), "{offset}");
    }
    for offset in [-1, i64::MIN, i64::MAX] {
        let found = fs.seek(file.number, offset, Seek::Hole);
        assert_eq!(found, Err(Errno::NXIO), "{offset}");
    }
    assert_eq!(fs.seek(file.number, 0, Seek::Hole), Ok(size));
}

#[test]
fn entries_with_attributes_of_their_own_have_nodes_of_their_own() {
    let vectors = require!(Vectors::find());
    let image = vectors.image("good", "compat-v0.4.1");
    let fs = open(&image);
    let inode_count = u64::from(fs.image().inode_count());
    let mut own = 0;
    for entry in Vectors::manifest(&image).entries {
        let parts = entry
            .path
            .split(|&byte| byte == b'/')
            .filter(|part| !part.is_empty());
        let node = parts.fold(fs.node(ROOT).unwrap(), |dir, name| {
            fs.lookup(dir.number, name).unwrap().unwrap()
        });
        assert_eq!(node.attr.mtime.sec, entry.mtime.0, "{:?}", entry.path);
        assert_eq!(node.attr.mode, entry.mode);
        let again = fs.node(node.number).unwrap();
        assert_eq!(
            again.attr, node.attr,
            "the number leads to the same attributes"
        );
        own += usize::from(node.number > inode_count);
    }
    assert!(
        own > 0,
        "the image has entries that differ from their inode"
    );
}

#[test]
fn dots_lead_where_file_handles_need_them() {
    let vectors = require!(Vectors::find());
    let fs = open(&vectors.image("good", "compat-v0.4.1"));
    let number = |parent, name: &[u8]| fs.lookup(parent, name).unwrap().unwrap().number;
    let (file, dir) = (number(ROOT, b"bench.sh"), number(ROOT, b"empty"));
    assert_eq!(number(file, b"."), file);
    assert_eq!(number(number(dir, b"alsoempty"), b".."), dir);
    assert_eq!(number(dir, b".."), ROOT);
    assert_eq!(number(ROOT, b".."), ROOT);
}
