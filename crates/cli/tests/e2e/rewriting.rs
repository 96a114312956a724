//! Images made from images: readers that others wrote see no difference, and nothing partial is ever left.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use durin_testkit::manifest::{Manifest, ManifestEntry};
use durin_testkit::python::Decoder;
use durin_testkit::random::Random;
use durin_testkit::require;
use durin_testkit::run::Run;
use durin_testkit::skip::{is_root, skipped};
use durin_testkit::vectors::Vectors;

use crate::atomic::{OLD, SmallDisk, fill};
use crate::support::{names_in, programs, subdir, work_dir};

/// Three kinds of rewriting.
const KINDS: [&[&str]; 3] = [
    &["--recompress", "-l1"],
    &["--rebuild-metadata", "--keep-all-times", "-P", "all"],
    &["--change-block-size", "-S", "13", "-l2", "--keep-all-times"],
];

fn rewrite(image: &Path, new: &Path) -> Run {
    let run = programs().run("mkdwarfs").arg("-i").arg(image);
    run.arg("-o").arg(new)
}

/// Everything of the entries as text; of an old image that was upgraded without what an upgrade changes.
fn shown(manifest: &Manifest, is_upgraded: bool) -> Vec<String> {
    let show = |entry: &ManifestEntry| {
        let mut entry = entry.clone();
        if is_upgraded {
            (entry.inode, entry.nlink) = (0, None);
        }
        format!("{entry:?}")
    };
    manifest.entries.iter().map(show).collect()
}

#[test]
fn the_python_decoder_sees_no_difference() {
    let decoder = require!(Decoder::find());
    let vectors = require!(Vectors::find());
    let work = work_dir();
    let new = work.path().join("new.dwarfs");
    for path in vectors.with_manifest() {
        let old = Vectors::manifest(&path);
        for kind in KINDS {
            let name = format!("{} {kind:?}", path.display());
            rewrite(&path, &new).args(kind).arg("--force").succeed();
            if let Err(said) = decoder.check(&new) {
                panic!("{name}: {said}");
            }
            let found = Manifest::parse(&decoder.manifest(&new).unwrap()).unwrap();
            assert_eq!(found.format, (2, 5), "{name}");
            let is_upgraded = old.attributes_per_entry() && kind != KINDS[0];
            let (expected, found) = (shown(&old, is_upgraded), shown(&found, is_upgraded));
            for (expected, found) in expected.iter().zip(&found) {
                assert_eq!(expected, found, "{name}");
            }
            assert_eq!(expected.len(), found.len(), "{name}");
        }
    }
}

/// An image of data that does not shrink much and takes a while.
fn image_of_noise(work: &tempfile::TempDir) -> std::path::PathBuf {
    let source = subdir(work, "source");
    fill(&source);
    let image = work.path().join("old.dwarfs");
    let build = programs().build(&source, &image);
    build.args(["-l1", "-S16"]).succeed();
    image
}

#[test]
fn kill_at_any_moment_leaves_no_partial_image() {
    let work = work_dir();
    let image = image_of_noise(&work);
    let out = subdir(&work, "out");
    let new = out.join("new.dwarfs");
    let arguments = ["--change-block-size", "-S17", "-l7", "--force"];
    let whole = rewrite(&image, &new).args(arguments).succeed();
    let mut random = Random::new(7);
    let mut killed = 0;
    for _ in 0..16 {
        std::fs::write(&new, OLD).unwrap();
        let mut command = Command::new(programs().path("mkdwarfs"));
        command.arg("-i").arg(&image).arg("-o").arg(&new);
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let moment = random.below(u64::try_from(whole.wall.as_micros()).unwrap().max(1));
        std::thread::sleep(Duration::from_micros(moment));
        child.kill().unwrap();
        let was_killed = !child.wait().unwrap().success();
        killed += usize::from(was_killed);
        if std::fs::read(&new).unwrap() == OLD {
            assert!(was_killed, "a rewriting that did nothing");
        } else {
            let check = programs().check_integrity(&new);
            assert_eq!(check.code, Some(0), "a partial image: {check}");
        }
        let names = names_in(&out);
        assert!(names.len() <= 2, "{names:?}");
        for name in names {
            std::fs::remove_file(out.join(name)).unwrap();
        }
    }
    assert!(killed > 3, "only {killed} were killed before they ended");
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    if !is_root() || SmallDisk::new(1 << 20).is_none() {
        return skipped("a small disk can only be mounted by root");
    }
    let work = work_dir();
    let image = image_of_noise(&work);
    for bytes in [4096, 1 << 20, 3 << 20] {
        let disk = SmallDisk::new(bytes).unwrap();
        let new = disk.point.join("new.dwarfs");
        for kind in [&["--recompress=none"][..], &["--recompress", "-l2"]] {
            let outcome = rewrite(&image, &new).args(kind).expect_code(1);
            let said = outcome.stderr.to_lowercase();
            assert!(said.contains("no space"), "{bytes}: {outcome}");
            assert_eq!(names_in(&disk.point), [""; 0], "{bytes}");
        }
        std::fs::write(&new, OLD).unwrap();
        let run = rewrite(&image, &new).args(["--recompress=none", "--force"]);
        run.expect_code(1);
        assert_eq!(std::fs::read(&new).unwrap(), OLD, "{bytes}");
    }
}
