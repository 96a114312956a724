//! A rewritten image reads as the old one, with any number of threads, and rewriting again changes nothing.

use durin_codec::Spec;
use durin_format::InodeNum;
use durin_reader::{FileKind, Image};
use durin_rewrite::{RebuildOptions, Recompress, RewriteOptions};
use durin_testkit::require;
use durin_testkit::vectors::Vectors;
use durin_writer::PackOptions;

use crate::common::{Shown, kinds, open, open_file, rewritten, show};

/// What stays when an old format, whose equal files share inodes, is described anew.
fn without_inodes(mut shown: Vec<Shown>) -> Vec<Shown> {
    for entry in &mut shown {
        entry.attr.inode = InodeNum(0);
        entry.attr.nlink = 1;
    }
    shown
}

#[test]
fn every_good_image_reads_the_same() {
    let vectors = require!(Vectors::find());
    let mut count = 0;
    for path in vectors.with_manifest() {
        let image = open_file(&path).unwrap();
        let is_legacy = image.tables().0.dir_entries.is_none();
        let expected = show(&image).unwrap();
        for (kind, options) in kinds() {
            let new = open(&rewritten(&image, &options)).unwrap();
            assert_eq!(new.version().to_string(), "2.5");
            let (mut expected, mut found) = (expected.clone(), show(&new).unwrap());
            if is_legacy && options.rebuild.is_some() {
                (expected, found) = (without_inodes(expected), without_inodes(found));
            }
            for (expected, found) in expected.iter().zip(&found) {
                assert_eq!(expected, found, "{} {kind}", path.display());
            }
            assert_eq!(expected.len(), found.len(), "{} {kind}", path.display());
            count += 1;
        }
    }
    assert!(count > 700, "only {count}");
}

#[test]
fn threads_and_memory_change_nothing_and_twice_is_once() {
    let vectors = require!(Vectors::find());
    for path in vectors.images("generated") {
        let image = open_file(&path).unwrap();
        for (kind, mut options) in kinds() {
            if let Some(rebuild) = &mut options.rebuild {
                rebuild.version_history = false;
            }
            let name = format!("{} {kind}", path.display());
            options.workers = 1;
            let once = rewritten(&image, &options);
            options.workers = 7;
            options.memory_limit = Some(1);
            assert!(once == rewritten(&image, &options), "{name}: little memory");
            options.memory_limit = Some(16 << 30);
            assert!(once == rewritten(&image, &options), "{name}: threads");
            let twice = rewritten(&open(&once).unwrap(), &options);
            assert!(once == twice, "{name}: twice");
        }
    }
}

#[test]
fn from_one_block_size_to_another_and_back() {
    let vectors = require!(Vectors::find());
    for path in vectors.images("generated") {
        let image = open_file(&path).unwrap();
        let recut = |image: &Image, bits| {
            let options = RewriteOptions {
                rebuild: Some(RebuildOptions::default()),
                block_size_bits: Some(bits),
                ..RewriteOptions::new(Recompress::ALL)
            };
            open(&rewritten(image, &options)).unwrap()
        };
        let bits = image.block_size().trailing_zeros();
        // What a segmenter has made of it may have chunks that follow each other; these are joined the first time.
        let there = recut(&image, bits);
        let back = recut(&recut(&there, 11), bits);
        let chunks = |image: &Image| image.tables().0.chunks.len();
        assert_eq!(chunks(&there), chunks(&back), "{}", path.display());
        assert!(chunks(&there) <= chunks(&image), "{}", path.display());
        assert_eq!(show(&there).unwrap(), show(&back).unwrap());
    }
}

#[test]
fn old_formats_are_upgraded() {
    let vectors = require!(Vectors::find());
    let mut count = 0;
    for path in vectors.with_manifest() {
        let image = open_file(&path).unwrap();
        if image.tables().0.dir_entries.is_some() {
            continue;
        }
        let options = RewriteOptions {
            rebuild: Some(RebuildOptions::default()),
            ..RewriteOptions::new(Recompress::METADATA)
        };
        let new = open(&rewritten(&image, &options)).unwrap();
        let tables = new.tables().0;
        assert!(tables.dir_entries.is_some());
        let history = tables.metadata_version_history.as_ref().unwrap();
        assert_eq!(history.len(), 1);
        assert_eq!(history[0].minor, image.version().minor);
        assert_eq!(history[0].block_size, image.block_size());
        let links = show(&new).unwrap();
        assert!(links.iter().all(|entry| entry.attr.nlink == 1));
        count += 1;
    }
    assert!(count >= 2, "only {count}");
}

#[test]
fn attributes_follow_the_options() {
    let vectors = require!(Vectors::find());
    for path in vectors.images("good") {
        let image = open_file(&path).unwrap();
        let options = RewriteOptions {
            rebuild: Some(RebuildOptions {
                set_owner: Some(70_000),
                set_group: Some(4_000_000_000),
                set_time: Some(1_000_000_000),
                keep_all_times: false,
                hardlink_table: false,
                pack: PackOptions::ALL,
                version_history: false,
                ..RebuildOptions::default()
            }),
            ..RewriteOptions::new(Recompress::METADATA)
        };
        let new = open(&rewritten(&image, &options)).unwrap();
        for (old, new) in show(&image).unwrap().iter().zip(show(&new).unwrap()) {
            assert_eq!((new.attr.uid, new.attr.gid), (70_000, 4_000_000_000));
            for time in [new.attr.mtime, new.attr.atime, new.attr.ctime] {
                assert_eq!((time.sec, time.nsec), (1_000_000_000, 0));
            }
            assert_eq!(
                (old.attr.mode, old.attr.size),
                (new.attr.mode, new.attr.size)
            );
            let keeps_links = image.tables().0.dir_entries.is_some();
            if keeps_links && old.attr.kind == FileKind::Regular {
                assert_eq!(old.attr.nlink, new.attr.nlink);
            }
        }
        assert!(new.tables().0.metadata_version_history.is_none());
    }
}

#[test]
fn categories_choose_what_is_recompressed() {
    let vectors = require!(Vectors::find());
    let mut count = 0;
    for path in vectors.images("generated") {
        let image = open_file(&path).unwrap();
        let Some(names) = image.tables().0.category_names.clone() else {
            continue;
        };
        for name in &names {
            let mut options = RewriteOptions::new(Recompress::BLOCK);
            options.compression = "lzma:level=0".parse::<Spec>().unwrap().into();
            options.categories = durin_rewrite::CategoryChoice::AllBut(vec![name.clone()]);
            let (_, report) = crate::common::try_rewrite(&image, &options).unwrap();
            let copied = report.categories.iter().find(|found| found.name == *name);
            let copied = copied.map_or(0, |category| category.blocks);
            assert_eq!(report.copied_blocks, copied, "{} {name}", path.display());
            count += 1;
        }
    }
    assert!(count > 3, "only {count}");
}
