//! Very many small files: build, mount and list within bounds of memory.

use durin_testkit::compare::{Aspects, assert_same, trees};
use durin_testkit::made_tree::make_many;
use durin_testkit::mount::{self, Mount};
use durin_testkit::require;
use durin_testkit::tree::{Digest, TreeOptions, snapshot};

use crate::support::{programs, work_dir};

const MEMORY_BYTES_MAX: u64 = 2 << 30;
const LISTED: TreeOptions = TreeOptions {
    digest: Digest::None,
};

#[test]
fn many_files_build_mount_and_list() {
    // The full million is `cargo xtask million`; a tenth of it shows the same on a slow machine.
    let is_full = std::env::var_os("DURIN_MILLION").is_some();
    let files = if is_full { 1_000_000 } else { 100_000 };
    let source = work_dir();
    make_many(source.path(), files).unwrap();
    let work = work_dir();
    let image = work.path().join("many.dwarfs");

    let build = programs()
        .build(source.path(), &image)
        .memory_max(MEMORY_BYTES_MAX)
        .succeed();
    let list = programs().run("dwarfsck").arg("-l").arg(&image);
    let list = list.memory_max(MEMORY_BYTES_MAX).succeed();
    let tree = snapshot(source.path(), &LISTED).unwrap();
    let lines = list
        .stdout
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .count();
    assert_eq!(lines, tree.nodes.len() - 1, "paths listed by dwarfsck");
    report("build", files, build.peak_bytes, build.wall);
    report("dwarfsck -l", files, list.peak_bytes, list.wall);

    require!(mount::available());
    let mount = Mount::foreground(&programs().path("dwarfs"), &image, &[]);
    let start = std::time::Instant::now();
    let mounted = snapshot(mount.path(), &LISTED).unwrap();
    let peak_bytes = mount.peak_bytes().unwrap();
    report("mount and list", files, peak_bytes, start.elapsed());
    assert!(
        peak_bytes <= MEMORY_BYTES_MAX,
        "the driver held {} MiB",
        peak_bytes >> 20
    );
    assert_same(
        "listed",
        &trees(&tree, &mounted, &Aspects::all(1_000_000_000)),
    );
}

#[expect(
    clippy::print_stdout,
    reason = "shown with --nocapture, as `cargo xtask million` runs it"
)]
fn report(what: &str, files: usize, peak_bytes: u64, wall: std::time::Duration) {
    println!(
        "{what}: {files} files, peak {} MiB, {:.1} s",
        peak_bytes >> 20,
        wall.as_secs_f64()
    );
}
