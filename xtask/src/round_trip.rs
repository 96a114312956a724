//! `cargo xtask roundtrip DIR`: a real tree through several levels and back, compared byte for byte.

use anyhow::{Context, Result, ensure};
use durin_testkit::roundtrip::{POSITIONS, Times, Trip};
use durin_testkit::tree::snapshot;

use crate::report::{census, percent, seconds, size};
use crate::workspace;

/// One of each block size and codec family.
const LEVELS: &str = "0,1,3,4,7,8";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    workspace::check_options(arguments, &["levels"])?;
    let dir = workspace::positional(arguments).context("which directory?")?;
    let source = std::fs::canonicalize(dir).with_context(|| dir.to_owned())?;
    let levels = workspace::option(arguments, "levels").unwrap_or(LEVELS);
    let programs = workspace::release_programs()?;
    let scratch = workspace::scratch_dir()?;
    println!("reading {} ...", source.display());
    let tree = snapshot(&source, &POSITIONS)?;
    let found = census(&tree);
    println!("  {found}, {}", size(found.bytes));

    let mut failures = 0;
    for (index, level) in levels.split(',').enumerate() {
        // Both ways of keeping times take their turn.
        let times = if index % 2 == 0 {
            Times::Exact
        } else {
            Times::Default
        };
        let level_args = ["-l", level];
        let trip = Trip {
            programs: &programs,
            source: &source,
            work: scratch.path(),
            build_args: &level_args,
            times,
        };
        let report = trip.make(&tree)?;
        let mounted = report.mount.map_or("no FUSE".to_owned(), seconds);
        println!(
            "level {level}: {} ({}), build {} wall {} CPU {} MiB peak, mount {mounted}, read {}, unpack {}: {}",
            size(report.image_bytes),
            percent(report.image_bytes, found.bytes),
            seconds(report.build.wall),
            seconds(report.build.cpu),
            report.build.peak_bytes >> 20,
            seconds(report.read),
            seconds(report.extract),
            if report.differences.is_empty() {
                "all equal"
            } else {
                "DIFFERS"
            },
        );
        for difference in report.differences.iter().take(20) {
            println!("    {difference}");
        }
        failures += usize::from(!report.differences.is_empty());
    }
    ensure!(failures == 0, "{failures} levels differ");
    Ok(())
}
