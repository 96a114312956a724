//! Payloads of sections: reading, verifying, decompressing.

use std::borrow::Cow;
use std::ops::Range;

use durin_codec::Decompressed;
use durin_format::section::{CompressionType, V2_HEADER_LEN, Version, Xxh3Verifier};
use durin_format::{Error, Result};
use durin_source::Source;

use crate::sections::{Section, read_header, read_v2_header};

/// Bytes verified in one go: fits into the second level cache, where the checksum finds it again.
pub(crate) const PIECE_LEN: usize = 256 << 10;

/// Bytes of what is only verified in one go: memory that allocators have at hand. For more they take pages that are new to
/// the process each time, which costs more than the checksum.
const VERIFIED_LEN: usize = 64 << 10;

/// Fills `buf` from `offset` (bytes from the start of the file).
pub(crate) fn read_exact(source: &dyn Source, offset: u64, buf: &mut [u8]) -> Result<()> {
    source.read_exact_at(offset, buf).map_err(|error| {
        Error::io(
            format!("reading {} bytes at offset {offset}", buf.len()),
            error,
        )
    })
}

/// Reads a payload of at most `len_max` bytes.
pub(crate) fn read(source: &dyn Source, section: &Section, len_max: u64) -> Result<Vec<u8>> {
    let len = checked_len(section, len_max)?;
    let mut payload = Vec::new();
    payload.try_reserve_exact(len).map_err(|_| {
        Error::limit(format!("no memory for {len} bytes of payload")).at(section.location())
    })?;
    payload.resize(len, 0);
    read_exact(source, section.payload_offset, &mut payload)
        .map_err(|error| error.at(section.location()))?;
    Ok(payload)
}

/// Replaces `buf`, whose memory is used again, by a payload of at most `len_max` bytes.
/// With a header, compares its XXH3; each piece while it is in the processor's cache.
pub(crate) fn read_again(
    source: &dyn Source,
    section: &Section,
    len_max: u64,
    header: Option<&[u8; V2_HEADER_LEN]>,
    buf: &mut Vec<u8>,
) -> Result<()> {
    let mut payload = Payload::new(source, section, len_max, header)?;
    let len = payload.len;
    // What is there need not be cleared.
    buf.truncate(len);
    buf.try_reserve_exact(len - buf.len()).map_err(|_| {
        Error::limit(format!("no memory for {len} bytes of payload")).at(section.location())
    })?;
    durin_codec::prepare_pages(buf, len - buf.len());
    buf.resize(len, 0);
    payload
        .read(buf)
        .and_then(|()| payload.finish())
        .map_err(|error| error.at(section.location()))
}

/// Replaces `buf` by the first `len` bytes of a payload.
pub(crate) fn read_into(
    source: &dyn Source,
    section: &Section,
    len: u64,
    buf: &mut Vec<u8>,
) -> Result<()> {
    let no_memory = || Error::limit(format!("no memory for {len} bytes of payload"));
    let wanted = usize::try_from(len).map_err(|_| no_memory())?;
    buf.clear();
    buf.try_reserve_exact(wanted).map_err(|_| no_memory())?;
    buf.resize(wanted, 0);
    read_exact(source, section.payload_offset, buf)
}

/// Reads a payload and checks its XXH3.
pub(crate) fn read_verified(
    source: &dyn Source,
    section: &Section,
    header: &[u8; V2_HEADER_LEN],
    len_max: u64,
) -> Result<Vec<u8>> {
    let payload = read(source, section, len_max)?;
    verify(section, header, &payload)?;
    Ok(payload)
}

/// Checks the XXH3 of a payload in memory.
pub(crate) fn verify(
    section: &Section,
    header: &[u8; V2_HEADER_LEN],
    payload: &[u8],
) -> Result<()> {
    let mut verifier = Xxh3Verifier::new(header);
    verifier.update(payload);
    verifier
        .finish()
        .map_err(|error| error.at(section.location()))
}

/// Checks the XXH3 of a payload, a piece at a time.
pub(crate) fn verify_streaming(
    source: &dyn Source,
    section: &Section,
    header: &[u8; V2_HEADER_LEN],
) -> Result<()> {
    let mut verifier = Xxh3Verifier::new(header);
    let mut pieces = Pieces::new(section, VERIFIED_LEN);
    while let Some(piece) = pieces.next(source)? {
        verifier.update(piece);
    }
    verifier
        .finish()
        .map_err(|error| error.at(section.location()))
}

/// A payload that is read a piece at a time.
pub(crate) struct Pieces<'a> {
    section: &'a Section,
    done: u64,
    buffer: Vec<u8>,
    /// Bytes of the last piece.
    len: usize,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(section: &'a Section, len_max: usize) -> Self {
        let len = usize::try_from(section.payload_len).unwrap_or(len_max);
        Self {
            section,
            done: 0,
            buffer: vec![0; len.min(len_max)],
            len: 0,
        }
    }

    /// Reads the next piece; `None` at the end.
    pub(crate) fn next(&mut self, source: &dyn Source) -> Result<Option<&[u8]>> {
        let left = self.section.payload_len - self.done;
        if left == 0 {
            return Ok(None);
        }
        let len =
            usize::try_from(left).map_or(self.buffer.len(), |left| left.min(self.buffer.len()));
        let piece = self.buffer.get_mut(..len).unwrap_or_default();
        read_exact(source, self.section.payload_offset + self.done, piece)
            .map_err(|error| error.at(self.section.location()))?;
        self.done += len as u64;
        self.len = len;
        Ok(Some(piece))
    }

    /// The piece that was read last.
    pub(crate) fn last(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }
}

/// A payload where it is in the mapping of the source, or read into memory when there is none.
pub(crate) fn mapped_or_read<'a>(
    source: &'a dyn Source,
    section: &Section,
    len_max: u64,
) -> Result<Cow<'a, [u8]>> {
    match mapped_range(source, section) {
        Some((_, payload)) => Ok(Cow::Borrowed(payload)),
        None => read(source, section, len_max).map(Cow::Owned),
    }
}

/// Place of a payload in the mapping of the source, and the payload.
fn mapped_range<'a>(source: &'a dyn Source, section: &Section) -> Option<(Range<usize>, &'a [u8])> {
    let start = usize::try_from(section.payload_offset).ok()?;
    let end = usize::try_from(section.payload_offset + section.payload_len).ok()?;
    let payload = source.mapping()?.get(start..end)?;
    Some((start..end, payload))
}

/// What a section of the metadata or history holds, verified and decompressed.
pub(crate) enum Loaded {
    /// The payload is stored as it is: its place in the mapping of the source, in bytes from the start of the file.
    InPlace(Range<usize>),
    /// The contents in memory of their own.
    Owned(Decompressed),
}

impl Loaded {
    /// The bytes.
    pub(crate) fn bytes<'a>(&'a self, source: &'a dyn Source) -> &'a [u8] {
        match self {
            Self::InPlace(range) => source
                .mapping()
                .and_then(|map| map.get(range.clone()))
                .unwrap_or_default(),
            Self::Owned(bytes) => bytes,
        }
    }
}

/// Verifies the XXH3 of a section that is no block and decompresses it to at most `len_max` bytes.
/// Nothing is copied when the payload is stored as it is, the source has a mapping, and it is longer than `copy_max`.
pub(crate) fn load(
    source: &dyn Source,
    version: Version,
    section: &Section,
    len_max: u64,
    copy_max: u64,
) -> Result<Loaded> {
    let place = |error: Error| error.at(section.location());
    let (compression, header) = if version.has_v1_sections() {
        let end = section.payload_offset + section.payload_len;
        let (header, _) = read_header(source, section.offset, end, version).map_err(place)?;
        (header.compression, None)
    } else {
        let (header, bytes) = read_v2_header(source, section)?;
        (header.compression, Some(bytes))
    };
    let is_mapped = section.payload_len > copy_max;
    let Some((range, payload)) = mapped_range(source, section).filter(|_| is_mapped) else {
        // What is compressed can be a little longer than what it decompresses to, and is bounded by the file.
        let payload_max = len_max.saturating_mul(2);
        let payload = Payload::new(source, section, payload_max, header.as_ref())?;
        return payload
            .decompress(compression, len_max)
            .map(Loaded::Owned)
            .map_err(place);
    };
    if let Some(header) = &header {
        verify(section, header, payload)?;
    }
    if compression != CompressionType::None {
        return durin_codec::decompress(compression, payload, len_max)
            .map(|contents| Loaded::Owned(contents.into()))
            .map_err(place);
    }
    checked_len(section, len_max)?;
    Ok(Loaded::InPlace(range))
}

/// A payload that is read from start to end, and verified meanwhile.
struct Payload<'a> {
    source: &'a dyn Source,
    section: &'a Section,
    len: usize,
    done: usize,
    verifier: Option<Xxh3Verifier>,
}

impl<'a> Payload<'a> {
    /// Begins with a payload of at most `len_max` bytes, whose XXH3 is compared if there is a header.
    fn new(
        source: &'a dyn Source,
        section: &'a Section,
        len_max: u64,
        header: Option<&[u8; V2_HEADER_LEN]>,
    ) -> Result<Self> {
        Ok(Self {
            source,
            section,
            len: checked_len(section, len_max)?,
            done: 0,
            verifier: header.map(Xxh3Verifier::new),
        })
    }

    /// Reads and decompresses all of it. Of a payload that differs from its checksum, that is what is said.
    fn decompress(mut self, compression: CompressionType, len_max: u64) -> Result<Decompressed> {
        if self.len > PIECE_LEN {
            // The first piece is decoded while the others come from the disk. Asked for together, all come at the end.
            let (first, piece) = (self.section.payload_offset, PIECE_LEN as u64);
            self.source.advise(first, piece);
            let rest = self.section.payload_len - piece;
            self.source.advise(first + piece, rest);
        }
        let contents =
            durin_codec::decompress_from(compression, self.len, len_max, &mut |buf| self.read(buf));
        if contents.is_err() {
            self.skip_rest()?;
        }
        self.finish()?;
        contents
    }

    /// Compares the checksum of what was read, which is all.
    fn finish(self) -> Result<()> {
        self.verifier.map_or(Ok(()), Xxh3Verifier::finish)
    }

    /// Fills `buf` with what comes next.
    fn read(&mut self, buf: &mut [u8]) -> Result<()> {
        for piece in buf.chunks_mut(PIECE_LEN) {
            let offset = self.section.payload_offset + self.done as u64;
            read_exact(self.source, offset, piece)?;
            self.done += piece.len();
            if let Some(verifier) = &mut self.verifier {
                verifier.update(piece);
            }
        }
        Ok(())
    }

    /// Reads what was not asked for, so that its checksum is known.
    fn skip_rest(&mut self) -> Result<()> {
        let mut piece = vec![0; PIECE_LEN.min(self.len - self.done)];
        while self.done < self.len {
            let len = piece.len().min(self.len - self.done);
            self.read(piece.get_mut(..len).unwrap_or_default())?;
        }
        Ok(())
    }
}

fn checked_len(section: &Section, len_max: u64) -> Result<usize> {
    usize::try_from(section.payload_len)
        .ok()
        .filter(|_| section.payload_len <= len_max)
        .ok_or_else(|| {
            Error::limit(format!(
                "payload of {} bytes: at most {len_max} are read",
                section.payload_len
            ))
            .at(section.location())
        })
}
