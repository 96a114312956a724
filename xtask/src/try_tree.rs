//! `cargo xtask try`: the whole way with a real tree, for somebody who has just cloned the repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use durin_testkit::compare::{Aspects, trees};
use durin_testkit::mount::{self, Mount};
use durin_testkit::programs::Programs;
use durin_testkit::roundtrip::POSITIONS;
use durin_testkit::skip::is_root;
use durin_testkit::tree::{Digest, Tree, TreeOptions, snapshot};

use crate::report::{Census, census, percent, seconds, size};
use crate::say::say;
use crate::workspace;

/// Trees that every machine has; the first of a handy size is taken.
const TREES: [&str; 7] = [
    "/usr/share",
    "/usr/lib",
    "/usr/lib/python3",
    "/usr/share/doc",
    "/usr/include",
    "/usr/bin",
    "/etc",
];
/// Large enough to show something, small enough for a cup of tea at the default level.
const HANDY_BYTES: std::ops::Range<u64> = 30 << 20..300 << 20;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    workspace::check_options(arguments, &["level"])?;
    let source = match workspace::positional(arguments) {
        Some(dir) => std::fs::canonicalize(dir).with_context(|| dir.to_owned())?,
        None => handy_tree()?,
    };
    let level = workspace::option(arguments, "level").unwrap_or("7");
    let programs = workspace::release_programs()?;
    let scratch = workspace::scratch_dir()?;

    say!("\nreading {} ...", source.display());
    let tree = snapshot(&source, &POSITIONS)?;
    let found = census(&tree);
    say!("  {found}, {}", size(found.bytes));

    let image = scratch.path().join("try.dwarfs");
    pack(&programs, &source, &image, level, &found)?;
    let differences = match mount::available() {
        Ok(()) => compare_mounted(&programs, &image, &tree)?,
        Err(why) => {
            say!("  mount    not possible here ({why}); unpacking instead");
            compare_extracted(&programs, &image, &tree, scratch.path())?
        }
    };
    verify(&programs, &image)?;
    for difference in differences.iter().take(20) {
        say!("    {difference}");
    }
    ensure!(differences.is_empty(), "{} differences", differences.len());
    say!("  result   every byte and attribute is as it was");
    Ok(())
}

fn handy_tree() -> Result<PathBuf> {
    let mut largest: Option<(u64, PathBuf)> = None;
    for dir in TREES.map(Path::new).into_iter().filter(|dir| dir.is_dir()) {
        // What an ordinary user may not read is no good for a first try.
        let Ok(tree) = snapshot(
            dir,
            &TreeOptions {
                digest: Digest::None,
            },
        ) else {
            continue;
        };
        let bytes = census(&tree).bytes;
        if HANDY_BYTES.contains(&bytes) {
            return Ok(dir.to_owned());
        }
        let is_smaller = bytes < HANDY_BYTES.end;
        if is_smaller && largest.as_ref().is_none_or(|(most, _)| bytes > *most) {
            largest = Some((bytes, dir.to_owned()));
        }
    }
    largest
        .map(|(_, dir)| dir)
        .context("no tree of a handy size here: name one")
}

fn pack(
    programs: &Programs,
    source: &Path,
    image: &Path,
    level: &str,
    found: &Census,
) -> Result<()> {
    say!("packing at level {level} ...");
    let start = Instant::now();
    // Not through the test kit: the user shall see the progress of the build.
    let mut build = Command::new(programs.path("mkdwarfs"));
    build
        .arg("-i")
        .arg(source)
        .arg("-o")
        .arg(image)
        .arg("-l")
        .arg(level);
    build
        .args(["--with-devices", "--with-specials", "--log-level=warn"])
        .stdin(Stdio::null());
    workspace::succeed(&mut build)?;
    let bytes = image.metadata()?.len();
    let (time, ratio) = (seconds(start.elapsed()), percent(bytes, found.bytes));
    say!(
        "  packed   {} ({ratio} of {}) in {time}",
        size(bytes),
        size(found.bytes)
    );
    Ok(())
}

fn compare_mounted(programs: &Programs, image: &Path, tree: &Tree) -> Result<Vec<String>> {
    let start = Instant::now();
    let mount = Mount::new(&programs.path("dwarfs"), image, &[]);
    say!("  mount    {}", seconds(start.elapsed()));
    let start = Instant::now();
    let mounted = snapshot(mount.path(), &POSITIONS)?;
    say!(
        "  read     {} through the mount in {}",
        census(&mounted),
        seconds(start.elapsed())
    );
    mount.unmount();
    Ok(trees(tree, &mounted, &Aspects::all(1_000_000_000)))
}

fn compare_extracted(
    programs: &Programs,
    image: &Path,
    tree: &Tree,
    scratch: &Path,
) -> Result<Vec<String>> {
    let target = scratch.join("extracted");
    std::fs::create_dir(&target)?;
    let outcome = programs.extract(image, &target).output();
    ensure!(outcome.code == Some(0), "dwarfsextract: {outcome}");
    say!("  unpacked in {}", seconds(outcome.wall));
    let extracted = snapshot(&target, &POSITIONS)?;
    let all = Aspects::all(1_000_000_000);
    Ok(trees(
        tree,
        &extracted,
        &Aspects {
            owner: is_root(),
            symlink_modes: false,
            ..all
        },
    ))
}

fn verify(programs: &Programs, image: &Path) -> Result<()> {
    let outcome = programs.check_integrity(image);
    if outcome.code != Some(0) {
        bail!("dwarfsck --check-integrity: {outcome}");
    }
    say!(
        "  verified dwarfsck --check-integrity in {}",
        seconds(outcome.wall)
    );
    Ok(())
}
