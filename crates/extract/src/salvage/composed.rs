//! A damaged image as a whole one: what was found, and something in place of what was not.
//!
//! Metadata names blocks by their place among the sections, so that every missing section must have a stand-in: one whose
//! checksum is wrong, which makes exactly the files fail that need it, or a block of zeros.

use std::io;
use std::sync::Arc;

use durin_format::section::{CompressionType, SectionType, V2_HEADER_LEN, encode_header};
use durin_source::Source;

use super::scan::{Found, Scan, SectionState};

/// What stands for a block that is damaged or missing.
#[derive(Clone, Copy, Debug)]
pub(super) enum StandIn {
    /// Nothing that could be read.
    Nothing,
    /// Zeros of this length.
    Zeros(u32),
}

/// The image.
#[derive(Debug)]
pub(super) struct Composed {
    file: Arc<dyn Source>,
    /// In order, with the offset where each ends.
    parts: Vec<(u64, Part)>,
    name: String,
}

#[derive(Debug)]
enum Part {
    Bytes(Vec<u8>),
    /// From this offset of the file.
    File(u64),
    Zeros,
}

impl Composed {
    pub(super) fn new(file: &Arc<dyn Source>, scan: &Scan, stand_in: StandIn) -> Self {
        let mut composed = Self {
            file: Arc::clone(file),
            parts: Vec::new(),
            name: file.name().to_owned(),
        };
        if scan.version.has_v1_sections() {
            let good = |found: &&Found| found.state == SectionState::Good;
            let end = scan.found.iter().rfind(good).map_or(0, Found::end);
            composed.push(end.saturating_sub(scan.start), Part::File(scan.start));
            return composed;
        }
        let mut number = 0;
        for found in &scan.found {
            while number < found.number {
                composed.stand_in(scan, number, stand_in);
                number += 1;
            }
            // The index would be about another file.
            if found.header.section_type == SectionType::SectionIndex {
                break;
            }
            let is_block = found.header.section_type == SectionType::Block;
            if found.state == SectionState::Good || !is_block {
                if found.state != SectionState::CutOff {
                    composed.push(V2_HEADER_LEN as u64, Part::Bytes(found.bytes.to_vec()));
                    composed.push(found.header.payload_len, Part::File(found.payload_offset()));
                }
            } else {
                composed.stand_in(scan, number, stand_in);
            }
            number += 1;
        }
        composed
    }

    fn stand_in(&mut self, scan: &Scan, number: u32, stand_in: StandIn) {
        let mut header = encode_header(number, SectionType::Block, CompressionType::None, &[]);
        let [_, _, _, _, _, _, major, minor, ..] = &mut header;
        *major = scan.version.major;
        *minor = scan.version.minor;
        // The checksum of nothing, changed so that it is wrong.
        if let Some(byte) = header.get_mut(0x28) {
            *byte ^= 0xff;
        }
        let len = match stand_in {
            StandIn::Nothing => 0,
            StandIn::Zeros(len) => len,
        };
        for (to, from) in header.iter_mut().skip(56).zip(u64::from(len).to_le_bytes()) {
            *to = from;
        }
        self.push(V2_HEADER_LEN as u64, Part::Bytes(header.to_vec()));
        self.push(len.into(), Part::Zeros);
    }

    fn push(&mut self, len: u64, part: Part) {
        if len > 0 {
            let end = self.len().saturating_add(len);
            self.parts.push((end, part));
        }
    }
}

impl Source for Composed {
    fn len(&self) -> u64 {
        self.parts.last().map_or(0, |(end, _)| *end)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let at = self.parts.partition_point(|(end, _)| *end <= offset);
        let Some((end, part)) = self.parts.get(at) else {
            return Ok(0);
        };
        let before = at.checked_sub(1).and_then(|at| self.parts.get(at));
        let start = before.map_or(0, |(end, _)| *end);
        let skipped = offset - start;
        let len = usize::try_from(end - offset).map_or(buf.len(), |left| left.min(buf.len()));
        let target = buf.get_mut(..len).unwrap_or_default();
        match part {
            Part::Zeros => target.fill(0),
            Part::File(from) => return self.file.read_at(from + skipped, target),
            Part::Bytes(bytes) => {
                let rest = usize::try_from(skipped)
                    .ok()
                    .and_then(|skipped| bytes.get(skipped..));
                for (to, from) in target.iter_mut().zip(rest.unwrap_or_default()) {
                    *to = *from;
                }
            }
        }
        Ok(len)
    }
}
