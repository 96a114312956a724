//! The compression algorithms of DwarFS sections, in both directions.
//!
//! [`Spec`] is what a user asks for (`zstd:level=22`) and makes an [`Encoder`] for each thread that compresses.
//! [`Decoder`] turns the payload of a section back into its bytes and continues where it stopped, as far as the
//! algorithm allows; [`decompress`] does it at once.
//! What a payload consists of is in the specification's chapter 3.
//!
//! Payloads are untrusted. Their uncompressed size is found and compared with a ceiling before anything is allocated,
//! a payload that ends early or goes on too long is an error, and memory stays near that ceiling plus the window
//! of the algorithm.
//!
//! This crate is the only one that calls C libraries for compression. It does no I/O and starts no thread but
//! those that help each other in a [`Crew`].
//!
//! ```
//! use durin_codec::{Spec, decompress, encode_section};
//! use durin_format::section::CompressionType;
//!
//! let data = b"to and fro and ".repeat(1000);
//! let spec = Spec::parse("zstd:level=9")?;
//! let mut encoder = spec.encoder(data.len(), None)?;
//! let encoded = encode_section(encoder.as_mut(), spec.compression_type(), data.clone())?;
//! assert_eq!(encoded.compression, CompressionType::Zstd);
//! assert_eq!(decompress(encoded.compression, &encoded.payload, 1 << 20)?, data);
//! # Ok::<(), durin_format::Error>(())
//! ```

mod brotli;
mod decoder;
mod decompressed;
mod encoder;
mod flac;
mod help;
mod histogram;
mod layout;
mod lz4;
mod lzma;
mod null;
mod options;
mod output;
mod packed;
mod pages;
mod ricepp;
mod sample;
mod size_prefix;
mod spec;
mod stream;
mod tables;
mod versions;
mod zstd;

pub use decoder::{Decoder, decompress, decompress_from, uncompressed_len};
pub use decompressed::Decompressed;
pub use durin_lzma2::{Crew, Member, THREADS_PER_TABLE, helped, prefer_huge_pages};
pub use encoder::{Encoded, Encoder, encode_if_smaller, encode_section};
pub use help::{AlgorithmHelp, algorithms};
pub use histogram::Histogram;
pub use lzma::DeltaTrial;
pub use packed::Packed;
pub use pages::prepare_pages;
pub use sample::sample;
pub use spec::{EncoderMemory, Spec};
pub use stream::{Deflater, StreamFormat};
pub use versions::library_versions;
