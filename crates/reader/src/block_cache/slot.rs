//! What is known about each block for as long as the image is open: its section, and after the first touch whether it
//! is stored or compressed, or why it cannot be read.

use durin_format::section::{CompressionType, V2_HEADER_LEN};
use durin_format::{BlockIndex, Error, ErrorKind, Location, Result};
use durin_source::Source;

use super::shared::place;
use crate::payload;
use crate::sections::{Section, header_of, read_v2_header};
use crate::sync::{Mutex, OnceLock, lock};

/// Locks for the first touch. Blocks share them, which only makes two first touches wait for each other.
const LOCK_COUNT: usize = 16;

/// Payload bytes that a block may have beyond its uncompressed size twice over. No codec makes data that much longer,
/// and what claims to be is not read into memory.
const PAYLOAD_SLACK: u64 = 1 << 20;

/// All blocks.
pub(super) struct Slots {
    sections: Vec<Section>,
    kinds: Vec<OnceLock<Known>>,
    locks: [Mutex<()>; LOCK_COUNT],
    checks: Checks,
}

/// What is checked on the first touch.
#[derive(Clone, Copy)]
pub(super) struct Checks {
    pub(super) has_v2_headers: bool,
    pub(super) verify: bool,
    pub(super) block_size: u64,
}

/// How a block is read.
pub(super) enum Kind {
    Stored,
    Compressed(CompressionType),
    Failed(Error),
}

enum Known {
    Stored,
    Compressed(CompressionType),
    Failed(Failure),
}

/// An error that is given again to everybody who asks.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    kind: ErrorKind,
    message: String,
    location: Location,
}

impl Failure {
    /// Keeps an error, unless trying again could help.
    pub(super) fn lasting(error: &Error) -> Option<Self> {
        if matches!(error.kind(), ErrorKind::Io | ErrorKind::Limit) {
            return None;
        }
        // The location is kept apart, and an error prints it before its message.
        let shown = error.to_string();
        let prefix = format!("{}: ", error.location());
        Some(Self {
            kind: error.kind(),
            message: shown.strip_prefix(&prefix).unwrap_or(&shown).to_owned(),
            location: *error.location(),
        })
    }

    /// Makes the error anew.
    pub(super) fn error(&self) -> Error {
        Error::new(self.kind, self.message.clone()).at(self.location)
    }
}

impl Slots {
    pub(super) fn new(sections: Vec<Section>, checks: Checks) -> Self {
        let kinds = sections.iter().map(|_| OnceLock::new()).collect();
        Self {
            sections,
            kinds,
            locks: Default::default(),
            checks,
        }
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.sections.len()).unwrap_or(u32::MAX)
    }

    /// The section of a block.
    pub(super) fn section(&self, block: BlockIndex) -> Result<&Section> {
        index(block)
            .and_then(|at| self.sections.get(at))
            .ok_or_else(|| {
                Error::corrupt(format!(
                    "block {block} does not exist: the image has {}",
                    self.count()
                ))
            })
    }

    pub(super) fn is_known_stored(&self, block: BlockIndex) -> bool {
        let known = index(block).and_then(|at| self.kinds.get(at));
        matches!(known.and_then(OnceLock::get), Some(Known::Stored))
    }

    /// How a block is read, found on the first call.
    pub(super) fn kind(&self, source: &dyn Source, block: BlockIndex) -> Result<Kind> {
        let section = self.section(block)?;
        let at = index(block).unwrap_or(0);
        let Some(slot) = self.kinds.get(at) else {
            return Ok(Kind::Stored);
        };
        if let Some(known) = slot.get() {
            return Ok(known.kind());
        }
        let _one_at_a_time = self.locks.get(at % LOCK_COUNT).map(lock);
        if let Some(known) = slot.get() {
            return Ok(known.kind());
        }
        let known = match self.open(source, section) {
            Ok(known) => known,
            Err(error) => {
                let error = place(error, block, section);
                match Failure::lasting(&error) {
                    Some(failure) => Known::Failed(failure),
                    None => return Err(error),
                }
            }
        };
        Ok(slot.get_or_init(|| known).kind())
    }

    /// Replaces `payload` by that of a compressed block, verified.
    pub(super) fn payload_into(
        &self,
        source: &dyn Source,
        section: &Section,
        payload: &mut Vec<u8>,
    ) -> Result<()> {
        let len_max = self.checks.block_size * 2 + PAYLOAD_SLACK;
        if section.payload_len > len_max {
            return Err(Error::corrupt(format!(
                "payload of {} bytes for a block of at most {}",
                section.payload_len, self.checks.block_size
            )));
        }
        let header = self.header_to_verify(source, section)?;
        payload::read_again(source, section, len_max, header.as_ref(), payload)
    }

    /// Compares a payload with its checksum, if it has one.
    pub(super) fn verify(&self, source: &dyn Source, section: &Section) -> Result<()> {
        match self.header_to_verify(source, section)? {
            Some(header) => payload::verify_streaming(source, section, &header),
            None => Ok(()),
        }
    }

    fn open(&self, source: &dyn Source, section: &Section) -> Result<Known> {
        let compression = match section.compression {
            Some(compression) => compression,
            None => header_of(source, section)?.compression,
        };
        if compression != CompressionType::None {
            return Ok(Known::Compressed(compression));
        }
        if section.payload_len > self.checks.block_size {
            return Err(Error::corrupt(format!(
                "{} bytes, more than the block size {}",
                section.payload_len, self.checks.block_size
            )));
        }
        self.verify(source, section)?;
        Ok(Known::Stored)
    }

    fn header_to_verify(
        &self,
        source: &dyn Source,
        section: &Section,
    ) -> Result<Option<[u8; V2_HEADER_LEN]>> {
        if !self.checks.has_v2_headers || !self.checks.verify {
            return Ok(None);
        }
        read_v2_header(source, section).map(|(_, bytes)| Some(bytes))
    }
}

impl Known {
    fn kind(&self) -> Kind {
        match self {
            Self::Stored => Kind::Stored,
            Self::Compressed(compression) => Kind::Compressed(*compression),
            Self::Failed(failure) => Kind::Failed(failure.error()),
        }
    }
}

fn index(block: BlockIndex) -> Option<usize> {
    usize::try_from(block.0).ok()
}
