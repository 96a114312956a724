//! Charts of blocks: before compression and after it.

use std::collections::BTreeMap;

use super::element::{Cell, Column, cut, escaped, section, table};
use crate::common::{escape, ratio, size};
use crate::dwarfsck::space::collect::codec_name;
use crate::dwarfsck::space::{Block, Space};

/// Columns of the chart; more blocks than that are drawn several in one column.
const COLUMNS_MAX: usize = 400;
/// Columns that the chart has room for at least, so that a single block does not fill it.
const COLUMNS_MIN: usize = 40;

/// Blocks by category and by codec.
pub(super) fn categories(space: &Space) -> String {
    let columns = |name| {
        [
            (name, Column::Text),
            ("Blocks", Column::Number),
            ("Bytes", Column::Number),
            ("Stored", Column::Number),
            ("Left", Column::Number),
            ("", Column::Bars),
        ]
    };
    let list = |label, name, sums: &[crate::dwarfsck::space::BlockSum]| {
        let all = sums.iter().map(|sum| sum.size.max(sum.stored)).max();
        let rows = sums.iter().map(|sum| {
            vec![
                Cell::Text(cut(escape::bytes(sum.name.as_bytes()), 80)),
                Cell::Count(sum.blocks),
                Cell::Bytes(sum.size),
                Cell::Bytes(sum.stored),
                Cell::Ratio(sum.stored, sum.size),
                Cell::Bars(sum.size, sum.stored, all.unwrap_or(0)),
            ]
        });
        table(label, &columns(name), rows.take(COLUMNS_MAX))
    };
    let content = list("Categories", "Category", &space.categories)
        + "<p></p>\n"
        + &list("Codecs", "Codec", &space.codecs);
    section("categories", "Categories and codecs", &content)
}

/// Blocks next to each other in the image.
struct Bar {
    first: usize,
    last: usize,
    size: Option<u64>,
    stored: u64,
    codec: &'static str,
    category: String,
}

/// Every block, in the order of the image.
pub(super) fn blocks(space: &Space) -> String {
    let bars = bars(&space.blocks);
    if bars.is_empty() {
        return section("blocks", "Blocks", "<p>There are none.</p>\n");
    }
    let codecs = space.codecs.iter().map(|sum| sum.name.as_str());
    let legend: String = codecs
        .map(|name| format!("<span><i class=\"{name}\"></i>{name}</span>"))
        .collect();
    let rows = bars.iter().map(|bar| {
        vec![
            Cell::Text(numbers(bar)),
            Cell::Text(bar.category.clone()),
            Cell::Text(bar.codec.to_owned()),
            bar.size.map_or(Cell::Unknown, Cell::Bytes),
            Cell::Bytes(bar.stored),
            bar.size
                .map_or(Cell::Unknown, |size| Cell::Ratio(bar.stored, size)),
        ]
    });
    let columns = [
        ("Blocks", Column::Text),
        ("Category", Column::Text),
        ("Codec", Column::Text),
        ("Bytes", Column::Number),
        ("Stored", Column::Number),
        ("Left", Column::Number),
    ];
    let content = format!(
        "{}<div class=\"legend\"><span><i style=\"background:var(--raw)\"></i>before compression</span>{legend}</div>\n\
         <details><summary>As a list</summary>\n{}</details>\n",
        chart(&bars),
        table("Blocks", &columns, rows)
    );
    section("blocks", "Blocks in the order of the image", &content)
}

fn bars(blocks: &[Block]) -> Vec<Bar> {
    let count = blocks.len().div_ceil(COLUMNS_MAX).max(1);
    let bar = |(number, blocks): (usize, &[Block])| {
        let mut codecs: BTreeMap<&'static str, u64> = BTreeMap::new();
        for block in blocks {
            *codecs.entry(codec_name(block.compression)).or_default() += block.stored;
        }
        let codec = codecs.iter().max_by_key(|(_, stored)| **stored);
        let mut names: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block.category.as_deref())
            .collect();
        names.sort_unstable();
        names.dedup();
        Bar {
            first: number * count,
            last: number * count + blocks.len() - 1,
            size: blocks
                .iter()
                .try_fold(0, |sum: u64, block| sum.checked_add(block.size?)),
            stored: blocks.iter().map(|block| block.stored).sum(),
            codec: codec.map_or("unknown", |(name, _)| name),
            category: cut(escape::bytes(names.join(", ").as_bytes()), 80),
        }
    };
    blocks.chunks(count).enumerate().map(bar).collect()
}

fn numbers(bar: &Bar) -> String {
    if bar.first == bar.last {
        bar.first.to_string()
    } else {
        format!("{} to {}", bar.first, bar.last)
    }
}

fn chart(bars: &[Bar]) -> String {
    let height = |bar: &Bar| bar.size.unwrap_or(0).max(bar.stored);
    let all = bars.iter().map(height).max().unwrap_or(0);
    let width = bars.len().max(COLUMNS_MIN);
    let mut svg = format!(
        "<svg class=\"blocks\" viewBox=\"0 0 {width} 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Size of each block before and after compression\">\n"
    );
    for (column, bar) in bars.iter().enumerate() {
        let mut tip = format!("block {}, {}", numbers(bar), bar.codec);
        if !bar.category.is_empty() {
            tip.push_str(&format!(", {}", bar.category));
        }
        if let Some(whole) = bar.size {
            let share = ratio::display(bar.stored, whole);
            tip.push_str(&format!(": {} to {share}", size::display(whole)));
        }
        tip.push_str(&format!(", {}", size::display(bar.stored)));
        let rect = |class: &str, bytes: u64| {
            let height = super::element::millionths(bytes, all);
            let (top, height) = (
                size::four_digits(1_000_000 - height.min(1_000_000), 10_000),
                size::four_digits(height, 10_000),
            );
            format!(
                "<rect class=\"{class}\" x=\"{column}.05\" y=\"{top}\" width=\".9\" height=\"{height}\"/>"
            )
        };
        svg.push_str(&format!(
            "<g><title>{}</title>{}{}</g>\n",
            escaped(&tip),
            rect("raw", bar.size.unwrap_or(0)),
            rect(bar.codec, bar.stored)
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_blocks_share_columns() {
        let block = |stored| Block {
            category: Some(format!("c{}", stored % 2)),
            compression: None,
            size: (stored != 7).then_some(10),
            stored,
        };
        let blocks: Vec<_> = (0..1000).map(block).collect();
        let bars = bars(&blocks);
        assert_eq!(bars.len(), 334);
        assert_eq!((bars[2].size, bars[3].size), (None, Some(30)));
        assert_eq!(bars[333].last, 999);
        assert_eq!(bars.iter().map(|bar| bar.stored).sum::<u64>(), 999 * 500);
        assert_eq!(bars[0].category, "c0, c1");
        assert_eq!(numbers(&bars[1]), "3 to 5");
    }
}
