//! Building: CPU seconds and bytes of each program at the same codec and block size.

use std::path::Path;

use anyhow::{Result, ensure};
use durin_testkit::programs::Programs;
use durin_testkit::run::Run;

use crate::install;
use crate::report::count;
use crate::workspace::target_dir;

/// One row of the table: its name and the command, still without the image's name.
struct Contender {
    name: String,
    run: Run,
}

pub(super) fn run(programs: &Programs, source: &Path, scratch: &Path) -> Result<()> {
    println!("## Building\n");
    println!("| program | settings | CPU s | wall s | bytes | peak MiB |");
    println!("|---|---|--:|--:|--:|--:|");
    let image = scratch.join("bench.image");
    // Warms the page cache, so that the first row does not pay for reading the disk.
    let warm = Run::new("sh")
        .args(["-c", "tar -c -f - \"$1\" | cat > /dev/null", "sh"])
        .arg(source);
    ensure!(
        warm.output().code == Some(0),
        "cannot read {}",
        source.display()
    );
    for contender in contenders(programs, source, &image) {
        let outcome = contender.run.output();
        ensure!(outcome.code == Some(0), "{}: {outcome}", contender.name);
        println!(
            "| {} | {:.1} | {:.1} | {} | {} |",
            contender.name,
            outcome.cpu.as_secs_f64(),
            outcome.wall.as_secs_f64(),
            count(image.metadata()?.len()),
            outcome.peak_bytes >> 20,
        );
        std::fs::remove_file(&image)?;
    }
    println!();
    Ok(())
}

fn contenders(programs: &Programs, source: &Path, image: &Path) -> Vec<Contender> {
    let ours = |settings: &str| Contender {
        name: format!("mkdwarfs | {settings}"),
        run: programs
            .build(source, image)
            .arg("--progress=none")
            .args(settings.split(' ')),
    };
    let squashfs = |settings: &str| Contender {
        name: format!("mksquashfs | {settings}"),
        run: mksquashfs(source, image, settings),
    };
    let mut rows = vec![ours("-l 1 -S 20"), ours("-l 7 -S 20"), ours("-l 7")];
    if install::has("mksquashfs") {
        rows.insert(1, squashfs("-comp lz4 -b 1M"));
        rows.push(squashfs("-comp zstd -Xcompression-level 22 -b 1M"));
    } else {
        println!("mksquashfs is skipped: not installed");
    }
    rows
}

/// Prepares a build of a squashfs image with as many processors as ours uses.
pub(super) fn mksquashfs(source: &Path, image: &Path, settings: &str) -> Run {
    let cpus = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .to_string();
    let run = Run::new("mksquashfs")
        .current_dir(&target_dir())
        .arg(source)
        .arg(image);
    let run = run.args(["-noappend", "-no-progress", "-quiet", "-processors", &cpus]);
    run.args(settings.split(' '))
        .time_max(std::time::Duration::from_secs(4 * 3600))
}
