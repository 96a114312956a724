//! Telling the categories of blocks, for tools that compress an image again.
//!
//! Source: format specification, 7.13.

use std::collections::BTreeMap;

use durin_format::metadata::Metadata;

use super::Described;
use crate::category;

/// Adds the categories of the blocks; nothing where there is only the default one.
pub(super) fn describe(described: &Described<'_>, metadata: &mut Metadata) {
    let blocks = &described.chunks.block_categories;
    if blocks.iter().all(|category| *category == category::DEFAULT) {
        return;
    }
    let mut names = Distinct::default();
    let mut objects = Distinct::default();
    let mut block_names = Vec::with_capacity(blocks.len());
    let mut block_objects = BTreeMap::new();
    for (block, category) in (0..).zip(blocks) {
        let category = described.categories.get(*category);
        block_names.push(names.place(&category.name));
        if let Some(object) = &category.metadata {
            block_objects.insert(block, objects.place(object));
        }
    }
    metadata.category_names = Some(names.list);
    metadata.block_categories = Some(block_names);
    if described.context.options.category_metadata && !block_objects.is_empty() {
        metadata.category_metadata_json = Some(objects.list);
        metadata.block_category_metadata = Some(block_objects);
    }
}

/// Texts in the order in which they came first.
#[derive(Default)]
struct Distinct<'a> {
    list: Vec<Vec<u8>>,
    places: BTreeMap<&'a str, u32>,
}

impl<'a> Distinct<'a> {
    fn place(&mut self, text: &'a str) -> u32 {
        let next = crate::tree::count_of(self.list.len());
        let list = &mut self.list;
        *self.places.entry(text).or_insert_with(|| {
            list.push(text.as_bytes().to_vec());
            next
        })
    }
}
