//! Plots, drawn from records: sizes and CPU time as bars, one against the other for all levels of all programs, latency
//! percentiles, scaling with threads.
//!
//! In: the samples of a record. Out: SVG texts with file names. Nothing is measured or written here.

mod charts;
mod scale;
mod svg;

use std::collections::BTreeMap;

use anyhow::Result;

use self::charts::{Axes, Bar, Series, Spread};
use super::baseline::Baseline;
use super::definition::{Tool, tools};
use super::mount;
use super::record::{Median, Sample, Status, medians};
use super::size;
use crate::report::count;

/// A plot with its file and a text for who cannot see it.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    pub(super) file: String,
    pub(super) title: String,
    pub(super) svg: String,
}

/// Families of programs, by how their names in records begin; all others share the last colour.
const FAMILIES: [(&str, &str); 5] = [
    ("durin", "durin"),
    ("dwarfs", "DwarFS 0.15.3"),
    ("squashfs", "squashfs"),
    ("tar", "tar"),
    ("erofs", "erofs"),
];
const OTHERS: &str = "archivers";

const MIB: f64 = 1_048_576.0;

/// Draws all that the samples have figures for.
pub(super) fn plots(samples: &[Sample]) -> Result<Vec<Plot>> {
    let (baseline, tools) = (Baseline::read()?, tools()?);
    let sizes = medians(samples, size::SUITE);
    let mut plots = Vec::new();
    for corpus in corpora(&sizes) {
        let points = measured(corpus, &sizes, &baseline);
        if points.len() > 1 {
            plots.extend(of_sizes(corpus, &points, &tools));
        }
    }
    plots.extend(threads(&medians(samples, "threads")));
    plots.extend(latencies(&medians(samples, mount::SUITE))?);
    Ok(plots)
}

fn corpora<'a>(medians: &'a [Median<'_>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for median in medians {
        if !names.contains(&median.sample.corpus.as_str()) {
            names.push(&median.sample.corpus);
        }
    }
    names
}

fn plot(file: String, title: String, svg: impl FnOnce(&str) -> String) -> Plot {
    let svg = svg(&title);
    Plot { file, title, svg }
}

/// Size and CPU time of one program at one level.
struct Point {
    tool: String,
    mib: f64,
    bytes: u64,
    /// As a multiple of the yardstick's.
    cpu: Option<f64>,
    is_baseline: bool,
}

#[expect(clippy::cast_precision_loss, reason = "for a plot")]
fn measured(corpus: &str, medians: &[Median<'_>], baseline: &Baseline) -> Vec<Point> {
    let of_corpus: Vec<&Median<'_>> = medians
        .iter()
        .filter(|m| m.sample.corpus == corpus && m.sample.status == Status::Ok)
        .collect();
    let ours = of_corpus.iter().map(|m| Point {
        tool: m.sample.tool.clone(),
        mib: m.bytes as f64 / MIB,
        bytes: m.bytes,
        cpu: m.yardsticks,
        is_baseline: false,
    });
    let has_own = of_corpus
        .iter()
        .any(|m| m.sample.tool.starts_with("dwarfs-l"));
    let theirs = baseline.rows(corpus).filter(|_| !has_own).map(|row| Point {
        tool: format!("dwarfs-l{}", row.level),
        mib: row.bytes as f64 / MIB,
        bytes: row.bytes,
        cpu: baseline.cpu_ratio(row),
        is_baseline: true,
    });
    let mut points: Vec<Point> = ours.chain(theirs).collect();
    points.sort_by_key(|point| point.bytes);
    points
}

fn of_sizes(corpus: &str, points: &[Point], tools: &[Tool]) -> Vec<Plot> {
    let bar = |point: &Point, value: f64, shown: String| Bar {
        label: label(point, tools),
        value,
        shown,
        colour: family(&point.tool),
        is_faint: point.is_baseline,
    };
    let sizes: Vec<Bar> = points
        .iter()
        .map(|point| bar(point, point.mib, count(point.bytes)))
        .collect();
    let mut times: Vec<Bar> = points
        .iter()
        .filter_map(|point| Some(bar(point, point.cpu?, format!("{:.2}", point.cpu?))))
        .collect();
    times.sort_by(|a, b| a.value.total_cmp(&b.value));
    let faint = if points.iter().any(|point| point.is_baseline) {
        "; pale: on another machine, beside the same yardstick"
    } else {
        ""
    };
    let unit = "multiples of the yardstick's CPU seconds";
    let axes = Axes {
        x: "CPU seconds of the build, as a multiple of the yardstick's (logarithmic)",
        y: "MiB (logarithmic); below and left is better",
        is_logarithmic: true,
    };
    vec![
        plot(
            format!("size-{corpus}.svg"),
            format!("{corpus}: size"),
            |title| charts::bars(title, &format!("bytes{faint}"), &sizes),
        ),
        plot(
            format!("cpu-{corpus}.svg"),
            format!("{corpus}: CPU time of the build"),
            |title| charts::bars(title, &format!("{unit}{faint}"), &times),
        ),
        plot(
            format!("pareto-{corpus}.svg"),
            format!("{corpus}: size against CPU time"),
            |title| charts::plane(title, axes, &series(points)),
        ),
    ]
}

/// The points of each family, joined where they are levels of one program.
fn series(points: &[Point]) -> Vec<Series> {
    let mut all: BTreeMap<usize, Vec<(f64, f64, String)>> = BTreeMap::new();
    for point in points {
        let Some(cpu) = point.cpu else { continue };
        let tool = point.tool.as_str();
        let name = match family(tool) {
            // Levels of one program.
            0 | 1 => tool.find('-').map_or(tool, |at| &tool[at..]),
            // Of several programs: the name says which.
            family if family == FAMILIES.len() => tool,
            _ => tool.split_once('-').map_or(tool, |parts| parts.1),
        };
        let place = (cpu, point.mib, name.to_owned());
        all.entry(family(&point.tool)).or_default().push(place);
    }
    let series = all.into_iter().map(|(colour, mut points)| {
        points.sort_by(|a, b| a.2.cmp(&b.2));
        Series {
            name: FAMILIES
                .get(colour)
                .map_or(OTHERS, |(_, name)| *name)
                .to_owned(),
            colour,
            points,
            is_joined: colour < 2,
        }
    });
    series.collect()
}

fn family(tool: &str) -> usize {
    let first = tool.split('-').next().unwrap_or_default();
    let found = FAMILIES.iter().position(|(name, _)| *name == first);
    found.unwrap_or(FAMILIES.len())
}

fn label(point: &Point, tools: &[Tool]) -> String {
    if let Some(level) = point.tool.strip_prefix("durin-l") {
        return format!("durin -l{level}");
    }
    if let Some(level) = point.tool.strip_prefix("dwarfs-l") {
        return format!("DwarFS 0.15.3 -l{level}");
    }
    let tool = tools.iter().find(|tool| tool.name == point.tool);
    tool.map_or_else(|| point.tool.clone(), |tool| tool.label.clone())
}

/// How much faster builds are with more threads, a plot a corpus.
#[expect(clippy::cast_precision_loss, reason = "for a plot")]
fn threads(medians: &[Median<'_>]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for corpus in corpora(medians) {
        let mut levels: BTreeMap<&str, Vec<(f64, f64, String)>> = BTreeMap::new();
        for median in medians.iter().filter(|m| m.sample.corpus == corpus) {
            let sample = median.sample;
            let single = medians.iter().find(|m| {
                (&m.sample.corpus, &m.sample.tool, m.sample.threads)
                    == (&sample.corpus, &sample.tool, 1)
            });
            let Some(single) = single.filter(|_| sample.status == Status::Ok) else {
                continue;
            };
            let speed = single.wall_s / median.wall_s.max(f64::MIN_POSITIVE);
            let points = levels.entry(&sample.tool).or_default();
            points.push((sample.threads as f64, speed, format!("{speed:.2}")));
        }
        if levels.is_empty() {
            continue;
        }
        let series: Vec<Series> = levels
            .into_iter()
            .enumerate()
            .map(|(colour, (tool, mut points))| {
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                Series {
                    name: tool.to_owned(),
                    colour,
                    points,
                    is_joined: true,
                }
            })
            .collect();
        let axes = Axes {
            x: "threads",
            y: "how many times as fast as with one thread (wall time)",
            is_logarithmic: false,
        };
        let machine = medians.iter().find(|m| m.sample.corpus == corpus);
        let cpus = machine.map_or("", |m| m.sample.machine.split(" CPUs").next().unwrap_or(""));
        let title = format!("{corpus}: builds by number of threads, on {cpus} processors");
        plots.push(plot(format!("threads-{corpus}.svg"), title, |title| {
            charts::plane(title, axes, &series)
        }));
    }
    plots
}

/// Percentiles of the time of a read, a plot for each corpus and job.
fn latencies(medians: &[Median<'_>]) -> Result<Vec<Plot>> {
    let labels = mount::labels()?;
    let mut plots = Vec::new();
    for corpus in corpora(medians) {
        // What fio tells is in whole microseconds; the client's figures are finer.
        let jobs = labels
            .jobs
            .iter()
            .filter(|(job, _)| !job.starts_with("fio"));
        for (job, job_label) in jobs {
            let rows: Vec<Spread> = labels
                .systems
                .iter()
                .filter_map(|(system, label)| {
                    let name = format!("{system}:{job}");
                    let median = medians.iter().find(|m| {
                        m.sample.corpus == corpus
                            && m.sample.tool == name
                            && m.sample.status == Status::Ok
                    })?;
                    spread(median, label, system)
                })
                .collect();
            if rows.len() > 1 {
                let title = format!("{corpus}: {job_label}").replace('`', "");
                plots.push(plot(
                    format!("latency-{corpus}-{job}.svg"),
                    title,
                    |title| {
                        let unit =
                            "microseconds a read: median, 90, 99 and 99.9 of 100 (logarithmic)";
                        charts::spreads(title, unit, &rows)
                    },
                ));
            }
        }
    }
    Ok(plots)
}

fn spread(median: &Median<'_>, label: &str, system: &str) -> Option<Spread> {
    let names = ["p50_us", "p90_us", "p99_us", "p999_us"];
    let values: Vec<(String, f64)> = names
        .into_iter()
        .filter_map(|name| {
            Some((
                name.trim_end_matches("_us").to_owned(),
                *median.figures.get(name)?,
            ))
        })
        .collect();
    (!values.is_empty()).then(|| Spread {
        label: label.replace('*', ""),
        values,
        colour: if system.starts_with("durin") { 0 } else { 2 },
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::record::tests::sample;
    use super::*;

    #[test]
    fn each_figure_of_a_record_is_drawn() {
        let mut samples = vec![
            sample("multiver-small", size::YARDSTICK, 2000, 100.0),
            sample("multiver-small", "durin-l7", 1000, 150.0),
            sample("multiver-small", "zpaq-m5", 900, 999.0),
        ];
        for threads in [1, 2] {
            let mut one = sample("multiver-small", "durin-l1", 1, 4.0);
            one.suite = "threads".to_owned();
            one.threads = threads;
            samples.push(one);
        }
        for system in ["durin-1m", "directory"] {
            let mut one = sample("file", &format!("{system}:random-4k"), 1, 1.0);
            one.suite = mount::SUITE.to_owned();
            one.figures = BTreeMap::from([("p50_us".to_owned(), 5.0), ("p99_us".to_owned(), 50.0)]);
            samples.push(one);
        }
        let plots = plots(&samples).unwrap();
        let files: Vec<&str> = plots.iter().map(|plot| plot.file.as_str()).collect();
        assert_eq!(
            files,
            [
                "size-multiver-small.svg",
                "cpu-multiver-small.svg",
                "pareto-multiver-small.svg",
                "threads-multiver-small.svg",
                "latency-file-random-4k.svg",
            ]
        );
        // The reference's levels are there too, though they were not measured here.
        assert!(plots[0].svg.contains("DwarFS 0.15.3 -l9"));
    }
}
