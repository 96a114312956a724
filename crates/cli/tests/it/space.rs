//! What the bytes of an image go to.

use std::fs;
use std::path::PathBuf;

use durin_testkit::json;
use durin_testkit::random::Random;
use serde_json::Value;

use crate::support::{Place, dwarfsck, stdout};

/// A tree in which every way to save bytes is there.
fn made() -> Place {
    let place = Place::new();
    let tree = place.tree();
    let noise = |seed: u64, len: usize| Random::new(seed).bytes(len);
    fs::create_dir_all(tree.join("data/deep")).unwrap();
    // Two equal files, one of them with a second link.
    let equal = noise(1, 200_000);
    fs::write(tree.join("data/equal.BIN"), &equal).unwrap();
    fs::write(tree.join("data/deep/equal.bin"), &equal).unwrap();
    fs::hard_link(tree.join("data/equal.BIN"), tree.join("data/link")).unwrap();
    // Two files that are alike.
    let mut alike = noise(2, 300_000);
    fs::write(tree.join("data/alike.1.txt"), &alike).unwrap();
    alike.extend(noise(3, 50_000));
    fs::write(tree.join("data/alike.2.txt"), &alike).unwrap();
    // One that is mostly a hole.
    let sparse = fs::File::create(tree.join("sparse")).unwrap();
    sparse.set_len(1 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, &noise(4, 4096), 0).unwrap();
    place
}

/// An image of it, whose builder looks for repetitions.
fn image(place: &Place) -> PathBuf {
    let build = place.build("image.dwarfs").arg("--force");
    build.arg("--window-size=12").succeed();
    place.path("image.dwarfs")
}

fn report(place: &Place, depth: &str) -> Value {
    let space = format!("--space={depth}");
    let run = dwarfsck().arg(image(place)).args(["-j", "-d0", &space]);
    json::parse(&stdout(&run.succeed())).unwrap()["space"].clone()
}

#[test]
fn totals_add_up() {
    let place = made();
    let space = report(&place, "1");
    let total = |name: &str| space["totals"][name].as_u64().unwrap();
    assert_eq!(total("hard_links"), 200_000 + 6);
    assert_eq!(total("duplicates"), 200_000 + 6);
    assert!(total("shared") > 250_000, "{space:#}");
    let distinct = total("size")
        - total("hard_links")
        - total("holes")
        - total("duplicates")
        - total("shared");
    assert_eq!(distinct + total("unused"), total("blocks"));
    let image = fs::metadata(place.path("image.dwarfs")).unwrap().len();
    assert_eq!(total("image"), image);
    assert_eq!(
        total("blocks_stored") + total("metadata_stored") + total("rest"),
        image
    );
    let sum = |list: &str, field: &str| -> u64 {
        let rows = space[list].as_array().unwrap();
        rows.iter().map(|row| row[field].as_u64().unwrap()).sum()
    };
    for list in ["categories", "codecs"] {
        assert_eq!(sum(list, "stored"), total("blocks_stored"), "{list}");
        assert_eq!(sum(list, "size"), total("blocks"), "{list}");
    }
    // Shares are rounded one by one.
    assert!(sum("extensions", "stored").abs_diff(total("blocks_stored")) < 10);
    let size = total("size") - total("hard_links") - total("holes");
    assert_eq!(sum("extensions", "size"), size);
}

#[test]
fn what_takes_most_is_named() {
    let place = made();
    let space = report(&place, "2");
    let row = |list: &str, key: &str, name: &str| -> Value {
        let rows = space[list].as_array().unwrap().iter();
        let row = rows.clone().find(|row| row[key] == name);
        row.unwrap_or_else(|| panic!("{list} {name}: {space:#}"))
            .clone()
    };
    assert_eq!(row("directories", "path", "data")["files"], 4);
    assert_eq!(row("directories", "path", "data/deep")["size"], 200_000);
    assert_eq!(row("extensions", "name", ".bin")["size"], 400_000);
    assert_eq!(row("extensions", "name", ".txt")["files"], 2);
    row("largest", "path", "data/alike.2.txt");
    let equal = &space["duplicates"][0];
    assert_eq!(equal["saved"], 200_000);
    assert_eq!(equal["files"], 2);
    assert_eq!(equal["paths"].as_array().unwrap().len(), 3, "{equal}");
    let alike = &space["clusters"][0];
    assert_eq!(alike["files"], 2);
    assert_eq!(alike["paths"][0], "data/alike.1.txt");
    assert!(report(&place, "1")["directories"].as_array().unwrap().len() < 3);
}

#[test]
fn as_text() {
    let place = made();
    let text = stdout(&dwarfsck().arg(image(&place)).arg("--space").succeed());
    for part in [
        "in 10 files\n",
        "further hard links\n",
        "holes\n",
        "further equal files\n",
        "data that several files or places share\n",
        "the image, ",
        "directories:\n",
        "extensions:\n",
        "largest files:\n",
        "195.3 KiB saved, 2 files of 195.3 KiB\n",
        "data/alike.1.txt\n",
        "metadata tables:\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("history:"), "an answer in itself: {text}");
    // Names come from outside.
    let odd = text.lines().find(|line| line.contains("odd"));
    assert!(
        odd.is_some_and(|line| line.ends_with("sub/odd\\nname")),
        "{text}"
    );
}
