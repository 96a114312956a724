//! Every image against its manifest, through the calls that the kernel would make.

use durin_fuse::fs::{Full, Node};
use durin_fuse::node::ROOT;
use durin_reader::FileKind;
use durin_testkit::require;
use durin_testkit::tree::Kind;
use durin_testkit::vectors::Vectors;

use crate::open;

fn kind(kind: FileKind) -> Kind {
    match kind {
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::Regular => Kind::File,
        FileKind::CharDevice => Kind::CharDevice,
        FileKind::BlockDevice => Kind::BlockDevice,
        FileKind::Fifo => Kind::Fifo,
        FileKind::Socket => Kind::Socket,
    }
}

#[test]
fn lookups_give_what_the_manifest_says() {
    let vectors = require!(Vectors::find());
    for image in vectors.with_manifest() {
        let fs = open(&image);
        for entry in Vectors::manifest(&image).entries {
            let what = format!("{}: {}", image.display(), entry.path.escape_ascii());
            let parts = entry
                .path
                .split(|&byte| byte == b'/')
                .filter(|part| !part.is_empty());
            let node: Node = parts.fold(fs.node(ROOT).unwrap(), |dir, name| {
                fs.lookup(dir.number, name).unwrap().expect(&what)
            });
            assert_eq!(kind(node.attr.kind), entry.kind, "{what}");
            assert_eq!(
                (node.attr.uid, node.attr.gid),
                (entry.uid, entry.gid),
                "{what}"
            );
            assert_eq!(node.attr.rdev, entry.rdev.unwrap_or(0), "{what}");
            if let Some(size) = entry.size {
                assert_eq!(node.attr.size, size, "{what}");
            }
            if let Some(target) = entry.target {
                assert_eq!(fs.read_link(node.number).unwrap(), target, "{what}");
            }
            if let Some(len) = entry.dir_len {
                let mut lines = 0;
                fs.read_dir(node.number, 0, &mut |_| {
                    lines += 1;
                    Ok(Full::No)
                })
                .unwrap();
                assert_eq!(lines, len + 2, "{what}");
            }
        }
    }
}
