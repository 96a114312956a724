//! Whether a build is a result: what it made is unpacked again, and that is compared with the source.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use durin_testkit::roundtrip::remove_tree;

use super::definition::Tool;
use super::measure::{self, Cost, End, Limit, Places};
use super::record::Status;
use super::session::Corpus;
use super::{clean, verify};

/// Differences that are shown and recorded of a wrong result.
const DIFFERENCES_SHOWN: usize = 5;

/// Unpacks what a build made and compares it with the source; adds what that took to the figures.
pub(super) fn judge(
    tool: &Tool,
    corpus: &Corpus,
    places: &Places<'_>,
    (cost, limit): (&Cost, Limit),
    figures: &mut BTreeMap<String, f64>,
) -> Result<(Status, String)> {
    match cost.end {
        End::TimeLimit => return Ok((Status::Timeout, String::new())),
        End::Failure => return Ok((Status::Failed, cost.message.clone())),
        End::Success => {}
    }
    std::fs::create_dir(places.target)?;
    let unpacked = measure::run(&tool.unpack, places, limit)?;
    let mut add = |what: &str, cost: &Cost| {
        figures.insert(format!("{what}_wall_s"), cost.wall.as_secs_f64());
        figures.insert(
            format!("{what}_cpu_s"),
            (cost.user + cost.sys).as_secs_f64(),
        );
    };
    let tree = corpus.tree.as_ref().context("the corpus was not read")?;
    let differences = match unpacked.end {
        End::Success => {
            add("unpack", &unpacked);
            verify::differences(tree, places.target, tool.keeps)?
        }
        End::Failure => vec![format!("does not unpack: {}", unpacked.message)],
        End::TimeLimit => {
            clean::remove(places.target)?;
            return Ok((Status::Timeout, "unpacking takes too long".to_owned()));
        }
    };
    remove_tree(places.target)?;
    if let Some(tar) = tool.tar.as_ref().filter(|_| differences.is_empty()) {
        let archived = measure::run(tar, places, limit)?;
        if archived.end == End::Success {
            add("tar", &archived);
        }
    }
    if differences.is_empty() {
        return Ok((Status::Ok, String::new()));
    }
    let shown = differences.len().min(DIFFERENCES_SHOWN);
    let message = format!(
        "{} differences: {}",
        differences.len(),
        differences[..shown].join("; ")
    );
    Ok((Status::Wrong, message))
}

/// What a tool made: a file, or a directory of files.
pub(super) fn bytes_of(made: &Path) -> Result<u64> {
    if !made.is_dir() {
        return Ok(made.metadata().map_or(0, |data| data.len()));
    }
    let mut bytes = 0;
    for entry in std::fs::read_dir(made)? {
        bytes += bytes_of(&entry?.path())?;
    }
    Ok(bytes)
}
