//! Tables of what mounts took: a column a job, a row a system.

use anyhow::Result;

use super::definition::Definitions;
use crate::bench::record::{Median, Status};
use crate::bench::table::Table;
use crate::report::count;

/// Names and labels of systems and jobs, in their order.
pub(in crate::bench) struct Labels {
    pub(in crate::bench) systems: Vec<(String, String)>,
    pub(in crate::bench) jobs: Vec<(String, String)>,
}

pub(in crate::bench) fn labels() -> Result<Labels> {
    let definitions = Definitions::read()?;
    let systems = definitions.systems.into_iter();
    let jobs = definitions.jobs.into_iter();
    Ok(Labels {
        systems: systems.map(|system| (system.name, system.label)).collect(),
        jobs: jobs.map(|job| (job.name, job.label)).collect(),
    })
}

/// Figures of one median.
fn figure(median: &Median<'_>, name: &str) -> Option<f64> {
    median.figures.get(name).copied()
}

/// Parts the name in a record into system and job.
fn parts<'a>(median: &'a Median<'_>) -> (&'a str, &'a str) {
    let tool = median.sample.tool.as_str();
    tool.split_once(':').unwrap_or((tool, ""))
}

/// Makes the tables of all corpora in the record, or of those in a list.
pub(super) fn tables(
    medians: &[Median<'_>],
    definitions: &Definitions,
    corpora: Option<&str>,
) -> Vec<Table> {
    let mut names: Vec<&str> = Vec::new();
    for median in medians {
        let name = median.sample.corpus.as_str();
        if !names.contains(&name) && corpora.is_none_or(|list| list.split(',').any(|n| n == name)) {
            names.push(name);
        }
    }
    let of_corpus = names.into_iter().flat_map(|name| {
        let of_name: Vec<&Median<'_>> = medians
            .iter()
            .filter(|median| median.sample.corpus == name)
            .collect();
        Grid::new(name, &of_name, definitions).tables()
    });
    of_corpus.collect()
}

/// The table of processor time of some jobs, a table a corpus that has such jobs.
pub(super) fn of_jobs(
    medians: &[Median<'_>],
    definitions: &Definitions,
    jobs: &[&str],
) -> Vec<Table> {
    let is_chosen = |median: &&Median<'_>| jobs.contains(&parts(median).1);
    let chosen: Vec<Median<'_>> = medians.iter().filter(is_chosen).cloned().collect();
    let tables = tables(&chosen, definitions, None).into_iter();
    tables
        .filter(|table| table.title.contains("CPU s"))
        .collect()
}

/// The medians of a corpus by system and job.
struct Grid<'a> {
    corpus: &'a str,
    medians: &'a [&'a Median<'a>],
    /// Name and label, in the order of the definitions.
    systems: Vec<(&'a str, &'a str)>,
    jobs: Vec<(&'a str, &'a str)>,
}

impl<'a> Grid<'a> {
    fn new(corpus: &'a str, medians: &'a [&'a Median<'a>], definitions: &'a Definitions) -> Self {
        let has = |is: &dyn Fn(&Median<'_>) -> bool| medians.iter().any(|median| is(median));
        let systems = definitions.systems.iter();
        let systems = systems.filter(|system| has(&|median| parts(median).0 == system.name));
        let jobs = definitions.jobs.iter();
        let jobs = jobs.filter(|job| has(&|median| parts(median).1 == job.name));
        Self {
            corpus,
            medians,
            systems: systems
                .map(|s| (s.name.as_str(), s.label.as_str()))
                .collect(),
            jobs: jobs.map(|j| (j.name.as_str(), j.label.as_str())).collect(),
        }
    }

    fn find(&self, system: &str, job: &str) -> Option<&'a Median<'a>> {
        let mut found = self.medians.iter();
        found.find(|median| parts(median) == (system, job)).copied()
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![
            self.by_job("CPU s (client + driver or kernel threads)", cpu),
            self.by_job("wall ms", |median| format!("{:.1}", median.wall_s * 1000.0)),
            self.drivers(),
        ];
        if self.medians.iter().any(|m| figure(m, "p99_us").is_some()) {
            tables.push(self.by_job("us a read, p50 / p99", latency));
        }
        if self
            .medians
            .iter()
            .any(|m| figure(m, "rate_mib_s").is_some())
        {
            tables.push(self.by_job("MiB/s, as fio tells it", rate));
        }
        // Jobs without such figures have no column.
        for table in tables.iter_mut().skip(3) {
            table.without_empty_columns();
        }
        tables
    }

    fn title(&self, what: &str) -> String {
        let facts = self.medians.first().map(|median| {
            let sample = median.sample;
            format!(
                "{} ({} files, {} bytes)",
                self.corpus,
                count(sample.corpus_files),
                count(sample.corpus_bytes)
            )
        });
        format!(
            "{}: {what}",
            facts.unwrap_or_else(|| self.corpus.to_owned())
        )
    }

    fn by_job(&self, what: &str, cell: impl Fn(&Median<'_>) -> String) -> Table {
        let labels = self.jobs.iter().map(|(_, label)| (*label).to_owned());
        let rows = self.systems.iter().map(|(system, label)| {
            let cells = self
                .jobs
                .iter()
                .map(|(job, _)| match self.find(system, job) {
                    None => "-".to_owned(),
                    Some(median) if median.sample.status == Status::Ok => cell(median),
                    Some(median) => median.sample.status.name().to_owned(),
                });
            std::iter::once((*label).to_owned()).chain(cells).collect()
        });
        Table {
            title: self.title(what),
            columns: std::iter::once("system".to_owned()).chain(labels).collect(),
            rows: rows.collect(),
        }
    }

    fn drivers(&self) -> Table {
        let columns = [
            "system",
            "version",
            "image bytes",
            "driver peak MiB",
            "MiB when idle",
            "runs",
        ];
        let rows = self.systems.iter().filter_map(|(system, label)| {
            let of_system = || self.medians.iter().filter(|m| parts(m).0 == *system);
            let first = of_system().next()?;
            let peak = of_system()
                .map(|median| median.peak_bytes)
                .max()
                .unwrap_or(0);
            let idle = of_system().find_map(|median| {
                let after = figure(median, "idle_after_s")?;
                Some(format!("{:.0} ({after:.0} s)", figure(median, "idle_mib")?))
            });
            let image = first.bytes;
            Some(vec![
                (*label).to_owned(),
                first.sample.version.clone(),
                if image > 0 {
                    count(image)
                } else {
                    "-".to_owned()
                },
                if peak > 0 {
                    (peak >> 20).to_string()
                } else {
                    "-".to_owned()
                },
                idle.unwrap_or_else(|| "-".to_owned()),
                of_system()
                    .map(|median| median.runs)
                    .max()
                    .unwrap_or(0)
                    .to_string(),
            ])
        });
        Table {
            title: self.title("sizes and memory"),
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }
    }
}

/// The client's time, and what worked for it.
fn cpu(median: &Median<'_>) -> String {
    let (client, behind) = (median.cpu_s, behind_s(median));
    format!("{:.2} ({client:.2} + {behind:.2})", client + behind)
}

/// What worked for the client: the driver, or for a file system of the kernel its threads.
pub(super) fn behind_s(median: &Median<'_>) -> f64 {
    match figure(median, "driver_s") {
        Some(driver) if driver > 0.0 => driver,
        _ => figure(median, "kernel_s").unwrap_or(0.0),
    }
}

fn rate(median: &Median<'_>) -> String {
    figure(median, "rate_mib_s").map_or("-".to_owned(), |rate| format!("{rate:.0}"))
}

fn latency(median: &Median<'_>) -> String {
    match (figure(median, "p50_us"), figure(median, "p99_us")) {
        (Some(middle), Some(high)) => format!("{middle:.0} / {high:.0}"),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::bench::record::{medians, tests::sample};

    #[test]
    fn a_row_a_system_and_a_column_a_job() {
        let mut driver = sample("a", "durin:find", 1000, 0.5);
        driver.suite = "mount".to_owned();
        driver.figures.insert("driver_s".to_owned(), 0.25);
        driver.figures.insert("idle_mib".to_owned(), 12.0);
        driver.figures.insert("idle_after_s".to_owned(), 30.0);
        let mut kernel = sample("a", "squashfs:tar", 2000, 1.0);
        kernel.suite = "mount".to_owned();
        kernel.figures.insert("kernel_s".to_owned(), 0.1);
        let samples = [driver, kernel];
        let medians = medians(&samples, "mount");
        let definitions = Definitions::read().unwrap();
        let tables = tables(&medians, &definitions, None);
        assert_eq!(tables.len(), 3);
        assert_eq!(tables[0].columns, ["system", "`find`", "`tar c | cat`"]);
        assert_eq!(tables[0].rows[0], ["**durin**", "0.75 (0.50 + 0.25)", "-"]);
        assert_eq!(tables[0].rows[1][1..], ["-", "1.10 (1.00 + 0.10)"]);
        assert_eq!(tables[2].rows[0][2..], ["1,000", "1", "12 (30 s)", "1"]);
    }

    #[test]
    fn latencies_and_rates_have_columns_only_where_there_are_some() {
        let mut fio = sample("a", "durin:fio-random-4k", 1000, 0.5);
        fio.suite = "mount".to_owned();
        fio.figures.insert("rate_mib_s".to_owned(), 123.4);
        fio.figures.insert("p50_us".to_owned(), 5.0);
        fio.figures.insert("p99_us".to_owned(), 50.0);
        let mut stream = sample("a", "durin:stream", 1000, 0.5);
        stream.suite = "mount".to_owned();
        let samples = [fio, stream];
        let definitions = Definitions::read().unwrap();
        let tables = tables(&medians(&samples, "mount"), &definitions, None);
        assert_eq!(tables.len(), 5);
        assert_eq!(tables[0].columns.len(), 3);
        assert_eq!(tables[3].rows, [["**durin**", "5 / 50"]]);
        assert_eq!(tables[4].rows, [["**durin**", "123"]]);
    }
}
