//! Figures of the report that are not counted on the way, but read off the result.

use std::collections::BTreeMap;

use crate::category::Categories;
use crate::context::Context;
use crate::dedupe::Contents;
use crate::files::Files;
use crate::read::Source;
use crate::report::CategoryReport;
use crate::segment::{ChunkKind, Chunks};

/// Counts the blocks that small contents touch, which are those smaller than a block: each costs a reader the decoding
/// of a block.
pub(crate) fn count_small_files(
    context: Context<'_>,
    files: &Files,
    contents: &Contents,
    chunks: &Chunks,
) {
    let stats = context.stats;
    let block_size = u64::from(context.block_size());
    let mut touched = Vec::new();
    for content in 0..contents.len() {
        let size = contents.files(content).first();
        let is_small = size.is_some_and(|file| files.file(*file).size < block_size);
        if !is_small {
            continue;
        }
        touched.clear();
        for chunk in chunks.of(content) {
            if let ChunkKind::Data { block, .. } = chunk.kind() {
                touched.push(block);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        stats.small_files.add(u64::from(!touched.is_empty()));
        stats.small_file_blocks.add(touched.len() as u64);
    }
}

/// Returns what each category has come to, in the order of their names; subcategories are one category here.
pub(crate) fn by_category(
    source: &Source<'_>,
    categories: &Categories,
    chunks: &Chunks,
    block_lens: &[[u32; 2]],
) -> Vec<CategoryReport> {
    let mut reports: BTreeMap<&str, CategoryReport> = BTreeMap::new();
    for stream in source.streams {
        let name = categories.get(stream.category).name.as_str();
        let report = reports.entry(name).or_default();
        report.fragments += stream.fragments.len() as u64;
        report.data_bytes += source.stream_data_len(stream);
    }
    for (category, [data_len, payload_len]) in chunks.block_categories.iter().zip(block_lens) {
        let name = categories.get(*category).name.as_str();
        let report = reports.entry(name).or_default();
        report.blocks += 1;
        report.block_bytes += u64::from(*data_len);
        report.compressed_bytes += u64::from(*payload_len);
    }
    let named = |(name, report): (&str, CategoryReport)| CategoryReport {
        name: name.to_owned(),
        ..report
    };
    reports.into_iter().map(named).collect()
}
