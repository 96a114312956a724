//! The reference's figures, as data (`benchmarks/baseline.toml`), and what of our figures misses its target.
//!
//! CPU seconds of another machine mean nothing here: they are compared as multiples of the yardstick's seconds on the
//! same corpus, each measured beside its own yardstick.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::record::{Median, Status};
use crate::report::count;
use crate::workspace;

/// Peers within this part of our size must have cost more CPU time than we did.
const NEAR_PERCENT: u64 = 20;
/// The levels that must be smaller than every peer.
const LEVELS_SMALLEST: [u8; 2] = [7, 9];

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Baseline {
    pub(crate) source: String,
    target: Vec<Target>,
    yardstick: Vec<Yardstick>,
    row: Vec<Row>,
}

/// What is to be reached, as parts of the reference's figures.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    kind: String,
    levels: Vec<u8>,
    bytes: f64,
    cpu: f64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Yardstick {
    corpus: String,
    bytes: u64,
    cpu_s: f64,
}

/// What the reference did at one level.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    corpus: String,
    pub(crate) level: u8,
    pub(crate) bytes: u64,
    pub(crate) cpu_s: f64,
    pub(crate) peak_mib: u64,
}

/// The figures of one corpus, measured here.
pub(crate) struct Measured<'a> {
    pub(crate) corpus: &'a str,
    /// `versions` or anything else.
    pub(crate) kind: &'a str,
    /// Our levels.
    pub(crate) ours: Vec<(u8, &'a Median<'a>)>,
    pub(crate) peers: Vec<&'a Median<'a>>,
}

impl Baseline {
    pub(crate) fn read() -> Result<Self> {
        let path = workspace::benchmarks().join("baseline.toml");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The rows of a corpus.
    pub(crate) fn rows(&self, corpus: &str) -> impl Iterator<Item = &Row> {
        self.row.iter().filter(move |row| row.corpus == corpus)
    }

    /// CPU time of a row as a multiple of the yardstick's beside it.
    pub(crate) fn cpu_ratio(&self, row: &Row) -> Option<f64> {
        let mut yardsticks = self.yardstick.iter();
        let yardstick = yardsticks.find(|yardstick| yardstick.corpus == row.corpus)?;
        Some(row.cpu_s / yardstick.cpu_s)
    }

    /// Whether the yardstick made the same size as it did beside the reference: then the corpus is the same.
    pub(crate) fn is_same_corpus(&self, corpus: &str, yardstick_bytes: u64) -> Option<bool> {
        let mut yardsticks = self.yardstick.iter();
        let yardstick = yardsticks.find(|yardstick| yardstick.corpus == corpus)?;
        // Times of files made here differ, and the tables that hold them, so some bytes more or less are no difference.
        Some(yardstick.bytes.abs_diff(yardstick_bytes) < yardstick.bytes / 100)
    }

    fn target(&self, kind: &str, level: u8) -> Option<&Target> {
        let kind = if kind == "versions" { kind } else { "other" };
        let of_kind = |target: &&Target| target.kind == kind || target.kind == "any";
        let mut targets = self.target.iter().filter(of_kind);
        targets.find(|target| target.levels.contains(&level))
    }

    /// Says what misses its target.
    pub(crate) fn misses(&self, measured: &Measured<'_>) -> Vec<String> {
        let mut misses = Vec::new();
        for (level, ours) in &measured.ours {
            let mut miss =
                |what: String| misses.push(format!("{} -l{level}: {what}", measured.corpus));
            if ours.sample.status != Status::Ok {
                miss(format!(
                    "{}: {}",
                    ours.sample.status.name(),
                    ours.sample.message
                ));
                continue;
            }
            self.against_reference(measured, *level, ours, &mut miss);
            if LEVELS_SMALLEST.contains(level) {
                against_peers(measured, ours, &mut miss);
            }
        }
        misses
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "two digits of a ratio are shown"
    )]
    fn against_reference(
        &self,
        measured: &Measured<'_>,
        level: u8,
        ours: &Median<'_>,
        miss: &mut impl FnMut(String),
    ) {
        let mut rows = self.rows(measured.corpus);
        let (Some(row), Some(target)) = (
            rows.find(|row| row.level == level),
            self.target(measured.kind, level),
        ) else {
            return;
        };
        let size = ours.bytes as f64 / row.bytes as f64;
        if size > target.bytes {
            miss(format!(
                "{} bytes are {size:.3} of the reference's {}, allowed are {:.2}",
                count(ours.bytes),
                count(row.bytes),
                target.bytes
            ));
        }
        let ratio = ours.cost();
        if let Some(theirs) = self.cpu_ratio(row)
            && ratio > theirs * target.cpu
        {
            miss(format!(
                "CPU is {ratio:.2} yardsticks, {:.2} of the reference's {theirs:.2}, allowed are {:.2}",
                ratio / theirs,
                target.cpu
            ));
        }
    }
}

fn against_peers(measured: &Measured<'_>, ours: &Median<'_>, miss: &mut impl FnMut(String)) {
    let peers = measured.peers.iter();
    for peer in peers.filter(|peer| peer.sample.status == Status::Ok) {
        let name = &peer.sample.tool;
        if ours.bytes >= peer.bytes {
            miss(format!(
                "{} bytes, {name} has {}",
                count(ours.bytes),
                count(peer.bytes)
            ));
        }
        let is_near = peer.bytes <= ours.bytes + ours.bytes / 100 * NEAR_PERCENT;
        if is_near && ours.cost() >= peer.cost() {
            miss(format!(
                "{:.2} yardsticks of CPU, {name} at {} bytes took {:.2}",
                ours.cost(),
                count(peer.bytes),
                peer.cost()
            ));
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::record::{Sample, medians, tests::sample};
    use super::super::size::YARDSTICK;
    use super::*;

    fn misses(kind: &str, samples: &[Sample]) -> Vec<String> {
        let medians = medians(samples, "size");
        let level = |median: &Median<'_>| median.sample.tool.strip_prefix("durin-l")?.parse().ok();
        let measured = Measured {
            corpus: "multiver-small",
            kind,
            ours: medians
                .iter()
                .filter_map(|m| Some((level(m)?, m)))
                .collect(),
            peers: medians.iter().filter(|m| level(m).is_none()).collect(),
        };
        Baseline::read().unwrap().misses(&measured)
    }

    #[test]
    fn the_targets_of_the_order() {
        let yardstick = sample("multiver-small", YARDSTICK, 188_952_576, 100.0);
        let check = |kind, level: u8, bytes, cpu, expect: usize| {
            let ours = sample("multiver-small", &format!("durin-l{level}"), bytes, cpu);
            let found = misses(kind, &[yardstick.clone(), ours]);
            assert_eq!(found.len(), expect, "{found:#?}");
        };
        check("versions", 7, 91_400_000, 190.0, 0);
        check("versions", 7, 91_500_000, 192.0, 2);
        check("versions", 9, 61_900_000, 172.0, 0);
        check("other", 7, 107_000_000, 250.0, 0);
        check("other", 7, 107_600_000, 260.0, 2);
        check("versions", 1, 300_000_000, 3.0, 0);
        check("versions", 1, 300_000_000, 4.0, 1);
        // Levels that the reference was not measured at are compared with peers alone.
        check("versions", 8, 1 << 40, 9999.0, 0);
    }

    #[test]
    fn peers_are_to_be_beaten() {
        let yardstick = sample("multiver-small", YARDSTICK, 188_952_576, 100.0);
        let ours = sample("multiver-small", "durin-l7", 80_000_000, 100.0);
        let check = |bytes, cpu, expect: usize| {
            let peer = sample("multiver-small", "peer", bytes, cpu);
            let found = misses("versions", &[yardstick.clone(), ours.clone(), peer]);
            assert_eq!(found.len(), expect, "{found:#?}");
        };
        check(79_000_000, 1000.0, 1);
        check(79_000_000, 10.0, 2);
        check(90_000_000, 10.0, 1);
        check(99_000_000, 10.0, 0);
    }

    #[test]
    fn another_corpus_is_noticed() {
        let baseline = Baseline::read().unwrap();
        assert_eq!(baseline.is_same_corpus("rootfs", 311_800_000), Some(true));
        assert_eq!(baseline.is_same_corpus("rootfs", 411_800_000), Some(false));
        assert_eq!(baseline.is_same_corpus("mine", 1), None);
    }
}
