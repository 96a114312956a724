//! Finding holes and data.

use std::fs::File;

use durin_testkit::require;
use durin_testkit::tree::Kind;
use durin_testkit::vectors::Vectors;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::{Mount, ready};

#[test]
fn the_end_is_a_hole_and_nothing_follows_it() {
    let vectors = require!(ready());
    // With holes the driver answers, without the kernel does.
    for (folder, name) in [("handmade", "holes"), ("good", "compat-v0.4.1")] {
        let image = vectors.image(folder, name);
        let mount = Mount::new(&image);
        for entry in Vectors::manifest(&image).entries {
            let size = entry.size.unwrap_or(0);
            if entry.kind != Kind::File || size == 0 {
                continue;
            }
            let path = String::from_utf8(entry.path).unwrap();
            let file = File::open(mount.join(&path)).unwrap();
            let seek = |from| rustix::fs::seek(&file, from);
            assert_eq!(seek(SeekFrom::Hole(size)), Err(Errno::NXIO), "{path}");
            assert_eq!(seek(SeekFrom::Data(size)), Err(Errno::NXIO), "{path}");
            assert_eq!(seek(SeekFrom::End(0)), Ok(size), "{path}");
            if entry.allocated_size.unwrap_or(size) == size {
                assert_eq!(seek(SeekFrom::Data(size - 1)), Ok(size - 1), "{path}");
                assert_eq!(seek(SeekFrom::Hole(0)), Ok(size), "{path}");
            }
        }
    }
}
