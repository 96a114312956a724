//! `metadata_details`: over how many chunks and blocks files are spread.

use durin_format::Result;
use durin_reader::{Image, Place};
use serde_json::{Map, Value, json};

/// Names of the percentiles, and the files that are at most there, in thousandths.
const PERCENTILES: [(&str, usize); 7] = [
    ("p50", 500),
    ("p75", 750),
    ("p90", 900),
    ("p95", 950),
    ("p99", 990),
    ("p99.9", 999),
    ("max", 1000),
];

/// Of all regular files, each once, whatever its links.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkStatistics {
    files: usize,
    chunks: u64,
    holes: u64,
    /// Chunks that begin where the one before them ends, in the same block: they could be one.
    mergeable: u64,
    /// Chunks of a file, by percentile.
    chunk_counts: [u64; PERCENTILES.len()],
    /// Blocks that a file has data in, by percentile.
    block_refs: [u64; PERCENTILES.len()],
}

impl ChunkStatistics {
    /// Looks at every chunk; takes 16 bytes a file.
    pub(super) fn collect(image: &Image) -> Result<Self> {
        let mut found = Self::default();
        let (mut chunk_counts, mut block_refs) = (Vec::new(), Vec::new());
        let mut blocks = Vec::new();
        for inode in image.files_in_data_order()? {
            blocks.clear();
            let mut chunks: u64 = 0;
            let mut end = None;
            for extent in image.chunks(inode)? {
                let extent = extent?;
                chunks += 1;
                let Place::Data { block, offset } = extent.place else {
                    found.holes += 1;
                    end = None;
                    continue;
                };
                let start = (block.0, u64::from(offset));
                found.mergeable += u64::from(end == Some(start));
                end = Some((start.0, start.1.saturating_add(extent.len)));
                blocks.push(block.0);
            }
            blocks.sort_unstable();
            blocks.dedup();
            found.chunks += chunks;
            chunk_counts.push(chunks);
            block_refs.push(blocks.len() as u64);
        }
        found.files = chunk_counts.len();
        found.chunk_counts = percentiles(chunk_counts);
        found.block_refs = percentiles(block_refs);
        Ok(found)
    }

    pub(super) fn text(&self) -> String {
        let line = |name: &str, values: &[u64]| {
            let values: Vec<String> = PERCENTILES
                .iter()
                .zip(values)
                .map(|((name, _), value)| format!("{name} {value}"))
                .collect();
            format!("  {name}: {}\n", values.join(", "))
        };
        format!(
            "chunks:\n  {} in {} files, {} of them holes, {} mergeable\n{}{}",
            self.chunks,
            self.files,
            self.holes,
            self.mergeable,
            line("chunks a file", &self.chunk_counts),
            line("blocks a file", &self.block_refs)
        )
    }

    pub(super) fn json(&self) -> Value {
        let object = |values: &[u64]| -> Map<String, Value> {
            let pairs = PERCENTILES.iter().zip(values);
            pairs
                .map(|((name, _), value)| ((*name).to_owned(), json!(value)))
                .collect()
        };
        json!({
            "files": self.files,
            "chunks": self.chunks,
            "holes": self.holes,
            "mergeable": self.mergeable,
            "chunk_counts": object(&self.chunk_counts),
            "block_refs": object(&self.block_refs),
        })
    }
}

/// The smallest value that so many are not above; zeros if there are none.
fn percentiles(mut values: Vec<u64>) -> [u64; PERCENTILES.len()] {
    values.sort_unstable();
    PERCENTILES.map(|(_, thousandths)| {
        let rank = (values.len() * thousandths).div_ceil(1000);
        values.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::percentiles;

    #[test]
    fn percentiles_are_values_that_occur() {
        assert_eq!(percentiles(Vec::new()), [0; 7]);
        assert_eq!(percentiles(vec![5]), [5; 7]);
        let thousand = (1..=1000).rev().collect();
        assert_eq!(percentiles(thousand), [500, 750, 900, 950, 990, 999, 1000]);
        assert_eq!(percentiles(vec![1, 2, 3, 4]), [2, 3, 4, 4, 4, 4, 4]);
    }
}
