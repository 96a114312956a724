//! One damaged block after the other: exactly the files with data in it are reported, all others come out as they were.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use durin_testkit::json::parse;
use durin_testkit::require;
use durin_testkit::run::Run;
use durin_testkit::tree::{Digest, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;
use serde_json::Value;

use crate::support::{programs, subdir, work_dir};

/// Images of several makes, codecs and formats whose sections have checksums, with few files and with many.
const IMAGES: [(&str, &str); 7] = [
    ("good", "compat-v0.5.6"),
    ("good", "compat-v0.9.10"),
    ("good", "catdata"),
    ("generated", "default-l7-S16"),
    ("generated", "lzma-S15"),
    ("handmade", "categories"),
    ("handmade", "drop-all-optional"),
];

/// Blocks of an image that are tried at most, evenly spread: each takes half a dozen programs.
const BLOCKS_MAX: usize = 16;

/// What is compared of an entry: mode, target, content.
type Entry = (u32, Vec<u8>, Option<[u8; 32]>);
type Tree = BTreeMap<Vec<u8>, Entry>;

/// An image, and what is known of it while it is whole.
struct Whole {
    image: Vec<u8>,
    /// Offset of the header, bytes of the payload, of each block.
    blocks: Vec<(usize, usize)>,
    /// By block, the paths of files with data in it.
    users: Vec<BTreeSet<Vec<u8>>>,
    files: Vec<Vec<u8>>,
    extracted: Tree,
    archived: Tree,
}

fn read_tree(top: &Path) -> Tree {
    let options = TreeOptions {
        digest: Digest::Full,
    };
    let nodes = snapshot(top, &options).unwrap().nodes.into_iter();
    let mut tree: Tree = nodes
        .map(|node| (node.path, (node.mode, node.target, node.digest)))
        .collect();
    // The target itself is a directory of the test.
    tree.remove(b"".as_slice());
    tree
}

/// Extracts to a directory, going on after errors; returns what is there and what was reported.
fn extract(image: &Path, code: i32) -> (Tree, String) {
    let work = work_dir();
    let target = subdir(&work, "out");
    let run = programs().extract(image, &target);
    let outcome = run
        .args(["--continue-on-error", "--skip-devices"])
        .expect_code(code);
    (read_tree(&target), outcome.stderr)
}

/// The same by way of an archive that tar unpacks.
fn archive(image: &Path, code: i32) -> (Tree, String) {
    let work = work_dir();
    let target = subdir(&work, "out");
    let file = work.path().join("a.tar");
    let run = programs().run("dwarfsextract").arg("-i").arg(image);
    let run = run.args(["-f", "pax", "-o"]).arg(&file);
    let outcome = run
        .args(["--continue-on-error", "--skip-devices", "--skip-specials"])
        .expect_code(code);
    let tar = Run::new("tar").args(["--delay-directory-restore", "-xpf"]);
    tar.arg(&file).arg("-C").arg(&target).succeed();
    (read_tree(&target), outcome.stderr)
}

/// Collects files and their chunks from the tree that `dwarfsck --json` shows.
fn collect(entry: &Value, path: &[u8], whole: &mut Whole) {
    for chunk in entry["chunks"].as_array().into_iter().flatten() {
        if let Some(block) = chunk["block"].as_u64() {
            whole.users[usize::try_from(block).unwrap()].insert(path.to_vec());
        }
    }
    if entry["type"] == "file" {
        whole.files.push(path.to_vec());
    }
    for child in entry["inodes"].as_array().into_iter().flatten() {
        let name = name_of(&child["name"]);
        let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
        collect(child, &[path, slash, &name].concat(), whole);
    }
}

/// A name, which is an object if it is not UTF-8.
fn name_of(value: &Value) -> Vec<u8> {
    if let Some(name) = value.as_str() {
        return name.as_bytes().to_vec();
    }
    let hex = value["hex"].as_str().unwrap();
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn whole(image: &Path) -> Whole {
    let run = programs().run("dwarfsck").args(["--json", "-d5"]);
    let info = parse(&String::from_utf8(run.arg(image).succeed().stdout).unwrap()).unwrap();
    let number = |section: &Value, name: &str| usize::try_from(section[name].as_u64().unwrap());
    let sections = info["sections"].as_array().unwrap().iter();
    let blocks: Vec<_> = sections
        .filter(|section| section["type"] == "BLOCK")
        .map(|section| {
            let [offset, len] = ["offset", "compressed_size"].map(|name| number(section, name));
            (offset.unwrap(), len.unwrap())
        })
        .collect();
    let mut whole = Whole {
        image: fs::read(image).unwrap(),
        users: vec![BTreeSet::new(); blocks.len()],
        blocks,
        files: Vec::new(),
        extracted: extract(image, 0).0,
        archived: archive(image, 0).0,
    };
    collect(&info["root"], b"", &mut whole);
    whole
}

/// What is left of a tree without some files.
fn without(tree: &Tree, lost: &BTreeSet<Vec<u8>>) -> Tree {
    let kept = tree.iter().filter(|(path, _)| !lost.contains(*path));
    kept.map(|(path, entry)| (path.clone(), entry.clone()))
        .collect()
}

/// A path as messages have it, unless they escape it or it looks like several.
fn shown(path: &[u8]) -> Option<String> {
    String::from_utf8(path.to_vec()).ok().filter(|path| {
        !path.contains(", ") && !path.contains('\\') && !path.contains(char::is_control)
    })
}

/// Each lost path is named, and no other.
fn assert_reported(messages: &str, whole: &Whole, lost: &BTreeSet<Vec<u8>>, what: &str) {
    let named: BTreeSet<&str> = messages
        .lines()
        .filter_map(|line| line.split_once(" (BLOCK) at offset "))
        .filter_map(|(_, rest)| rest.split_once(": ")?.1.split_once(": block "))
        .flat_map(|(paths, _)| paths.split(", "))
        .collect();
    for path in &whole.files {
        let Some(shown) = shown(path) else {
            continue;
        };
        let is_named = named.contains(shown.as_str());
        assert_eq!(is_named, lost.contains(path), "{what}: {shown}: {messages}");
    }
}

/// All that is to be seen with one block damaged.
fn check(whole: &Whole, block: usize, image: &Path, what: &str) {
    let lost = &whole.users[block];
    let lost_code = if lost.is_empty() { 0 } else { 2 };
    let (tree, messages) = extract(image, lost_code);
    assert!(tree == without(&whole.extracted, lost), "{what}: extracted");
    assert_reported(&messages, whole, lost, what);
    let (tree, messages) = archive(image, lost_code);
    assert!(tree == without(&whole.archived, lost), "{what}: archived");
    assert_reported(&messages, whole, lost, what);

    let outcome = programs().check_integrity(image);
    assert_eq!(outcome.code, Some(1), "{what}: {outcome}");
    let place = format!("section {block} (BLOCK)");
    let named = outcome.stderr.matches("(BLOCK)").count();
    assert!(outcome.stderr.contains(&place), "{what}: {outcome}");
    assert_eq!(named, 1, "{what}: {outcome}");

    let verify = programs().run("durin").args(["verify", "--json"]);
    let outcome = verify.arg(image).expect_code(1);
    assert!(outcome.stderr.contains(&place), "{what}: {outcome}");
    let found = parse(&String::from_utf8(outcome.stdout).unwrap()).unwrap();
    let files = found["lost_files"].as_array().unwrap().iter();
    let paths = files.flat_map(|file| file["paths"].as_array().unwrap());
    let found: BTreeSet<Vec<u8>> = paths.map(name_of).collect();
    assert!(found == *lost, "{what}: verify --json");
}

#[test]
fn each_costs_the_files_that_need_it_and_no_other() {
    let vectors = require!(Vectors::find());
    let images = Mutex::new(IMAGES.iter());
    let work = || {
        loop {
            let Some((folder, name)) = images.lock().unwrap().next() else {
                return;
            };
            let whole = whole(&vectors.image(folder, name));
            assert!(whole.users.iter().any(|users| !users.is_empty()), "{name}");
            let work = work_dir();
            let damaged = work.path().join("damaged.dwarfs");
            let step = whole.blocks.len().div_ceil(BLOCKS_MAX);
            for block in (0..whole.blocks.len()).step_by(step) {
                let (offset, len) = whole.blocks[block];
                // The payload ends where the next section begins, whatever the length of the header.
                let next = whole.blocks.get(block + 1).map(|(offset, _)| *offset);
                let header = next.map_or(64, |next| next - offset - len);
                let mut image = whole.image.clone();
                image[offset + header + len / 2] ^= 0x10;
                fs::write(&damaged, image).unwrap();
                check(&whole, block, &damaged, &format!("{name}, block {block}"));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
}
