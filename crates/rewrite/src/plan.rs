//! What happens to each block: which stream it belongs to, and whether it is copied or compressed again, and how.

use std::collections::BTreeMap;

use durin_codec::Spec;
use durin_format::section::{CompressionType, SectionType};
use durin_format::{Error, Result};
use durin_reader::{Image, Section};
use durin_writer::coding::Coding;
use serde_json::Value;

use crate::options::RewriteOptions;

/// The category of blocks of which the image does not say any. Source: format specification, A.8.
const DEFAULT_CATEGORY: &str = "<default>";

/// The place of a stream in [`Plan::streams`].
pub(crate) type StreamIndex = usize;

/// Blocks of one category and one layout of data.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The name of the category.
    pub(crate) name: String,
    /// The place of the category among the names in the image.
    pub(crate) category: Option<u32>,
    /// The place of what is known of the layout of the data.
    pub(crate) metadata: Option<u32>,
    /// How the blocks are compressed; those of streams without are copied.
    pub(crate) coding: Option<Coding>,
    /// Blocks that are compressed so already stay as they are.
    pub(crate) keep: Option<CompressionType>,
    /// Bytes of a new block, if blocks get another size.
    pub(crate) block_len: u32,
    /// Bytes of the largest old block, as far as files reach into it.
    old_block_len: u32,
    /// Bytes of all blocks, as far as files reach into them.
    data_len: u64,
    /// Bytes that belong together.
    granularity: u32,
}

/// What happens to each block.
#[derive(Debug)]
pub(crate) struct Plan {
    /// In the order in which the image has the first block of each.
    pub(crate) streams: Vec<Stream>,
    /// The stream of each old block.
    pub(crate) stream_of: Vec<StreamIndex>,
    /// The old blocks, in the order in which they are read.
    pub(crate) order: Vec<u32>,
    /// The sections of the old blocks.
    pub(crate) sections: Vec<Section>,
    /// The size of blocks of the new image, a power of two.
    pub(crate) block_size_bits: u32,
    /// Whether data is cut into blocks of another size.
    pub(crate) recuts: bool,
}

impl Plan {
    /// Decides for all blocks of `image`.
    ///
    /// # Errors
    /// `InvalidInput` for options that do not go with the image; `Corrupt` if it says nothing sensible of its blocks.
    pub(crate) fn of(image: &Image, options: &RewriteOptions) -> Result<Self> {
        let (tables, _) = image.tables();
        let names = tables.category_names.as_deref().unwrap_or_default();
        options.validate(names)?;
        let sections: Vec<Section> = image
            .sections()
            .iter()
            .filter(|section| section.section_type == SectionType::Block)
            .copied()
            .collect();
        let bits = options.block_size_bits;
        let block_size_bits = bits.unwrap_or(image.block_size().trailing_zeros());
        let (mut streams, stream_of) = streams(image, sections.len())?;
        for (len, stream) in reached(image, sections.len()).into_iter().zip(&stream_of) {
            if let Some(stream) = streams.get_mut(*stream) {
                stream.old_block_len = stream.old_block_len.max(len);
                stream.data_len += u64::from(len);
            }
        }
        let json = tables.category_metadata_json.as_deref().unwrap_or_default();
        for stream in &mut streams {
            let metadata = stream.metadata.and_then(|index| json.get(index as usize));
            let metadata = metadata.map(String::as_str);
            stream.granularity = metadata.map_or(1, granularity);
            stream.block_len = match bits {
                Some(bits) => whole_len(1 << bits, stream.granularity),
                None => image.block_size(),
            };
            stream.choose(options, metadata)?;
        }
        let mut order: Vec<u32> = (0..).take(sections.len()).collect();
        if bits.is_some() {
            // One stream after the other, so that only one new block is open at a time.
            order.sort_by_key(|block| stream_of.get(*block as usize));
        }
        Ok(Self {
            streams,
            stream_of,
            order,
            sections,
            block_size_bits,
            recuts: bits.is_some(),
        })
    }

    /// The stream of an old block.
    pub(crate) fn stream(&self, block: u32) -> (StreamIndex, Option<&Stream>) {
        let index = self.stream_of.get(block as usize).copied().unwrap_or(0);
        (index, self.streams.get(index))
    }

    /// How many new blocks each stream will have at most.
    pub(crate) fn block_counts(&self) -> impl Iterator<Item = u64> {
        let mut old_counts = vec![0; self.streams.len()];
        for stream in &self.stream_of {
            if let Some(count) = old_counts.get_mut(*stream) {
                *count += 1;
            }
        }
        let count = |(stream, old_count): (&Stream, u64)| {
            if self.recuts {
                stream.data_len.div_ceil(stream.block_len.max(1).into())
            } else {
                old_count
            }
        };
        self.streams.iter().zip(old_counts).map(count)
    }

    /// Bytes of the longest payload of a block.
    pub(crate) fn payload_len_max(&self) -> u64 {
        let lens = self.sections.iter().map(|section| section.payload_len);
        lens.max().unwrap_or(0)
    }

    /// Bytes of the longest old block, as far as files reach into it.
    pub(crate) fn old_block_len_max(&self) -> u64 {
        let lens = self.streams.iter().map(|stream| stream.old_block_len);
        lens.max().unwrap_or(0).into()
    }
}

impl Stream {
    /// Chooses how the blocks are compressed, if they are.
    fn choose(&mut self, options: &RewriteOptions, metadata: Option<&str>) -> Result<()> {
        if !options.recompress.blocks || !options.categories.has(&self.name) {
            return Ok(());
        }
        let specs = &options.compression;
        let general = specs.default_value();
        let spec = specs.of(&self.name);
        let mut coding = Coding {
            spec: spec.clone(),
            metadata: metadata.map(str::to_owned),
            block_len: self.expected_block_len(options.block_size_bits.is_some()),
            general: None,
        };
        if spec.requires_metadata() {
            match spec.encoder(1, metadata) {
                Ok(_) => coding.general = Some(general.clone()),
                Err(error) if specs.is_chosen(&self.name) => {
                    return Err(error.context(format!("category {}", self.name)));
                }
                // Only a level has asked for it, and there is no need for this algorithm.
                Err(_) => {
                    self.keep = Some(spec.compression_type());
                    coding.spec = Spec::clone(general);
                }
            }
        }
        self.coding = Some(coding);
        Ok(())
    }

    fn expected_block_len(&self, recuts: bool) -> usize {
        let len = if recuts {
            self.data_len.min(self.block_len.into())
        } else {
            self.old_block_len.into()
        };
        usize::try_from(len).unwrap_or(usize::MAX)
    }
}

/// Sorts blocks into streams by what the metadata say of them.
fn streams(image: &Image, block_count: usize) -> Result<(Vec<Stream>, Vec<StreamIndex>)> {
    let (tables, data) = image.tables();
    let names = tables.category_names.as_deref().unwrap_or_default();
    let objects = tables.category_metadata_json.as_ref().map_or(0, Vec::len);
    let mut known: BTreeMap<(Option<u32>, Option<u32>), StreamIndex> = BTreeMap::new();
    let mut streams = Vec::new();
    let mut stream_of = Vec::with_capacity(block_count);
    for block in (0..).take(block_count) {
        let out_of_range = |what: &str| {
            Error::corrupt(format!("metadata: {what} of block {block} is out of range"))
        };
        let (category, name) = match &tables.block_categories {
            None => (None, DEFAULT_CATEGORY),
            Some(categories) => {
                let category = categories.get_u32(data, block.into());
                let category = category.ok_or_else(|| out_of_range("category"))?;
                let name = names.get(category as usize);
                let name = name.ok_or_else(|| out_of_range("category"))?;
                (Some(category), name.as_str())
            }
        };
        let pairs = tables.block_category_metadata.unwrap_or_default();
        let metadata = match pairs.get(data, block) {
            None => None,
            Some(index) => Some(
                u32::try_from(index)
                    .ok()
                    .filter(|index| (*index as usize) < objects)
                    .ok_or_else(|| out_of_range("category metadata"))?,
            ),
        };
        let next = streams.len();
        let index = *known.entry((category, metadata)).or_insert(next);
        if index == next {
            streams.push(Stream {
                name: name.to_owned(),
                category,
                metadata,
                coding: None,
                keep: None,
                block_len: 0,
                old_block_len: 0,
                data_len: 0,
                granularity: 1,
            });
        }
        stream_of.push(index);
    }
    Ok((streams, stream_of))
}

/// Returns how many bytes of each block are part of files, which is all of it in nearly all images.
fn reached(image: &Image, block_count: usize) -> Vec<u32> {
    let (tables, data) = image.tables();
    let mut reached = vec![0; block_count];
    let chunks = &tables.chunks;
    let places = chunks.block.iter(data).zip(chunks.offset.iter(data));
    for ((block, offset), size) in places.zip(chunks.size.iter(data)) {
        let block = usize::try_from(block).unwrap_or(usize::MAX);
        // Holes have a number that no block has.
        if let Some(len) = reached.get_mut(block) {
            let end = offset.saturating_add(size).min(image.block_size().into());
            *len = u32::try_from(end).unwrap_or(u32::MAX).max(*len);
        }
    }
    reached
}

/// Bytes that belong together according to the description of a category.
fn granularity(metadata: &str) -> u32 {
    let Ok(Value::Object(keys)) = serde_json::from_str(metadata) else {
        return 1;
    };
    let number = |key: &str| {
        let number = keys.get(key).and_then(Value::as_u64);
        number.and_then(|number| u32::try_from(number).ok())
    };
    let parts = number("number_of_channels").or_else(|| number("component_count"));
    let bytes = number("bytes_per_sample");
    let product = bytes.unwrap_or(1).checked_mul(parts.unwrap_or(1));
    product.filter(|product| *product > 0).unwrap_or(1)
}

/// The most bytes of a block that are no part of what belongs together.
fn whole_len(block_size: u32, granularity: u32) -> u32 {
    match block_size - block_size % granularity {
        0 => block_size,
        len => len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_together() {
        let check = |metadata: &str, expect: u32| assert_eq!(granularity(metadata), expect);
        check("", 1);
        check("[]", 1);
        check("{}", 1);
        check(r#"{"bytes_per_sample":3,"number_of_channels":2}"#, 6);
        check(r#"{"bytes_per_sample":2,"component_count":2}"#, 4);
        check(r#"{"bytes_per_sample":4294967295,"component_count":2}"#, 1);
        check(r#"{"bytes_per_sample":0}"#, 1);
        assert_eq!(whole_len(1024, 6), 1020);
        assert_eq!(whole_len(1024, 2000), 1024);
    }
}
