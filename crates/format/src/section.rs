//! Section headers: what is in a section, how it is compressed, and its checksums.
//!
//! Comes in: the first bytes of a section. Goes out: a [`SectionHeader`], or the 64 bytes of one.
//! Where sections are and whether they lie inside the file is the reader's business.
//! Source: docs/format.md, "Container".

use std::fmt;

use xxhash_rust::xxh3::Xxh3Default;

use crate::cursor::Cursor;
use crate::sha512_256::{self, Hasher};
use crate::{Error, Result};

/// What every image and every v2 section starts with.
pub const MAGIC: [u8; 6] = *b"DWARFS";

/// Bytes of a section header from format 2.2 on.
pub const V2_HEADER_LEN: usize = 64;

/// Bytes of a section header of formats 2.0 and 2.1.
pub const V1_HEADER_LEN: usize = 8;

/// Bytes before the first section in formats 2.0 and 2.1: magic and version.
pub const FILE_HEADER_V1_LEN: usize = 8;

/// Where the bytes begin that the XXH3 covers, counted from the start of the header.
const XXH3_START: usize = 0x30;

/// Where the bytes begin that the SHA-512/256 covers: it includes the XXH3.
const SHA2_START: usize = 0x28;

/// Where the SHA-512/256 is.
const SHA2_AT: usize = 0x08;

macro_rules! coded_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
            /// A number that this release does not know.
            Unknown(u16),
        }

        impl $name {
            /// The format's spelling of the name; `UNKNOWN` for a number without one.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Unknown(_) => "UNKNOWN",
                }
            }
        }

        impl From<u16> for $name {
            fn from(code: u16) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Unknown(other),
                }
            }
        }

        impl From<$name> for u16 {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$variant => $code,)*
                    $name::Unknown(other) => other,
                }
            }
        }
    };
}

coded_enum! {
    /// What a section holds.
    SectionType {
        /// File data.
        Block = 0, "BLOCK";
        /// The Frozen schema of the metadata.
        MetadataV2Schema = 7, "METADATA_V2_SCHEMA";
        /// The Frozen metadata.
        MetadataV2 = 8, "METADATA_V2";
        /// Types and offsets of all sections.
        SectionIndex = 9, "SECTION_INDEX";
        /// Who built the image, when and how.
        History = 10, "HISTORY";
    }
}

coded_enum! {
    /// How the payload of a section is compressed.
    CompressionType {
        /// Stored as it is.
        None = 0, "NONE";
        /// An `.xz` stream.
        Lzma = 1, "LZMA";
        /// One zstd frame.
        Zstd = 2, "ZSTD";
        /// A size and a raw LZ4 block.
        Lz4 = 3, "LZ4";
        /// As [`Self::Lz4`]; read, never written.
        Lz4hc = 4, "LZ4HC";
        /// A size and a Brotli stream.
        Brotli = 5, "BROTLI";
        /// A size, the sample layout and a FLAC stream.
        Flac = 6, "FLAC";
        /// A size, the pixel layout and a Rice bit stream.
        Ricepp = 7, "RICEPP";
    }
}

/// The version of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Always 2.
    pub major: u8,
    /// 0 to [`Self::MINOR_MAX`].
    pub minor: u8,
}

impl Version {
    /// The version that we write.
    pub const CURRENT: Self = Self { major: 2, minor: 5 };

    /// The newest minor version that can be read.
    pub const MINOR_MAX: u8 = 6;

    /// Checks the magic and the version that begin an image and, from 2.2 on, every section.
    ///
    /// # Errors
    /// `Corrupt` if the magic is wrong, `Unsupported` if the version is not 2.0 to 2.6.
    pub fn parse(bytes: &[u8; 8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let magic: [u8; 6] = cursor.array()?;
        if magic != MAGIC {
            return Err(Error::corrupt(format!(
                "magic mismatch: expected \"DWARFS\", found \"{}\"",
                magic.escape_ascii()
            )));
        }
        let version = Self {
            major: cursor.u8()?,
            minor: cursor.u8()?,
        };
        if version.major != Self::CURRENT.major || version.minor > Self::MINOR_MAX {
            return Err(Error::unsupported(format!(
                "format version {version}: this release reads 2.0 to 2.{}",
                Self::MINOR_MAX
            )));
        }
        Ok(version)
    }

    /// Returns whether sections have the 8-byte headers without checksums (formats 2.0 and 2.1).
    #[must_use]
    pub fn has_v1_sections(self) -> bool {
        self.minor < 2
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Both checksums of a v2 section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksums {
    /// SHA-512/256 over everything from the XXH3 field to the end of the payload.
    pub sha2_512_256: [u8; 32],
    /// XXH3-64 over everything from the section number to the end of the payload.
    pub xxh3_64: u64,
}

/// What the header of a section says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// The version in the header; that of the file for v1 headers.
    pub version: Version,
    /// The stored section number; v1 headers have none.
    pub number: Option<u32>,
    /// What the payload is.
    pub section_type: SectionType,
    /// How the payload is compressed.
    pub compression: CompressionType,
    /// Bytes of the payload after compression, as stored: not yet compared with the size of the file.
    pub payload_len: u64,
    /// The stored checksums; v1 headers have none.
    pub checksums: Option<Checksums>,
}

impl SectionHeader {
    /// Parses a header of formats 2.0 and 2.1.
    ///
    /// # Errors
    /// `Corrupt` if the section type or the compression is not one that these formats know: nothing else
    /// in a v1 header tells a header from arbitrary bytes.
    pub fn parse_v1(bytes: &[u8; V1_HEADER_LEN], version: Version) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let section_type = SectionType::from(cursor.u16()?);
        let compression = CompressionType::from(u16::from(cursor.u8()?));
        // Written as 0 and without meaning.
        cursor.u8()?;
        let payload_len = u64::from(cursor.u32()?);
        if let SectionType::Unknown(code) = section_type {
            return Err(Error::corrupt(format!("unknown section type {code}")));
        }
        if let CompressionType::Unknown(code) = compression {
            return Err(Error::corrupt(format!("unknown compression type {code}")));
        }
        Ok(Self {
            version,
            number: None,
            section_type,
            compression,
            payload_len,
            checksums: None,
        })
    }

    /// Parses a header of format 2.2 and later. Unknown types are kept: a reader skips such sections.
    ///
    /// # Errors
    /// As [`Version::parse`].
    pub fn parse_v2(bytes: &[u8; V2_HEADER_LEN]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let version = Version::parse(&cursor.array()?)?;
        let checksums = Checksums {
            sha2_512_256: cursor.array()?,
            xxh3_64: cursor.u64()?,
        };
        Ok(Self {
            version,
            number: Some(cursor.u32()?),
            section_type: SectionType::from(cursor.u16()?),
            compression: CompressionType::from(cursor.u16()?),
            payload_len: cursor.u64()?,
            checksums: Some(checksums),
        })
    }

    /// Returns the bytes from the start of this header to the payload.
    #[must_use]
    pub fn header_len(&self) -> u64 {
        let len = match self.checksums {
            Some(_) => V2_HEADER_LEN,
            None => V1_HEADER_LEN,
        };
        len as u64
    }
}

/// What the header of a section tells.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// Counts sections from 0.
    pub number: u32,
    /// What is in it.
    pub section_type: SectionType,
    /// How that is compressed.
    pub compression: CompressionType,
    /// What follows the header.
    pub payload: &'a [u8],
}

/// Builds the header of a section in the current version, with both checksums.
#[must_use]
pub fn encode_header(
    number: u32,
    section_type: SectionType,
    compression: CompressionType,
    payload: &[u8],
) -> [u8; V2_HEADER_LEN] {
    let contents = Contents {
        number,
        section_type,
        compression,
        payload,
    };
    let headers = encode_headers(&[contents]);
    // There is one for each section.
    headers.first().copied().unwrap_or([0; V2_HEADER_LEN])
}

/// As [`encode_header`], for several sections: from three on that is faster than one by one.
#[must_use]
pub fn encode_headers(sections: &[Contents<'_>]) -> Vec<[u8; V2_HEADER_LEN]> {
    let mut headers: Vec<_> = sections.iter().map(Contents::without_sha2).collect();
    let messages: Vec<_> = headers
        .iter()
        .zip(sections)
        .map(|(header, section)| [header.get(SHA2_START..).unwrap_or(&[]), section.payload])
        .collect();
    let digests = sha512_256::digests(&messages);
    for (header, digest) in headers.iter_mut().zip(digests) {
        put(header, SHA2_AT, &digest);
    }
    headers
}

impl Contents<'_> {
    /// The header but for the SHA-512/256.
    fn without_sha2(&self) -> [u8; V2_HEADER_LEN] {
        let mut header = [0; V2_HEADER_LEN];
        let version = [Version::CURRENT.major, Version::CURRENT.minor];
        put(&mut header, 0, &[&MAGIC[..], &version].concat());
        let numbers = [
            &self.number.to_le_bytes()[..],
            &u16::from(self.section_type).to_le_bytes(),
            &u16::from(self.compression).to_le_bytes(),
            &(self.payload.len() as u64).to_le_bytes(),
        ];
        put(&mut header, XXH3_START, &numbers.concat());
        let mut xxh3 = Xxh3Default::new();
        xxh3.update(header.get(XXH3_START..).unwrap_or(&[]));
        xxh3.update(self.payload);
        put(&mut header, SHA2_START, &xxh3.digest().to_le_bytes());
        header
    }
}

/// Writes `bytes` into a header.
fn put(header: &mut [u8; V2_HEADER_LEN], at: usize, bytes: &[u8]) {
    let room = header.iter_mut().skip(at);
    room.zip(bytes).for_each(|(to, from)| *to = *from);
}

/// Checks the XXH3-64 of one v2 section, a piece of the payload at a time: fast, finds every accident.
pub struct Xxh3Verifier {
    expected: u64,
    hasher: Box<Xxh3Default>,
}

impl Xxh3Verifier {
    /// Begins a check.
    #[must_use]
    pub fn new(header: &[u8; V2_HEADER_LEN]) -> Self {
        let mut hasher = Box::new(Xxh3Default::new());
        hasher.update(header.get(XXH3_START..).unwrap_or(&[]));
        Self {
            expected: stored_checksums(header).xxh3_64,
            hasher,
        }
    }

    /// Adds the next piece of the payload.
    pub fn update(&mut self, payload: &[u8]) {
        self.hasher.update(payload);
    }

    /// Compares, once the whole payload was seen.
    ///
    /// # Errors
    /// `Corrupt` if the stored checksum is another one.
    pub fn finish(self) -> Result<()> {
        let (expected, found) = (self.expected, self.hasher.digest());
        if expected == found {
            return Ok(());
        }
        let [expected, found] = [expected, found].map(|number| format!("{number:016x}"));
        Err(mismatch("xxh3", &expected, &found))
    }
}

/// Checks the SHA-512/256 of one v2 section, a piece of the payload at a time: slow, finds forgeries of the payload too.
#[derive(Clone, Debug)]
pub struct Sha2Verifier {
    expected: [u8; 32],
    hasher: Hasher,
}

impl Sha2Verifier {
    /// Begins a check.
    #[must_use]
    pub fn new(header: &[u8; V2_HEADER_LEN]) -> Self {
        Self {
            expected: stored_checksums(header).sha2_512_256,
            hasher: Hasher::new(header.get(SHA2_START..).unwrap_or(&[])),
        }
    }

    /// Adds the next piece of the payload of each section; see [`crate::sha512_256::together_max`].
    pub fn update_all<'a>(verifiers: impl Iterator<Item = &'a mut Self>, payloads: &[&[u8]]) {
        let mut hashers: Vec<_> = verifiers.map(|verifier| &mut verifier.hasher).collect();
        Hasher::update_all(&mut hashers, payloads);
    }

    /// Compares, once the whole payload was seen.
    ///
    /// # Errors
    /// `Corrupt` if the stored checksum is another one.
    pub fn finish(self) -> Result<()> {
        let (expected, found) = (self.expected, self.hasher.finish());
        if expected == found {
            return Ok(());
        }
        let [expected, found] = [expected, found].map(|digest| crate::digest::hex(&digest));
        Err(mismatch("sha2-512/256", &expected, &found))
    }
}

fn mismatch(name: &str, expected: &str, found: &str) -> Error {
    Error::corrupt(format!(
        "{name} mismatch: expected {expected}, found {found}"
    ))
}

fn stored_checksums(header: &[u8; V2_HEADER_LEN]) -> Checksums {
    let mut cursor = Cursor::new(header);
    // A header is longer than what is read here, so that the defaults are never taken.
    cursor.bytes(8).unwrap_or_default();
    Checksums {
        sha2_512_256: cursor.array().unwrap_or_default(),
        xxh3_64: cursor.u64().unwrap_or_default(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_verify() {
        let payload = b"some payload";
        let bytes = encode_header(
            7,
            SectionType::History,
            CompressionType::Zstd,
            payload.as_slice(),
        );
        let header = SectionHeader::parse_v2(&bytes).unwrap();
        assert_eq!(header.version, Version::CURRENT);
        assert_eq!(header.number, Some(7));
        assert_eq!(header.section_type, SectionType::History);
        assert_eq!(header.compression, CompressionType::Zstd);
        assert_eq!(header.payload_len, payload.len() as u64);
        assert_eq!(header.header_len(), 64);
        let (mut xxh3, mut sha2) = (Xxh3Verifier::new(&bytes), Sha2Verifier::new(&bytes));
        for piece in [&payload[..5], &payload[5..]] {
            xxh3.update(piece);
            Sha2Verifier::update_all([&mut sha2].into_iter(), &[piece]);
        }
        xxh3.finish().unwrap();
        sha2.finish().unwrap();
    }

    #[test]
    fn every_flipped_bit_that_a_checksum_covers_is_found() {
        let payload = [9; 20];
        let good = encode_header(0, SectionType::Block, CompressionType::None, &payload);
        for at in 8..V2_HEADER_LEN + payload.len() {
            let (mut header, mut payload) = (good, payload);
            match at.checked_sub(V2_HEADER_LEN) {
                Some(at) => payload[at] ^= 4,
                None => header[at] ^= 4,
            }
            let mut sha2 = Sha2Verifier::new(&header);
            Sha2Verifier::update_all([&mut sha2].into_iter(), &[&payload[..]]);
            let message = sha2.finish().unwrap_err().to_string();
            assert!(message.starts_with("sha2-512/256 mismatch: expected"));
            let mut xxh3 = Xxh3Verifier::new(&header);
            xxh3.update(&payload);
            // The SHA-512/256 itself is the one thing that the XXH3 does not cover.
            assert_eq!(xxh3.finish().is_err(), at >= SHA2_START, "byte {at}");
        }
    }

    #[test]
    fn versions_outside_2_0_to_2_6_are_refused() {
        let check = |bytes: &[u8; 8], expect: &str| {
            let got = match Version::parse(bytes) {
                Ok(version) => version.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(got, expect);
        };
        check(b"DWARFS\x02\x00", "2.0");
        check(b"DWARFS\x02\x06", "2.6");
        check(
            b"DWARFS\x02\x07",
            "format version 2.7: this release reads 2.0 to 2.6",
        );
        check(
            b"DWARFS\x03\x00",
            "format version 3.0: this release reads 2.0 to 2.6",
        );
        check(
            b"DWARF\xff\x02\x05",
            "magic mismatch: expected \"DWARFS\", found \"DWARF\\xff\"",
        );
    }

    #[test]
    fn v1_headers_know_no_other_types() {
        let version = Version { major: 2, minor: 0 };
        let parse = |bytes| SectionHeader::parse_v1(&bytes, version);
        let header = parse([7, 0, 1, 0x55, 4, 3, 0, 0]).unwrap();
        assert_eq!(header.section_type, SectionType::MetadataV2Schema);
        assert_eq!(header.compression, CompressionType::Lzma);
        assert_eq!((header.payload_len, header.header_len()), (0x304, 8));
        assert!(parse([1, 0, 0, 0, 1, 0, 0, 0]).is_err());
        assert!(parse([0, 0, 8, 0, 1, 0, 0, 0]).is_err());
    }
}
