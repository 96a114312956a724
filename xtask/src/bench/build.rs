//! Building: CPU seconds and bytes of each program at the same codec and block size.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use durin_testkit::programs::Programs;
use durin_testkit::run::{Outcome, Run};

use crate::install;
use crate::report::count;
use crate::say::say;

const BUILD_TIME_MAX: Duration = Duration::from_secs(4 * 3600);

/// A program that builds images, at settings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Builder {
    /// Ours.
    Mkdwarfs(&'static str),
    /// The peer, with as many processors as ours uses.
    Mksquashfs(&'static str),
}

/// What is compared: the same codec and block size, and our own default.
const ROWS: [Builder; 5] = [
    Builder::Mkdwarfs("-l 1 -S 20"),
    Builder::Mksquashfs("-comp lz4 -b 1M"),
    Builder::Mkdwarfs("-l 6 -S 20"),
    Builder::Mkdwarfs("-l 6"),
    Builder::Mksquashfs("-comp zstd -Xcompression-level 22 -b 1M"),
];

impl Builder {
    const fn settings(self) -> &'static str {
        match self {
            Self::Mkdwarfs(settings) | Self::Mksquashfs(settings) => settings,
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Mkdwarfs(_) => "mkdwarfs",
            Self::Mksquashfs(_) => "mksquashfs",
        }
    }

    /// Where the image of these settings is kept for the reading part.
    pub(super) fn image(self, scratch: &Path) -> PathBuf {
        let settings = self.settings().replace(' ', "");
        scratch.join(format!("{}{settings}.image", self.program()))
    }

    /// Builds the image.
    pub(super) fn build(
        self,
        programs: &Programs,
        source: &Path,
        scratch: &Path,
    ) -> Result<Outcome> {
        let image = self.image(scratch);
        let run = match self {
            Self::Mkdwarfs(_) => programs.build(source, &image).arg("--progress=none"),
            Self::Mksquashfs(_) => {
                let cpus = std::thread::available_parallelism()
                    .map_or(1, usize::from)
                    .to_string();
                let run = Run::new("mksquashfs").arg(source).arg(&image);
                run.args(["-noappend", "-no-progress", "-quiet", "-processors", &cpus])
            }
        };
        let outcome = run
            .args(self.settings().split(' '))
            .time_max(BUILD_TIME_MAX)
            .output();
        ensure!(outcome.code == Some(0), "{self}: {outcome}");
        Ok(outcome)
    }
}

impl std::fmt::Display for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.program(), self.settings())
    }
}

pub(super) fn run(programs: &Programs, source: &Path, scratch: &Path) -> Result<()> {
    say!("## Building\n");
    say!("| command | CPU s | wall s | bytes | peak MiB |");
    say!("|---|--:|--:|--:|--:|");
    // Warms the page cache, so that the first row does not pay for reading the disk.
    let read_all = [
        "-c",
        "tar -c -f - \"$1\" 2> /dev/null | cat > /dev/null",
        "sh",
    ];
    let warm = Run::new("sh").args(read_all).arg(source).output();
    ensure!(
        warm.code == Some(0),
        "cannot read {}: {warm}",
        source.display()
    );
    for builder in ROWS {
        if !install::has(builder.program()) && matches!(builder, Builder::Mksquashfs(_)) {
            say!("| {builder} | skipped: not installed ||||");
            continue;
        }
        let outcome = builder.build(programs, source, scratch)?;
        say!(
            "| {builder} | {:.1} | {:.1} | {} | {} |",
            outcome.cpu.as_secs_f64(),
            outcome.wall.as_secs_f64(),
            count(builder.image(scratch).metadata()?.len()),
            outcome.peak_bytes >> 20,
        );
    }
    say!();
    Ok(())
}
