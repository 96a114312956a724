//! `--suite=size`: how small each program makes a tree, and for how much CPU time and memory.
//!
//! The yardstick is run first on each corpus, so that every other figure can be read as a multiple of it; slow tools
//! come last, on all corpora, so that they do not hold up the others.

use std::path::Path;

use anyhow::{Result, ensure};

use super::baseline::{Baseline, Measured};
use super::definition::{Tool, chosen, levels, tools};
use super::document;
use super::record::{Median, Sample, Status, medians};
use super::session::{Corpus, OPTIONS, Session};
use super::table::{self, Format, Table};
use crate::corpora;
use crate::report::count;
use crate::say::say;
use crate::workspace::{check_options, option};

pub(super) const SUITE: &str = "size";
/// The first of the tools.
pub(super) const YARDSTICK: &str = "squashfs-zstd15-128k";
/// One of each family of codecs and block sizes, and the default.
const LEVELS: &str = "1,3,5,6,7,9";

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let own = ["levels", "peers", "threads"];
    check_options(arguments, &[OPTIONS.as_slice(), &own].concat())?;
    let mut session = Session::open(arguments)?;
    let format = Format::parse(option(arguments, "format").unwrap_or("text"))?;
    let peers = chosen(tools()?, option(arguments, "peers").unwrap_or("none"))?;
    let levels = levels(option(arguments, "levels").unwrap_or(LEVELS))?;
    let cpus = std::thread::available_parallelism()?.to_string();
    let threads = option(arguments, "threads").unwrap_or(&cpus).parse()?;
    let mut names: Vec<String> = Vec::new();
    let mut failures = 0;
    if session.is_tables_only {
        let all = || recorded(session.record.samples().iter());
        let chosen = option(arguments, "corpus");
        names = chosen.map_or_else(all, |list| list.split(',').map(str::to_owned).collect());
    } else {
        let mut corpora = session.corpora(arguments)?;
        names.extend(corpora.iter().map(|corpus| corpus.name.clone()));
        let (yardstick, others) = peers.split_at(1);
        let ours: Vec<Tool> = levels.iter().copied().map(Tool::ours).collect();
        let first: Vec<&Tool> = yardstick.iter().chain(&ours).collect();
        failures += run_all(&mut session, &first, &mut corpora, threads)?;
        for tool in others {
            failures += run_all(&mut session, &[tool], &mut corpora, threads)?;
        }
    }
    let medians = medians(session.record.samples(), SUITE);
    let (tables, misses) = report(&medians, &names)?;
    if let Some(file) = option(arguments, "into") {
        return document::write(Path::new(file), &document::rendered(sections(&medians)?));
    }
    for table in tables {
        say!("{}", table.render(format));
    }
    for miss in &misses {
        say!("misses: {miss}");
    }
    ensure!(
        failures == 0,
        "{failures} runs failed or gave a wrong result"
    );
    Ok(())
}

/// Names of what `run` runs with these options.
pub(super) fn names(arguments: &[String]) -> Result<Vec<String>> {
    let peers = chosen(tools()?, option(arguments, "peers").unwrap_or("none"))?;
    let levels = levels(option(arguments, "levels").unwrap_or(LEVELS))?;
    let (yardstick, others) = peers.split_at(1);
    let ours = levels.into_iter().map(Tool::ours);
    let tools = yardstick.iter().cloned().chain(ours);
    Ok(tools
        .chain(others.iter().cloned())
        .map(|tool| tool.name)
        .collect())
}

fn run_all(
    session: &mut Session,
    tools: &[&Tool],
    corpora: &mut [Corpus],
    threads: usize,
) -> Result<usize> {
    let mut failures = 0;
    for corpus in corpora {
        for tool in tools {
            let is_right = session.run(SUITE, tool, corpus, threads)?;
            failures += usize::from(!is_right);
        }
        corpus.forget();
    }
    Ok(failures)
}

/// The corpora that there are figures of.
fn recorded<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for sample in samples {
        if sample.suite == SUITE && !names.contains(&sample.corpus) {
            names.push(sample.corpus.clone());
        }
    }
    names
}

/// The tables of a record, by the names of their places in documents.
pub(super) fn sections(medians: &[Median<'_>]) -> Result<Vec<(String, Vec<Table>)>> {
    let names = recorded(medians.iter().map(|median| median.sample));
    let summary = summary(medians, &names, &tools()?);
    Ok(vec![
        ("summary".to_owned(), vec![summary]),
        ("size".to_owned(), report(medians, &names)?.0),
    ])
}

/// Makes a table a corpus, and says what misses its target.
fn report(medians: &[Median<'_>], corpora: &[String]) -> Result<(Vec<Table>, Vec<String>)> {
    let (baseline, tools) = (Baseline::read()?, tools()?);
    let (mut tables, mut misses) = (Vec::new(), Vec::new());
    for corpus in corpora {
        let of_corpus: Vec<&Median<'_>> = medians
            .iter()
            .filter(|median| median.sample.corpus == *corpus)
            .collect();
        let is_yardstick = |median: &&&Median<'_>| median.sample.tool == YARDSTICK;
        let yardstick = of_corpus.iter().find(is_yardstick).copied();
        tables.push(table(corpus, &of_corpus, yardstick, &baseline, &tools));
        let Some(yardstick) = yardstick else { continue };
        if baseline.is_same_corpus(corpus, yardstick.bytes) == Some(false) {
            say!("{corpus}: is not the tree that the reference was measured with");
        }
        misses.extend(
            baseline.misses(&Measured {
                corpus,
                kind: &corpora::kind(corpus)?,
                ours: of_corpus
                    .iter()
                    .filter_map(|m| Some((level(m)?, *m)))
                    .collect(),
                peers: of_corpus
                    .iter()
                    .copied()
                    .filter(|m| level(m).is_none())
                    .collect(),
            }),
        );
    }
    Ok((tables, misses))
}

fn level(median: &Median<'_>) -> Option<u8> {
    median.sample.tool.strip_prefix("durin-l")?.parse().ok()
}

/// One row of a table before it is sorted by size.
struct Line {
    bytes: u64,
    cells: Vec<String>,
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn table(
    corpus: &str,
    medians: &[&Median<'_>],
    yardstick: Option<&Median<'_>>,
    baseline: &Baseline,
    tools: &[Tool],
) -> Table {
    let ratio = |value: f64, base: Option<f64>| {
        base.map_or("-".to_owned(), |base| format!("{:.2}", value / base))
    };
    let yard_bytes = yardstick.map(|yardstick| yardstick.bytes as f64);
    let mut lines: Vec<Line> = Vec::new();
    for median in medians {
        let name = &median.sample.tool;
        let label = tools.iter().find(|tool| tool.name == *name);
        let label = label.map_or_else(|| ours(name), |tool| tool.label.clone());
        let spread = if median.runs > 1 {
            format!(
                "{:.1} ({} runs, spread {:.1})",
                median.cpu_s, median.runs, median.cpu_spread_s
            )
        } else {
            format!("{:.1}", median.cpu_s)
        };
        let is_result = median.sample.status == Status::Ok;
        lines.push(Line {
            bytes: if is_result { median.bytes } else { u64::MAX },
            cells: vec![
                label,
                if is_result {
                    count(median.bytes)
                } else {
                    median.sample.status.name().to_owned()
                },
                ratio(median.bytes as f64, yard_bytes.filter(|_| is_result)),
                spread,
                median
                    .yardsticks
                    .map_or("-".to_owned(), |times| format!("{times:.2}")),
                format!("{:.0}", median.wall_s),
                (median.peak_bytes >> 20).to_string(),
                figure(median, "unpack_cpu_s"),
                figure(median, "tar_cpu_s"),
            ],
        });
    }
    for row in baseline.rows(corpus) {
        lines.push(Line {
            bytes: row.bytes,
            cells: vec![
                format!(
                    "{} -l{} (baseline, another machine)",
                    baseline.source, row.level
                ),
                count(row.bytes),
                ratio(row.bytes as f64, yard_bytes),
                "-".to_owned(),
                baseline
                    .cpu_ratio(row)
                    .map_or("-".to_owned(), |cpu| format!("{cpu:.2}")),
                "-".to_owned(),
                row.peak_mib.to_string(),
                "-".to_owned(),
                "-".to_owned(),
            ],
        });
    }
    lines.sort_by_key(|line| line.bytes);
    let facts = medians.iter().find(|median| median.sample.corpus_files > 0);
    let facts = facts.map_or(String::new(), |median| {
        format!(
            " ({} files, {} bytes)",
            count(median.sample.corpus_files),
            count(median.sample.corpus_bytes)
        )
    });
    Table {
        title: format!("{corpus}{facts}"),
        columns: table::columns(&[
            "program",
            "bytes",
            "of yardstick",
            "CPU s",
            "CPU/yardstick",
            "wall s",
            "peak MiB",
            "unpack CPU s",
            "as tar CPU s",
        ]),
        rows: lines.into_iter().map(|line| line.cells).collect(),
    }
}

fn figure(median: &Median<'_>, name: &str) -> String {
    let value = median.figures.get(name);
    value.map_or("-".to_owned(), |value| format!("{value:.1}"))
}

/// One table of all corpora: bytes, and CPU time as a multiple of the yardstick's.
fn summary(medians: &[Median<'_>], corpora: &[String], tools: &[Tool]) -> Table {
    let find = |corpus: &str, tool: &str| {
        let mut of_tool = medians
            .iter()
            .filter(|median| median.sample.corpus == corpus && median.sample.tool == tool);
        of_tool.find(|median| median.sample.status == Status::Ok)
    };
    let names = (0..=9).map(|level| format!("durin-l{level}"));
    let names = names.chain(tools.iter().map(|tool| tool.name.clone()));
    let mut rows = Vec::new();
    for name in names {
        let label = tools.iter().find(|tool| tool.name == name);
        let label = label.map_or_else(|| ours(&name), |tool| tool.label.clone());
        let cells: Vec<String> = corpora
            .iter()
            .map(|corpus| {
                let Some(median) = find(corpus, &name) else {
                    return "-".to_owned();
                };
                let ratio = median.yardsticks.map(|times| format!(" ({times:.2})"));
                format!("{}{}", count(median.bytes), ratio.unwrap_or_default())
            })
            .collect();
        if cells.iter().any(|cell| cell != "-") {
            rows.push([vec![label], cells].concat());
        }
    }
    Table {
        title: "Bytes, and CPU time as a multiple of the yardstick's".to_owned(),
        columns: std::iter::once("program")
            .chain(corpora.iter().map(String::as_str))
            .map(str::to_owned)
            .collect(),
        rows,
    }
}

fn ours(name: &str) -> String {
    name.strip_prefix("durin-l")
        .map_or_else(|| name.to_owned(), |level| format!("**durin -l{level}**"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::record::tests::sample;
    use super::*;

    #[test]
    fn the_yardstick_is_the_first_tool() {
        assert_eq!(tools().unwrap()[0].name, YARDSTICK);
    }

    #[test]
    fn the_summary_has_a_column_a_corpus() {
        let samples = [
            sample("a", "squashfs-zstd15-128k", 2000, 100.0),
            sample("a", "durin-l7", 1000, 150.0),
            sample("b", "durin-l7", 3, 1.0),
        ];
        let medians = medians(&samples, SUITE);
        let corpora = ["a", "b"].map(str::to_owned);
        let table = summary(&medians, &corpora, &tools().unwrap());
        assert_eq!(table.rows[0], ["**durin -l7**", "1,000 (1.50)", "3"]);
        assert_eq!(table.rows[1][1..], ["2,000 (1.00)", "-"]);
        assert_eq!(table.rows.len(), 2);
    }

    #[test]
    fn rows_are_sorted_and_relative() {
        let mut samples = vec![
            sample("multiver-small", "squashfs-zstd15-128k", 200_000_000, 100.0),
            sample("multiver-small", "durin-l7", 50_000_000, 150.0),
            sample("multiver-small", "zpaq-m5", 1, 999.0),
        ];
        samples[2].status = Status::Timeout;
        let medians = medians(&samples, SUITE);
        let references: Vec<_> = medians.iter().collect();
        let table = table(
            "multiver-small",
            &references,
            medians.first(),
            &Baseline::read().unwrap(),
            &tools().unwrap(),
        );
        let first = &table.rows[0];
        assert_eq!(
            first[..5],
            ["**durin -l7**", "50,000,000", "0.25", "150.0", "1.50"]
        );
        let last = table.rows.last().unwrap();
        assert_eq!(last[..3], ["zpaq -m5", "timeout", "-"]);
        assert!(
            table
                .rows
                .iter()
                .any(|row| row[0].contains("mkdwarfs 0.15.3 -l9") && row[4] == "2.88")
        );
    }
}
