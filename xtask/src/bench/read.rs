//! Reading: walking and reading a mounted image, against other drivers over an image of the same tree.
//!
//! `find` asks for names and types, `tar c | cat` for everything. Cold means a fresh mount and empty kernel caches, warm
//! the same again on that mount. Medians of all runs; the drivers take turns, so that a busy moment hits all alike.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use durin_testkit::mount::{self, Mount};
use durin_testkit::programs::Programs;
use durin_testkit::run::{Run, cpu_time};
use durin_testkit::skip::is_root;

use super::build::Builder;
use crate::install;
use crate::say::{complain, say};
use crate::workspace::succeed;

/// What is run over a mount; `$1` is the mount point.
const JOBS: [(&str, &str); 2] = [
    ("find", "find \"$1\" > /dev/null"),
    ("tar c \\| cat", "tar -c -f - -C \"$1\" . | cat > /dev/null"),
];
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Something that mounts an image.
struct Driver {
    name: &'static str,
    image: PathBuf,
    /// `None` for a file system of the kernel.
    program: Option<PathBuf>,
}

/// What one job took.
#[derive(Clone, Copy)]
struct Sample {
    wall: Duration,
    cpu: Duration,
}

pub(super) fn run(programs: &Programs, source: &Path, scratch: &Path, runs: usize) -> Result<()> {
    say!("## Reading ({runs} runs, medians)\n");
    if let Err(why) = mount::available() {
        say!("skipped: {why}");
        return Ok(());
    }
    let pairs = [
        (
            "zstd",
            Builder::Mkdwarfs("-l 6"),
            Builder::Mksquashfs("-comp zstd -Xcompression-level 22 -b 1M"),
        ),
        (
            "lz4",
            Builder::Mkdwarfs("-l 1 -S 20"),
            Builder::Mksquashfs("-comp lz4 -b 1M"),
        ),
    ];
    let has_squashfs = install::has("mksquashfs");
    for (codec, ours, squashfs) in pairs {
        let builders = if has_squashfs {
            vec![ours, squashfs]
        } else {
            vec![ours]
        };
        for builder in builders {
            // The building part has left its images.
            if !builder.image(scratch).is_file() {
                builder.build(programs, source, scratch)?;
            }
        }
        say!("Images: `{ours}`, `{squashfs}`.\n");
        let (ours, squashfs) = (ours.image(scratch), squashfs.image(scratch));
        table(
            codec,
            &drivers(programs, &ours, &squashfs, has_squashfs),
            runs,
        )?;
    }
    Ok(())
}

fn drivers(programs: &Programs, ours: &Path, squashfs: &Path, has_squashfs: bool) -> Vec<Driver> {
    let program = |name: &'static str, image: &Path, program: Option<PathBuf>| Driver {
        name,
        image: image.to_owned(),
        program,
    };
    let mut drivers = vec![program(
        "dwarfs (durin)",
        ours,
        Some(programs.path("dwarfs")),
    )];
    if has_squashfs && install::has("squashfuse") {
        drivers.push(program("squashfuse", squashfs, Some("squashfuse".into())));
    } else {
        say!("squashfuse is skipped: not installed");
    }
    if has_squashfs && kernel_has_squashfs() {
        drivers.push(program("squashfs (kernel)", squashfs, None));
    } else {
        say!("the kernel's squashfs is skipped: needs root and the file system");
    }
    drivers
}

fn kernel_has_squashfs() -> bool {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    is_root() && known.split_whitespace().any(|word| word == "squashfs")
}

fn table(codec: &str, drivers: &[Driver], runs: usize) -> Result<()> {
    say!("| {codec} | job | cold wall s | cold CPU s | warm wall s | warm CPU s |");
    say!("|---|---|--:|--:|--:|--:|");
    for (job, script) in JOBS {
        let mut samples = vec![(Vec::new(), Vec::new()); drivers.len()];
        for _ in 0..runs {
            for (driver, (cold, warm)) in drivers.iter().zip(&mut samples) {
                let mounted = Mounted::new(driver)?;
                drop_caches()?;
                cold.push(measure(&mounted, script)?);
                warm.push(measure(&mounted, script)?);
            }
        }
        for (driver, (cold, warm)) in drivers.iter().zip(&samples) {
            let row = [median(cold), median(warm)];
            let cells =
                row.map(|s| format!("{:.2} | {:.2}", s.wall.as_secs_f64(), s.cpu.as_secs_f64()));
            say!("| {} | {job} | {} |", driver.name, cells.join(" | "));
        }
    }
    say!();
    Ok(())
}

fn measure(mounted: &Mounted, script: &str) -> Result<Sample> {
    let before = mounted.driver_cpu();
    let outcome = Run::new("sh")
        .args(["-c", script, "sh"])
        .arg(mounted.path())
        .output();
    ensure!(outcome.code == Some(0), "{script}: {outcome}");
    Ok(Sample {
        wall: outcome.wall,
        cpu: outcome.cpu + mounted.driver_cpu().saturating_sub(before),
    })
}

/// Medians of wall and CPU time, each for itself.
fn median(samples: &[Sample]) -> Sample {
    let middle = |time: fn(&Sample) -> Duration| {
        let mut times: Vec<_> = samples.iter().map(time).collect();
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    Sample {
        wall: middle(|sample| sample.wall),
        cpu: middle(|sample| sample.cpu),
    }
}

fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    if is_root() {
        std::fs::write(DROP_CACHES, "3\n").context(DROP_CACHES)?;
    }
    Ok(())
}

/// A mount of either sort; unmounted when dropped.
enum Mounted {
    Fuse(Mount),
    Kernel(PathBuf),
}

impl Mounted {
    fn new(driver: &Driver) -> Result<Self> {
        if let Some(program) = &driver.program {
            return Ok(Self::Fuse(Mount::foreground(program, &driver.image, &[])));
        }
        let point = driver.image.with_extension("mnt");
        std::fs::create_dir_all(&point)?;
        let mut command = Command::new("mount");
        command
            .args(["-t", "squashfs", "-o", "loop,ro"])
            .arg(&driver.image)
            .arg(&point);
        succeed(&mut command)?;
        Ok(Self::Kernel(point))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Fuse(mount) => mount.path(),
            Self::Kernel(point) => point,
        }
    }

    /// Time that the driver's own process has used so far; a kernel's work is in the reading program's time.
    fn driver_cpu(&self) -> Duration {
        match self {
            Self::Fuse(mount) => mount.driver_pid().map_or(Duration::ZERO, cpu_time),
            Self::Kernel(_) => Duration::ZERO,
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Self::Kernel(point) = self
            && let Err(error) = mount::unmount(point)
        {
            complain!("cannot unmount {}: {error}", point.display());
        }
    }
}
