//! Finding the sections of a damaged image.
//!
//! Headers are followed as long as they lead from one to the next. Where one is damaged, the magic of a later one is
//! searched for; it counts if its checksum is right, its number is higher, and what follows it agrees. The damaged one
//! itself is believed all the same if its checksum is right once magic, version, number and length are what they must be.
//! The section index is not needed.

use durin_format::locate::NEEDLE;
use durin_format::section::{
    FILE_HEADER_V1_LEN, SectionHeader, V1_HEADER_LEN, V2_HEADER_LEN, Version, Xxh3Verifier,
};
use durin_format::{Error, ErrorKind, Result};
use durin_reader::{ImageOffset, find_image};
use durin_source::Source;

/// Bytes looked at in one go.
const WINDOW_LEN: usize = 256 << 10;

/// Sections that may be missing between two that are found; more stand for a number that is wrong.
const GAP_MAX: u32 = 1 << 20;

/// A hostile file can look like a header everywhere; no more than this times its length is read to find out.
const EFFORT: u64 = 16;

/// What is known of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionState {
    /// Its checksum is right, or it belongs to an image of a format without checksums.
    Good,
    /// Its checksum is wrong.
    Damaged,
    /// The file ends within it.
    CutOff,
}

/// A section that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) number: u32,
    pub(super) header: SectionHeader,
    /// The header as it should be; of version 1 only the first bytes.
    pub(super) bytes: [u8; V2_HEADER_LEN],
    /// Bytes from the start of the file.
    pub(super) offset: u64,
    pub(super) state: SectionState,
}

impl Found {
    pub(super) fn payload_offset(&self) -> u64 {
        self.offset + self.header.header_len()
    }

    pub(super) fn end(&self) -> u64 {
        self.payload_offset()
            .saturating_add(self.header.payload_len)
    }
}

/// All that was found.
pub(super) struct Scan {
    pub(super) start: u64,
    pub(super) version: Version,
    /// In the order of the file; numbers increase.
    pub(super) found: Vec<Found>,
}

/// Finds the sections of the image in `source`.
pub(super) fn scan(source: &dyn Source, offset: ImageOffset) -> Result<Scan> {
    let mut scanner = Scanner {
        source,
        version: None,
        effort_left: source.len().saturating_mul(EFFORT),
    };
    let start = match offset {
        ImageOffset::At(offset) => offset,
        ImageOffset::Auto => match find_image(source) {
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            found => found?,
        },
    };
    let mut version = [0; FILE_HEADER_V1_LEN];
    if source.read_exact_at(start, &mut version).is_ok()
        && let Ok(version) = Version::parse(&version)
    {
        scanner.version = Some(version);
        if version.has_v1_sections() {
            let found = scanner.walk_v1(start, version);
            return Ok(Scan {
                start,
                version,
                found,
            });
        }
    }
    let found = scanner.walk(start)?;
    match (scanner.version, found.first()) {
        (Some(version), Some(first)) => Ok(Scan {
            // What is before the first section that was found may be one that was not.
            start: if first.number == 0 {
                first.offset
            } else {
                start
            },
            version,
            found,
        }),
        _ => Err(Error::not_found(
            "no section of an image found in this file",
        )),
    }
}

struct Scanner<'a> {
    source: &'a dyn Source,
    version: Option<Version>,
    effort_left: u64,
}

impl Scanner<'_> {
    fn walk_v1(&self, start: u64, version: Version) -> Vec<Found> {
        let mut found = Vec::new();
        let mut offset = start + FILE_HEADER_V1_LEN as u64;
        let mut short = [0; V1_HEADER_LEN];
        while self.source.read_exact_at(offset, &mut short).is_ok() {
            let Ok(header) = SectionHeader::parse_v1(&short, version) else {
                break;
            };
            let mut bytes = [0; V2_HEADER_LEN];
            for (to, from) in bytes.iter_mut().zip(short) {
                *to = from;
            }
            let mut section = Found {
                number: u32::try_from(found.len()).unwrap_or(u32::MAX),
                header,
                bytes,
                offset,
                state: SectionState::Good,
            };
            // Without this, zeros would be endlessly many sections.
            if header.payload_len == 0 {
                break;
            }
            if section.end() > self.source.len() {
                section.state = SectionState::CutOff;
                found.push(section);
                break;
            }
            offset = section.end();
            found.push(section);
        }
        found
    }

    fn walk(&mut self, start: u64) -> Result<Vec<Found>> {
        let mut found: Vec<Found> = Vec::new();
        let mut offset = start;
        while offset < self.source.len() {
            let next = found.last().map_or(0, |last| last.number.saturating_add(1));
            if let Some(section) = self.header_at(offset, next) {
                if section.state == SectionState::Good {
                    offset = section.end();
                    found.push(section);
                    continue;
                }
                // The end of the file, or the length, is wrong.
                let Some(later) = self.pass(offset, next, &mut found)? else {
                    if found.last().is_none_or(|last| last.offset < offset) {
                        found.push(section);
                    }
                    break;
                };
                offset = later;
                continue;
            }
            // A wrong length in the header before leads anywhere.
            let before = found.last().copied();
            if let Some(mut before) = before
                && !self.is_right(&before)?
            {
                found.pop();
                let later = self.pass(before.offset, before.number, &mut found)?;
                before.state = SectionState::Damaged;
                let at = found.partition_point(|section| section.number < before.number);
                if found
                    .get(at)
                    .is_none_or(|section| section.number != before.number)
                {
                    found.insert(at, before);
                }
                let Some(later) = later else {
                    break;
                };
                offset = later;
                continue;
            }
            let Some(later) = self.pass(offset, next, &mut found)? else {
                break;
            };
            offset = later;
        }
        for section in &mut found {
            if section.state == SectionState::Good && !self.is_right(section)? {
                section.state = SectionState::Damaged;
            }
        }
        Ok(found)
    }

    /// Passes over a section with a damaged header, which is kept if the damage can be undone. Returns where to go on.
    fn pass(&mut self, offset: u64, number: u32, found: &mut Vec<Found>) -> Result<Option<u64>> {
        let later = self.search(offset + 1, number)?;
        let end = later.map_or(self.source.len(), |later| later.offset);
        found.extend(self.repaired(end, offset, number)?);
        found.extend(later);
        Ok(later.map(|later| later.end()))
    }

    /// The header at `offset`, if it is one with the number that it should have.
    fn header_at(&mut self, offset: u64, number: u32) -> Option<Found> {
        let mut bytes = [0; V2_HEADER_LEN];
        self.source.read_exact_at(offset, &mut bytes).ok()?;
        let header = SectionHeader::parse_v2(&bytes).ok()?;
        if header.number != Some(number) || header.version.has_v1_sections() {
            return None;
        }
        self.version.get_or_insert(header.version);
        let mut found = Found {
            number,
            header,
            bytes,
            offset,
            state: SectionState::Good,
        };
        if found.end() > self.source.len() {
            found.state = SectionState::CutOff;
        }
        Some(found)
    }

    /// The section from `start` to `end`, if its header is right but for magic, version, number and length.
    fn repaired(&mut self, end: u64, start: u64, number: u32) -> Result<Option<Found>> {
        let Some(version) = self.version else {
            return Ok(None);
        };
        let Some(len) = end.checked_sub(start + V2_HEADER_LEN as u64) else {
            return Ok(None);
        };
        let mut bytes = [0; V2_HEADER_LEN];
        self.read(start, &mut bytes)?;
        for (to, from) in bytes
            .iter_mut()
            .zip(NEEDLE.into_iter().chain([version.minor]))
        {
            *to = from;
        }
        let fields = number.to_le_bytes().into_iter();
        for (to, from) in bytes.iter_mut().skip(48).zip(fields) {
            *to = from;
        }
        for (to, from) in bytes.iter_mut().skip(56).zip(len.to_le_bytes()) {
            *to = from;
        }
        let Ok(header) = SectionHeader::parse_v2(&bytes) else {
            return Ok(None);
        };
        let found = Found {
            number,
            header,
            bytes,
            offset: start,
            state: SectionState::Good,
        };
        let is_it = header.number == Some(number) && self.is_right(&found)?;
        Ok(is_it.then_some(found))
    }

    /// Searches for a section behind one that is damaged and has the number `lost`.
    fn search(&mut self, from: u64, lost: u32) -> Result<Option<Found>> {
        let mut window = vec![0; WINDOW_LEN];
        let mut at = from;
        while at < self.source.len() {
            let len = usize::try_from(self.source.len() - at)
                .map_or(WINDOW_LEN, |left| left.min(WINDOW_LEN));
            let bytes = window.get_mut(..len).unwrap_or_default();
            self.read(at, bytes)?;
            let hits: Vec<u64> = bytes
                .windows(NEEDLE.len())
                .zip(at..)
                .filter(|(bytes, _)| *bytes == NEEDLE)
                .map(|(_, hit)| hit)
                .collect();
            for hit in hits {
                if let Some(found) = self.candidate(hit, lost)? {
                    return Ok(Some(found));
                }
            }
            at += (WINDOW_LEN - NEEDLE.len() + 1) as u64;
        }
        Ok(None)
    }

    /// Whether a section begins here that can follow a lost one.
    fn candidate(&mut self, offset: u64, lost: u32) -> Result<Option<Found>> {
        let mut bytes = [0; V2_HEADER_LEN];
        if self.source.read_exact_at(offset, &mut bytes).is_err() {
            return Ok(None);
        }
        let Ok(header) = SectionHeader::parse_v2(&bytes) else {
            return Ok(None);
        };
        let number = header.number.unwrap_or(0);
        // Nothing is lost before the very first section.
        let is_first = lost == 0 && number == 0;
        let is_later = number > lost && number - lost <= GAP_MAX;
        let has_version = self.version.is_none_or(|known| known == header.version);
        if !(is_first || is_later) || !has_version || header.version.has_v1_sections() {
            return Ok(None);
        }
        let found = Found {
            number,
            header,
            bytes,
            offset,
            state: SectionState::Good,
        };
        let end = found.end();
        if end > self.source.len() {
            return Ok(None);
        }
        // Sections of an image inside of a payload have numbers of their own, and something else behind the last.
        let agrees = end == self.source.len()
            || number == lost.saturating_add(1)
            || self.header_at(end, number.saturating_add(1)).is_some();
        if !agrees || !self.is_right(&found)? {
            return Ok(None);
        }
        self.version.get_or_insert(header.version);
        Ok(Some(found))
    }

    /// Compares the checksum.
    fn is_right(&mut self, found: &Found) -> Result<bool> {
        let len = found.header.payload_len;
        self.effort_left = self
            .effort_left
            .checked_sub(len)
            .ok_or_else(|| Error::limit("too many things in the file look like sections"))?;
        let mut verifier = Xxh3Verifier::new(&found.bytes);
        let mut buffer = vec![0; WINDOW_LEN];
        let mut at = found.payload_offset();
        let end = found.end();
        while at < end {
            let len = usize::try_from(end - at).map_or(buffer.len(), |left| left.min(buffer.len()));
            let piece = buffer.get_mut(..len).unwrap_or_default();
            // A place that cannot be read is damaged like one that is wrong.
            if self.source.read_exact_at(at, piece).is_err() {
                return Ok(false);
            }
            verifier.update(piece);
            at += len as u64;
        }
        Ok(verifier.finish().is_ok())
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.source.read_exact_at(offset, buffer).map_err(|error| {
            Error::io(
                format!("reading {} bytes at offset {offset}", buffer.len()),
                error,
            )
        })
    }
}
