//! Tables of steps: a row a system, with its size and, for each step, rate and processor time.

use anyhow::Result;

use super::VOLUME;
use super::definition::{self, Extent, System, Table as Defined};
use crate::bench::record::{Median, Status};
use crate::bench::table::Table;
use crate::report::count;

const MIB: f64 = 1_048_576.0;

/// The tables of a record, by the names of their places in documents.
pub(in crate::bench) fn sections(medians: &[Median<'_>]) -> Result<Vec<(String, Vec<Table>)>> {
    let tables = definition::read(Extent::Full)?;
    let sections = tables.iter().map(|table| {
        let mut corpora: Vec<&str> = Vec::new();
        for median in medians {
            let corpus = median.sample.corpus.as_str();
            if median.sample.tool.split('/').next() == Some(&table.name)
                && !corpora.contains(&corpus)
            {
                corpora.push(corpus);
            }
        }
        let of_corpora = corpora
            .into_iter()
            .map(|corpus| of_corpus(table, corpus, medians));
        (format!("steps-{}", table.name), of_corpora.collect())
    });
    Ok(sections.collect())
}

fn of_corpus(table: &Defined, corpus: &str, medians: &[Median<'_>]) -> Table {
    let find = |system: &System, step: &str| {
        let name = format!("{}/{}/{step}", table.name, system.name);
        medians
            .iter()
            .find(|median| median.sample.corpus == corpus && median.sample.tool == name)
    };
    let mut facts = String::new();
    let mut rows = Vec::new();
    for system in &table.systems {
        let steps: Vec<Option<&Median<'_>>> = table
            .steps
            .iter()
            .map(|[step, _]| find(system, step))
            .collect();
        let Some(first) = steps.iter().flatten().next() else {
            continue;
        };
        let volume = volume(first, table);
        let bytes = first.sample.corpus_bytes * volume;
        facts = format!("{corpus}, {} bytes", count(bytes));
        if volume > 1 {
            facts.push_str(&format!(" in {volume} copies"));
        }
        rows.push(row(system, &steps, first.bytes, bytes, table.in_seconds));
    }
    let mut columns = vec!["system".to_owned(), "bytes".to_owned(), "ratio".to_owned()];
    for [_, label] in &table.steps {
        let what = if table.in_seconds { "wall s" } else { "MiB/s" };
        columns.push(format!("{label}: {what}"));
        columns.push(format!("{label}: CPU s"));
    }
    Table {
        title: format!("{} ({facts})", table.title),
        columns,
        rows,
    }
}

/// How often the tree was in what a run wrote and read.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small whole number"
)]
fn volume(median: &Median<'_>, table: &Defined) -> u64 {
    let recorded = median.figures.get(VOLUME).map(|volume| *volume as u64);
    recorded.unwrap_or_else(|| u64::from(table.volume))
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn row(
    system: &System,
    steps: &[Option<&Median<'_>>],
    made: u64,
    bytes: u64,
    in_seconds: bool,
) -> Vec<String> {
    let dash = || "-".to_owned();
    let mut cells = vec![
        system.label.clone(),
        if made > 0 { count(made) } else { dash() },
        if made > 0 {
            format!("{:.2}", bytes as f64 / made as f64)
        } else {
            dash()
        },
    ];
    for step in steps {
        match step {
            None => cells.extend([dash(), dash()]),
            Some(median) if median.sample.status == Status::Ok => {
                let rate = bytes as f64 / MIB / median.wall_s.max(f64::MIN_POSITIVE);
                cells.push(if in_seconds {
                    format!("{:.2}", median.wall_s)
                } else {
                    format!("{rate:.1}")
                });
                let threads = median.figures.get("kernel_s").copied().unwrap_or(0.0);
                let decimals = if median.cpu_s < 1.0 { 2 } else { 1 };
                cells.push(format!("{:.decimals$} + {threads:.1}", median.cpu_s));
            }
            Some(median) => cells.extend([median.sample.status.name().to_owned(), dash()]),
        }
    }
    cells
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::bench::record::{medians, tests::sample};

    #[test]
    fn a_row_a_system_with_rates() {
        let mut write = sample("a", "btrfs/btrfs-none/write", 5 << 20, 2.0);
        write.suite = "steps".to_owned();
        write.corpus_bytes = 1 << 20;
        let mut read = write.clone();
        read.tool = "btrfs/btrfs-none/read".to_owned();
        read.status = Status::Timeout;
        let samples = [write, read];
        let sections = sections(&medians(&samples, "steps")).unwrap();
        let (_, tables) = sections
            .iter()
            .find(|(name, _)| name == "steps-btrfs")
            .unwrap();
        assert_eq!(
            tables[0].rows[0][1..],
            ["5,242,880", "2.00", "10.0", "2.0 + 0.0", "timeout", "-"]
        );
        assert!(tables[0].title.contains("10,485,760 bytes in 10 copies"));
        let mut samples = samples;
        samples[0].figures.insert(VOLUME.to_owned(), 3.0);
        let sections = super::sections(&medians(&samples, "steps")).unwrap();
        assert!(
            sections[0].1[0]
                .title
                .contains("3,145,728 bytes in 3 copies")
        );
    }
}
