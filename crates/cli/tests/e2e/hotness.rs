//! The loop that makes programs start faster: a mount lists what a program uses, a build puts that first, and the next mount
//! decodes it before it is asked for.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use durin_testkit::mount::{self, Mount};
use durin_testkit::random::Random;
use durin_testkit::require;
use serde_json::Value;

use crate::support::{programs, subdir, work_dir};

const FILES: usize = 400;
const FILE_BYTES: usize = 20_000;

/// Every 16th file, in an order that is not that of names.
fn hot_files() -> Vec<String> {
    let mut names: Vec<_> = (0..FILES).step_by(16).map(name).collect();
    names.reverse();
    names.swap(3, 9);
    names
}

fn name(number: usize) -> String {
    format!("d{}/f{number:03}", number % 7)
}

fn make_tree(top: &Path) {
    let mut random = Random::new(15);
    for number in 0..FILES {
        let path = top.join(name(number));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, random.text(FILE_BYTES)).unwrap();
    }
}

/// Each file begins as the hot one before it, as versions of one file do.
fn make_versions(top: &Path) {
    let mut random = Random::new(16);
    let mut shared = Vec::new();
    for number in 0..FILES {
        if number % 16 == 0 {
            shared = random.text(FILE_BYTES);
        }
        let path = top.join(name(number));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, [shared.clone(), random.text(FILE_BYTES)].concat()).unwrap();
    }
}

/// All of what is hot is in the blocks of that category, also what it has in common with other files.
#[test]
fn what_is_hot_needs_no_other_blocks() {
    require!(mount::available());
    let work = work_dir();
    let tree = subdir(&work, "tree");
    make_versions(&tree);
    let programs = programs();
    let (image, list) = (work.path().join("image"), work.path().join("list"));
    fs::write(&list, hot_files().join("\n")).unwrap();
    let hotness = format!("--hotness-list={}", list.display());
    programs
        .build(&tree, &image)
        .args(["-l3", "-S18", "--categorize=hotness", &hotness])
        .succeed();
    let mounted = Mount::foreground(&programs.path("dwarfs"), &image, &[]);
    for name in hot_files() {
        for chunk in chunks_of(&mounted, &name) {
            assert_eq!(chunk["category"], "hotness", "{name}");
        }
    }
    assert_eq!(mounted.unmount(), Some(0));
}

fn chunks_of(mounted: &Mount, name: &str) -> Vec<Value> {
    let mut value = vec![0; 65_536];
    let path = mounted.path().join(name);
    let len = rustix::fs::getxattr(&path, "user.dwarfs.inodeinfo", &mut value).unwrap();
    let info: Value = serde_json::from_slice(&value[..len]).unwrap();
    info["chunks"].as_array().unwrap().clone()
}

/// Block and category of the first chunk of a file.
fn place_of(mounted: &Mount, name: &str) -> (u64, u64, String) {
    let chunk = &chunks_of(mounted, name)[0];
    let number = |field: &str| chunk[field].as_u64().unwrap();
    let category = chunk["category"].as_str().unwrap_or("").to_owned();
    (number("block"), number("offset"), category)
}

fn decoded_ahead(mounted: &Mount) -> bool {
    let mut value = vec![0; 65_536];
    let name = "user.dwarfs.driver.perfmon";
    let len = rustix::fs::getxattr(mounted.path(), name, &mut value).unwrap();
    String::from_utf8_lossy(&value[..len]).contains("[block_cache.decode_ahead]")
}

#[test]
fn what_a_program_uses_comes_first_and_is_there_before_it_asks() {
    require!(mount::available());
    let work = work_dir();
    let tree = subdir(&work, "tree");
    make_tree(&tree);
    let programs = programs();
    let (plain, tuned) = (work.path().join("plain"), work.path().join("tuned"));
    let list = work.path().join("list");
    let driver = programs.path("dwarfs");
    programs
        .build(&tree, &plain)
        .args(["-l3", "-S18"])
        .succeed();

    let option = format!("analysis_file={}", list.display());
    let mounted = Mount::foreground(&driver, &plain, &[&option]);
    for name in hot_files() {
        fs::read(mounted.path().join(name)).unwrap();
    }
    assert_eq!(mounted.unmount(), Some(0));
    let lines = fs::read_to_string(&list).unwrap();
    assert_eq!(lines.lines().collect::<Vec<_>>(), hot_files());

    let hotness = format!("--hotness-list={}", list.display());
    let order = format!("hotness::explicit:file={}", list.display());
    programs
        .build(&tree, &tuned)
        .args([
            "-l3",
            "-S18",
            "--categorize=hotness",
            &hotness,
            "--order",
            &order,
        ])
        .succeed();
    let options = ["preload_category=hotness,perfmon=block_cache"];
    let mounted = Mount::foreground(&driver, &tuned, &options);
    let mut last = (0, 0);
    for name in hot_files() {
        let (block, offset, category) = place_of(&mounted, &name);
        assert_eq!(category, "hotness", "{name}");
        assert!(
            (block, offset) >= last,
            "{name} is not in the order of the list"
        );
        last = (block, offset);
    }
    assert_ne!(place_of(&mounted, &name(1)).2, "hotness");
    let start = Instant::now();
    while !decoded_ahead(&mounted) {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "nothing is preloaded"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    for name in hot_files() {
        let path = Path::new(&name);
        assert_eq!(
            fs::read(mounted.path().join(path)).unwrap(),
            fs::read(tree.join(path)).unwrap()
        );
    }
    assert_eq!(mounted.unmount(), Some(0));
}
