//! Every public image gives exactly what its manifest says, unpacked and mounted.

use std::path::Path;

use durin_testkit::compare::{Seen, manifest};
use durin_testkit::manifest::Manifest;
use durin_testkit::mount::{self, Mount};
use durin_testkit::require;
use durin_testkit::skip::can_make_devices;
use durin_testkit::tree::{Digest, Kind, Tree, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;

use crate::support::{programs, subdir, work_dir};

/// Runs one way of reading over a folder of images, and reports all that differs in all of them.
fn check_folder(folder: &str, seen: Seen, read: fn(&Path) -> Tree) {
    let vectors = require!(Vectors::find());
    let mut failures = Vec::new();
    for image in vectors.images(folder) {
        let mut expected = Vectors::manifest(&image);
        if seen == Seen::Extracted {
            leave_out_what_needs_root(&mut expected);
        }
        let differences = match std::panic::catch_unwind(|| read(&image)) {
            Ok(tree) => manifest(&expected, &tree, seen),
            Err(_) => vec!["not readable, see above".to_owned()],
        };
        if !differences.is_empty() {
            let shown = differences
                .iter()
                .take(5)
                .cloned()
                .collect::<Vec<_>>()
                .join("\n    ");
            let name = image.file_name().unwrap().to_string_lossy().into_owned();
            failures.push(format!(
                "{name}: {} differences\n    {shown}",
                differences.len()
            ));
        }
    }
    assert!(
        failures.is_empty(),
        "{folder}: {} images\n  {}",
        failures.len(),
        failures.join("\n  ")
    );
}

fn leave_out_what_needs_root(expected: &mut Manifest) {
    if !can_make_devices() {
        let is_device = |kind| matches!(kind, Kind::CharDevice | Kind::BlockDevice);
        expected.entries.retain(|entry| !is_device(entry.kind));
        // What is gone is missing in the directories' counts too.
        expected
            .entries
            .iter_mut()
            .for_each(|entry| entry.dir_len = None);
    }
}

fn read_extracted(image: &Path) -> Tree {
    let work = work_dir();
    let target = subdir(&work, "out");
    let run = programs().extract(image, &target);
    if can_make_devices() {
        run
    } else {
        run.arg("--skip-devices")
    }
    .succeed();
    full_snapshot(&target)
}

fn read_mounted(image: &Path) -> Tree {
    let mount = Mount::new(&programs().path("dwarfs"), image, &[]);
    full_snapshot(mount.path())
}

fn full_snapshot(top: &Path) -> Tree {
    snapshot(
        top,
        &TreeOptions {
            digest: Digest::Full,
        },
    )
    .unwrap()
}

#[test]
fn good_images_unpack_as_their_manifests_say() {
    check_folder("good", Seen::Extracted, read_extracted);
}

#[test]
fn generated_images_unpack_as_their_manifests_say() {
    check_folder("generated", Seen::Extracted, read_extracted);
}

#[test]
fn handmade_images_unpack_as_their_manifests_say() {
    check_folder("handmade", Seen::Extracted, read_extracted);
}

#[test]
fn good_images_mount_as_their_manifests_say() {
    require!(mount::available());
    check_folder("good", Seen::Mounted, read_mounted);
}

#[test]
fn generated_images_mount_as_their_manifests_say() {
    require!(mount::available());
    check_folder("generated", Seen::Mounted, read_mounted);
}

#[test]
fn handmade_images_mount_as_their_manifests_say() {
    require!(mount::available());
    check_folder("handmade", Seen::Mounted, read_mounted);
}

#[test]
fn every_image_passes_its_check_and_lists_its_checksums() {
    let vectors = require!(Vectors::find());
    for image in vectors.with_manifest() {
        let outcome = programs().check_integrity(&image);
        assert_eq!(outcome.code, Some(0), "{}: {outcome}", image.display());
        let sums = programs()
            .run("dwarfsck")
            .arg("--checksum=sha256")
            .arg(&image)
            .succeed();
        let found = crate::hostile::parse_checksums(&sums.stdout);
        for entry in Vectors::manifest(&image)
            .entries
            .iter()
            .filter(|e| e.kind == Kind::File)
        {
            let shown = format!("{}: {}", image.display(), entry.path.escape_ascii());
            assert_eq!(found.get(&entry.path), entry.sha256.as_ref(), "{shown}");
        }
    }
}
