//! Schema and metadata of the new image: copied, recompressed, or rebuilt.

use durin_codec::{Spec, decompress};
use durin_format::limits::{METADATA_BYTES_MAX, SCHEMA_BYTES_MAX};
use durin_format::metadata::FreezeStyle;
use durin_format::section::{CompressionType, SectionType};
use durin_format::{Error, Result};
use durin_reader::{Image, RawSection, Section};
use durin_writer::sections::Section as NewSection;

use crate::cut::Cut;
use crate::options::RewriteOptions;
use crate::pack::copy;
use crate::plan::Plan;
use crate::rebuild::{self, Target};
use crate::remap::Remap;

/// Sections of unknown types are read into memory: one that is longer has no place in a file system's description.
const UNKNOWN_BYTES_MAX: u64 = 1 << 30;

/// Chunks may take so many bytes whatever the limit of memory: that one alone never fails a rewriting. Beyond, a small image
/// could make many thousand times as many chunks as it has.
const CHUNK_BYTES_MIN: u64 = 256 << 20;

/// The two sections, and how many chunks they describe if they were rebuilt.
pub(crate) struct Described {
    pub(crate) sections: [NewSection; 2],
    pub(crate) chunks: Option<u64>,
}

/// Makes schema and metadata for the new image; `first` is the number of the schema's section.
pub(crate) fn describe(
    image: &Image,
    plan: &Plan,
    cut: &Cut,
    options: &RewriteOptions,
    limit: u64,
    first: u32,
) -> Result<Described> {
    let kinds = [SectionType::MetadataV2Schema, SectionType::MetadataV2];
    let specs = [&options.schema_compression, &options.metadata_compression];
    if let Some(rebuild) = &options.rebuild {
        let block_count = u32::try_from(cut.streams.len()).unwrap_or(u32::MAX);
        let target = Target {
            block_count,
            block_size_bits: plan.block_size_bits,
            remap: plan.recuts.then(|| Remap::new(plan, cut)),
            chunk_bytes_max: limit.max(CHUNK_BYTES_MIN),
        };
        let metadata = rebuild::metadata(image, plan, cut, rebuild, &target)?;
        let chunks = Some(metadata.chunks.len() as u64);
        let [schema_spec, data_spec] = specs;
        let frozen = metadata.freeze_as(FreezeStyle::for_image(!data_spec.is_null()))?;
        drop(metadata);
        let schema = encode(
            first,
            SectionType::MetadataV2Schema,
            schema_spec,
            frozen.schema,
        )?;
        let data = encode(first + 1, SectionType::MetadataV2, data_spec, frozen.data)?;
        return Ok(Described {
            sections: [schema, data],
            chunks,
        });
    }
    let make = |(kind, spec): (SectionType, &Spec), number: u32| -> Result<NewSection> {
        let len_max = match kind {
            SectionType::MetadataV2Schema => SCHEMA_BYTES_MAX,
            _ => METADATA_BYTES_MAX,
        };
        let section = only(image, kind)?;
        let raw = image.read_section(section, len_max.saturating_mul(2))?;
        if !options.recompress.metadata {
            return Ok(copy(number, kind, raw));
        }
        let data = decoded(raw, section, len_max)?;
        encode(number, kind, spec, data)
    };
    let [schema_kind, data_kind] = kinds;
    let [schema_spec, data_spec] = specs;
    Ok(Described {
        sections: [
            make((schema_kind, schema_spec), first)?,
            make((data_kind, data_spec), first + 1)?,
        ],
        chunks: None,
    })
}

/// Returns the bytes of schema and metadata as stored in the old image.
pub(crate) fn stored_bytes(image: &Image) -> u64 {
    let sections = image.sections().iter().filter(|section| {
        matches!(
            section.section_type,
            SectionType::MetadataV2Schema | SectionType::MetadataV2
        )
    });
    sections.map(|section| section.payload_len).sum()
}

/// Returns the sections of types that this release does not know, in file order, to go along as they are.
pub(crate) fn unknown(image: &Image, first: u32) -> impl Iterator<Item = Result<NewSection>> {
    let sections = image
        .sections()
        .iter()
        .filter(|section| matches!(section.section_type, SectionType::Unknown(_)));
    (first..).zip(sections).map(|(number, section)| {
        let raw = image.read_section(section, UNKNOWN_BYTES_MAX)?;
        Ok(copy(number, section.section_type, raw))
    })
}

/// Compresses the contents of a section that is no block.
pub(crate) fn encode(
    number: u32,
    kind: SectionType,
    spec: &Spec,
    data: Vec<u8>,
) -> Result<NewSection> {
    let mut encoder = spec.encoder(data.len(), None)?;
    NewSection::encode(number, kind, &mut *encoder, spec.compression_type(), data)
}

fn only(image: &Image, kind: SectionType) -> Result<&Section> {
    // Opening the image has found exactly one of each.
    let mut sections = image.sections().iter();
    sections
        .find(|section| section.section_type == kind)
        .ok_or_else(|| Error::corrupt(format!("no section of type {}", kind.name())))
}

fn decoded(raw: RawSection, section: &Section, len_max: u64) -> Result<Vec<u8>> {
    match raw.header.compression {
        CompressionType::None => Ok(raw.payload),
        compression => decompress(compression, &raw.payload, len_max)
            .map_err(|error| error.at(section.location())),
    }
}
