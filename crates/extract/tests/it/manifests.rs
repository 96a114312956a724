//! Every image with a manifest.

use std::sync::atomic::{AtomicBool, Ordering};

use durin_extract::{ExtractOptions, Stats, extract_to_directory};
use durin_format::events::Quiet;
use durin_testkit::compare::{self, Seen};
use durin_testkit::require;
use durin_testkit::tree::{Digest, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;

use crate::{extract, open};

const DIGESTS: TreeOptions = TreeOptions {
    digest: Digest::Full,
};

#[test]
fn every_image_is_as_its_manifest_says() {
    let vectors = require!(Vectors::find());
    if !durin_testkit::skip::is_root() {
        durin_testkit::skip::skipped("only root can make devices and give files away");
        return;
    }
    for image in vectors.with_manifest() {
        let target = tempfile::tempdir().unwrap();
        let outcome = extract(&image, target.path(), &ExtractOptions::default());
        let report = outcome
            .result
            .unwrap_or_else(|error| panic!("{}: {error}", image.display()));
        assert_eq!(report.errors, 0, "{}", image.display());
        assert_eq!(outcome.messages, [""; 0], "{}", image.display());
        let tree = snapshot(target.path(), &DIGESTS).unwrap();
        let differences = compare::manifest(&Vectors::manifest(&image), &tree, Seen::Extracted);
        compare::assert_same(&image.display().to_string(), &differences);
        assert_eq!(
            report.files + report.links + report.directories + report.symlinks + report.nodes + 1,
            tree.nodes.len() as u64,
            "{}",
            image.display()
        );
    }
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let vectors = require!(Vectors::find());
    let image = vectors.image("generated", "default-l7-S16");
    let mut trees = Vec::new();
    for disk_writers in [1, 2, 13] {
        let options = ExtractOptions {
            disk_writers,
            ..ExtractOptions::default()
        };
        let target = tempfile::tempdir().unwrap();
        extract(&image, target.path(), &options).result.unwrap();
        let tree = snapshot(target.path(), &DIGESTS).unwrap();
        let nodes: Vec<_> = tree
            .nodes
            .into_iter()
            .map(|node| {
                (
                    node.path,
                    node.mode,
                    node.mtime,
                    node.link_leader,
                    node.digest,
                )
            })
            .collect();
        trees.push(nodes);
    }
    assert!(trees.iter().all(|tree| *tree == trees[0]));
}

#[test]
fn progress_ends_where_it_should() {
    let vectors = require!(Vectors::find());
    let image = open(&vectors.image("generated", "huge-holes-S14")).unwrap();
    let target = tempfile::tempdir().unwrap();
    let stats = Stats::default();
    let cancel = AtomicBool::new(false);
    let options = ExtractOptions::default();
    let report =
        extract_to_directory(&image, target.path(), &options, &stats, &Quiet, &cancel).unwrap();
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!(load(&stats.files_done), load(&stats.files_total));
    assert_eq!(load(&stats.bytes_done), load(&stats.bytes_total));
    assert_eq!(report.bytes, load(&stats.bytes_done));
    assert!(report.bytes < 1 << 30, "holes are not written");
}
