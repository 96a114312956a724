//! A new section index for an image that has lost its own.

use std::io::Write;
use std::sync::Arc;

use durin_format::index::{self, IndexEntry};
use durin_format::section::{CompressionType, SectionType, V2_HEADER_LEN, encode_header};
use durin_format::{Error, Result, limits};
use durin_reader::{Image, ImageOffset, ImageOptions};
use durin_source::Source;

use super::scan::{Scan, SectionState, scan};

/// Bytes copied at a time.
const BUFFER_LEN: usize = 1 << 20;

/// An image with an index to be added.
pub struct RepairedIndex {
    source: Arc<dyn Source>,
    /// What is kept of the file, from its start.
    pub kept: u64,
    /// The section to put behind that.
    pub section: Vec<u8>,
    /// Numbers of sections whose payload is damaged; an index does not change that.
    pub damaged: Vec<u32>,
    /// Whether the image has a right index already.
    pub is_right: bool,
}

/// Works out the index of the image in `source`.
///
/// # Errors
/// `Corrupt` if headers are damaged, so that it is not known where all sections are, or if something else than an index
/// is behind the last; `Unsupported` in formats that have no index.
pub fn repair_index(source: &Arc<dyn Source>, offset: ImageOffset) -> Result<RepairedIndex> {
    let found = scan(source.as_ref(), offset)?;
    if found.version.minor < 4 {
        return Err(Error::unsupported(format!(
            "images of format {} have no section index",
            found.version
        )));
    }
    check_chain(&found)?;
    let sections = || {
        let others = found.found.iter();
        others.filter(|section| section.header.section_type != SectionType::SectionIndex)
    };
    let last = sections()
        .next_back()
        .ok_or_else(|| Error::corrupt("no section but an index"))?;
    let kept = last.end();
    let mut entries: Vec<IndexEntry> = sections()
        .map(|section| IndexEntry {
            section_type: section.header.section_type,
            offset: section.offset - found.start,
        })
        .collect();
    entries.push(IndexEntry {
        section_type: SectionType::SectionIndex,
        offset: kept - found.start,
    });
    if entries
        .iter()
        .any(|entry| entry.offset > limits::INDEX_OFFSET_MAX)
    {
        return Err(Error::limit("an image of 256 TiB and more has no index"));
    }
    let payload = index::encode(&entries);
    let mut header = encode_header(
        last.number.saturating_add(1),
        SectionType::SectionIndex,
        CompressionType::None,
        &payload,
    )
    .to_vec();
    if let [_, _, _, _, _, _, major, minor, ..] = header.as_mut_slice() {
        *major = found.version.major;
        *minor = found.version.minor;
    }
    let section = [header, payload].concat();
    let rest = source.len() - kept;
    if rest > section.len() as u64 {
        return Err(Error::corrupt(format!(
            "{rest} bytes are behind the last section, more than an index has"
        )));
    }
    let mut repaired = RepairedIndex {
        source: Arc::clone(source),
        kept,
        is_right: false,
        damaged: sections()
            .filter(|section| section.state == SectionState::Damaged)
            .map(|section| section.number)
            .collect(),
        section,
    };
    repaired.is_right = repaired.is_there(rest)?;
    Ok(repaired)
}

fn check_chain(scan: &Scan) -> Result<()> {
    let mut end = scan.start;
    for (number, section) in (0_u32..).zip(&scan.found) {
        let is_index = section.header.section_type == SectionType::SectionIndex;
        let is_cut = section.state == SectionState::CutOff && !is_index;
        if section.number != number || section.offset != end || is_cut {
            return Err(Error::corrupt(format!(
                "section {number} at offset {end} is damaged so that its end is not known; \
                 'dwarfsextract --salvage' extracts what survives"
            )));
        }
        end = section.end();
    }
    Ok(())
}

impl RepairedIndex {
    fn is_there(&self, rest: u64) -> Result<bool> {
        if rest != self.section.len() as u64 {
            return Ok(false);
        }
        let mut found = vec![0; self.section.len()];
        self.source
            .read_exact_at(self.kept, &mut found)
            .map_err(|error| Error::io("cannot read the index", error))?;
        // The rest of the header is checksums and version, and other programs may write them in another way.
        let payload = |section: &[u8]| section.get(V2_HEADER_LEN..).map(<[u8]>::to_vec);
        Ok(payload(&found) == payload(&self.section)
            && Image::open(Arc::clone(&self.source), &ImageOptions::default())
                .is_ok_and(|image| image.has_section_index()))
    }

    /// Writes the image with the new index.
    ///
    /// # Errors
    /// `Io` if the image cannot be read or `target` not be written.
    pub fn write(&self, target: &mut dyn Write) -> Result<()> {
        let failed = |error| Error::io("cannot write the image", error);
        let mut buffer = vec![0; BUFFER_LEN];
        let mut at = 0;
        while at < self.kept {
            let left = usize::try_from(self.kept - at).unwrap_or(usize::MAX);
            let piece = buffer.get_mut(..left.min(BUFFER_LEN)).unwrap_or_default();
            self.source
                .read_exact_at(at, piece)
                .map_err(|error| Error::io("cannot read the image", error))?;
            target.write_all(piece).map_err(failed)?;
            at += piece.len() as u64;
        }
        target.write_all(&self.section).map_err(failed)
    }
}
