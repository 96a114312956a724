//! One job over one system: empty caches, a fresh mount, the figures of client, driver and kernel threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::definition::{Job, System};
use super::shell::{self, Variables};
use super::stand::{KernelThreads, Stand, drop_caches};
use super::subject::Measured;
use crate::bench::verify;

const DIFFERENCES_SHOWN: usize = 5;

/// A system with what it needs to be mounted.
pub(super) struct Ready<'a> {
    pub(super) system: &'a System,
    pub(super) version: String,
    pub(super) image_bytes: u64,
    pub(super) source: PathBuf,
    pub(super) point: PathBuf,
    /// All variables but $FIGURES.
    pub(super) variables: Variables,
    pub(super) figures_file: PathBuf,
}

/// What a job took.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) failure: Option<String>,
    /// Whether that is that it took too long.
    pub(super) is_late: bool,
    pub(super) wall: Duration,
    pub(super) user: Duration,
    pub(super) sys: Duration,
    pub(super) peak_bytes: u64,
    pub(super) figures: BTreeMap<String, f64>,
    /// What it printed, in order, if that is compared.
    pub(super) printed: Option<Vec<Vec<u8>>>,
}

impl Ready<'_> {
    fn mount(&self) -> Result<Stand<'_>> {
        Stand::new(self.system, &self.variables, &self.source, &self.point)
    }

    /// Differences between the corpus and what the system shows, in words.
    pub(super) fn differences(
        &self,
        measured: &Measured,
        time_max: Duration,
    ) -> Result<Option<String>> {
        let tree = measured.corpus.tree.as_ref();
        let tree = tree.context("the corpus was not read")?;
        let stand = self.mount()?;
        let compare = || verify::differences(tree, &stand.point, self.system.keeps);
        let (compared, is_late) = stand.within(time_max, compare)?;
        if is_late {
            let seconds = time_max.as_secs();
            bail!("comparing it with the source takes more than {seconds} s");
        }
        let differences = compared?;
        stand.take_down()?;
        let shown = differences.len().min(DIFFERENCES_SHOWN);
        let message = || {
            format!(
                "{} differences: {}",
                differences.len(),
                differences[..shown].join("; ")
            )
        };
        Ok((!differences.is_empty()).then(message))
    }

    /// Runs a job for at most `time_max`; memory is also taken after `idle`, if there is one.
    pub(super) fn run(
        &self,
        job: &Job,
        idle: Option<Duration>,
        time_max: Duration,
    ) -> Result<Outcome> {
        drop_caches()?;
        let threads = KernelThreads::now();
        let start = Instant::now();
        let stand = self.mount()?;
        let mounted = start.elapsed();
        let variables = self.variables.with("POINT", &stand.point);
        if let Some(before) = &job.before {
            shell::run(before, &variables, time_max)?;
        }
        let (threads, driver) = if job.with_mount {
            (threads, Duration::ZERO)
        } else {
            (KernelThreads::now(), stand.driver_cpu())
        };
        let taken = shell::run(&job.run, &variables, time_max)?;
        let driver = stand.driver_cpu().saturating_sub(driver);
        let threads = KernelThreads::now().since(&threads);
        let mut figures = read_figures(&self.figures_file)?;
        let mut figure = |name: &str, value: f64| figures.insert(name.to_owned(), value);
        figure("driver_s", driver.as_secs_f64());
        figure("kernel_s", threads.as_secs_f64());
        figure("mount_s", mounted.as_secs_f64());
        let peak_bytes = stand.driver_peak_bytes();
        if let Some(idle) = idle.filter(|_| stand.has_driver()) {
            std::thread::sleep(idle);
            figure("idle_after_s", idle.as_secs_f64());
            figure("idle_mib", mib(stand.driver_bytes()));
        }
        stand.take_down()?;
        let printed = job.compares.then(|| shell::sorted_lines(taken.stdout));
        Ok(Outcome {
            failure: taken.failure,
            is_late: taken.is_late,
            wall: taken.wall
                + if job.with_mount {
                    mounted
                } else {
                    Duration::ZERO
                },
            user: taken.user,
            sys: taken.sys,
            peak_bytes,
            figures,
            printed: printed.transpose()?,
        })
    }
}

/// Reads what a client left, and removes it.
fn read_figures(path: &Path) -> Result<BTreeMap<String, f64>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    if path.exists() {
        std::fs::remove_file(path)?;
    }
    let parsed = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Ok(parsed.collect())
}

#[expect(clippy::cast_precision_loss, reason = "for a table")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
