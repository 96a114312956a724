//! Names beyond the 255 bytes that most file systems take. FUSE takes more, so that a mount is where they come from here.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use durin_format::limits::NAME_BYTES_MAX;
use durin_format::metadata::{DirEntry, Directory, InodeData, Metadata};
use durin_format::string_table::{StringPacking, build};
use durin_testkit::mount::{self, Mount};
use durin_testkit::require;

use crate::support::{Place, dwarfsck, dwarfsextract, image_of_metadata, mkdwarfs, stdout};

fn directory(parent_entry: u32, first_entry: u32) -> Directory {
    Directory {
        parent_entry,
        first_entry,
        self_entry: 0,
    }
}

fn entry(name_index: u32, inode_num: u32) -> DirEntry {
    DirEntry {
        name_index,
        inode_num,
    }
}

/// Metadata of directories and of one target that all links have.
fn metadata(dir_count: u32, link_count: u32) -> Metadata {
    let inode = |mode_index| InodeData {
        mode_index,
        ..InodeData::default()
    };
    let dirs = (0..dir_count).map(|_| inode(0));
    Metadata {
        modes: vec![0o040_755, 0o120_777],
        uids: vec![0],
        gids: vec![0],
        symlinks: vec![b"target".to_vec()],
        symlink_table: vec![0; link_count as usize],
        inodes: dirs.chain((0..link_count).map(|_| inode(1))).collect(),
        chunk_table: vec![0],
        block_size: 1 << 16,
        ..Metadata::default()
    }
}

/// A directory with links of these names, which are sorted.
fn links(names: &[Vec<u8>], packing: StringPacking) -> Metadata {
    let count = u32::try_from(names.len()).unwrap();
    let entries = (0..=count).map(|number| entry(number.saturating_sub(1), number));
    Metadata {
        compact_names: Some(build(names.iter().map(Vec::as_slice), packing).unwrap()),
        dir_entries: Some(entries.collect()),
        directories: vec![directory(0, 1), directory(0, count + 1)],
        ..metadata(1, count)
    }
}

const PACKING: StringPacking = StringPacking {
    len_max: NAME_BYTES_MAX,
    compress: false,
    force: false,
    packed_index: false,
};

/// Names in order, the one that is too long last.
fn names() -> Vec<Vec<u8>> {
    let alike = b"A".repeat(300);
    let mut names: Vec<_> = (b'1'..=b'3')
        .map(|last| [&alike[..], &[last]].concat())
        .collect();
    names.push(b"B".repeat(512));
    names.push(b"C".repeat(513));
    names
}

fn listed(dir: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().as_bytes().to_vec())
        .collect();
    names.sort();
    names
}

#[test]
fn names_are_stored_whole_or_counted_as_errors() {
    require!(mount::available());
    let place = Place::new();
    let made = image_of_metadata(&place, &links(&names(), PACKING));
    let driver = Path::new(env!("CARGO_BIN_EXE_dwarfs"));
    let mounted = Mount::new(driver, &made, &[]);
    assert_eq!(listed(mounted.path()), names());
    let image = place.path("image");
    let build = mkdwarfs().args(["-l1", "-i"]).arg(mounted.path());
    let outcome = build.arg("-o").arg(&image).expect_code(2);
    let text = "a name of 513 bytes, of which an image takes 512";
    assert!(outcome.stderr.contains(text), "{outcome}");
    let of_image = Mount::new(driver, &image, &[]);
    assert_eq!(listed(of_image.path()), names()[..4]);
}

/// Entries that are all alike take no bits, so that some bytes stand for millions.
#[test]
fn a_directory_has_no_more_entries_than_there_are_names() {
    let place = Place::new();
    let mut metadata = links(&[b"a".to_vec()], PACKING);
    let count = 1_000_000;
    metadata.dir_entries = Some(vec![entry(0, 1); count as usize + 1]);
    metadata.directories[1].first_entry = count + 1;
    let made = image_of_metadata(&place, &metadata);
    assert!(fs::metadata(&made).unwrap().len() < 200_000);
    let run = dwarfsextract().arg("-i").arg(&made);
    let outcome = run.args(["-f", "ustar", "-o", "/dev/null"]).output();
    assert!(outcome.stderr.contains("1000000 entries"), "{outcome}");
}

/// Directories in each other, of which the last holds links with names that nothing may have.
fn chain(depth: u32, faults: u32) -> Metadata {
    let dirs = (0..=depth).map(|dir| directory(dir.saturating_sub(1), dir + 1));
    let end = directory(0, depth + 1 + faults);
    let names = (0..faults).map(|number| format!("a/{number:05}").into_bytes());
    let entries = (0..=depth).map(|dir| entry(faults, dir));
    let bad = (0..faults).map(|number| entry(number, depth + 1));
    Metadata {
        names: names.chain([b"d".repeat(255)]).collect(),
        dir_entries: Some(entries.chain(bad).collect()),
        directories: dirs.chain([end]).collect(),
        ..metadata(depth + 1, 1)
    }
}

/// Each is told with its path, of which there must not be gigabytes.
#[test]
fn faults_at_the_end_of_long_paths_are_not_all_told() {
    let place = Place::new();
    let made = image_of_metadata(&place, &chain(6000, 3000));
    fs::create_dir(place.path("dir")).unwrap();
    for (format, target) in [(&[][..], "dir"), (&["-f", "ustar"], "file")] {
        let run = dwarfsextract().arg("-i").arg(&made).args(format);
        let run = run
            .args(["--continue-on-error", "-o"])
            .arg(place.path(target));
        let outcome = run.output();
        let told = outcome.stderr.len();
        assert!(
            outcome.code != Some(0) && told < 16 << 20,
            "{format:?}: {told}"
        );
        let text = "entries cannot be extracted, and there are more";
        let of_paths = "its path is longer than 64 KiB";
        let expect = if format.is_empty() { text } else { of_paths };
        let end: String = outcome.stderr.chars().rev().take(300).collect();
        let end: String = end.chars().rev().collect();
        assert!(outcome.stderr.contains(expect), "{format:?}: {end}");
    }
}

/// Whatever form is asked for, none is written that readers refuse.
#[test]
fn rewriting_keeps_names_short_enough_as_they_are_stored() {
    let place = Place::new();
    let mut many: Vec<_> = (0..3000)
        .map(|n| format!("name-{n:05}.txt").into_bytes())
        .collect();
    many.push(b"name-00000.txt".repeat(50));
    many.sort();
    let made = image_of_metadata(&place, &links(&many, PACKING));
    for form in ["auto", "none", "plain", "names,force"] {
        let image = place.path("image");
        let rewrite = mkdwarfs().args(["--rebuild-metadata", "-f", "-P", form, "-i"]);
        rewrite.arg(&made).arg("-o").arg(&image).succeed();
        let check = dwarfsck().args(["--check-integrity", "-q"]).arg(&image);
        check.succeed();
        let listed = stdout(&dwarfsck().arg("-l").arg(&image).succeed());
        assert_eq!(listed.lines().count(), many.len(), "{form}");
    }
}
