//! Every block is decoded once, however little memory there is and however files use blocks; about once where files must be
//! written as a whole.

use std::fs;

use durin_extract::{ArchiveFormat, ExtractOptions};
use durin_format::metadata::{Chunk, Metadata};
use durin_format::section::{CompressionType, SectionType, encode_header};
use durin_reader::{CacheOptions, Image, ImageOptions};
use durin_source::MemorySource;

use crate::archives;
use crate::extract_image;
use crate::synthetic::{Child, Tree};

/// Files have a piece of every block, so that a small cache would decode each block for each file.
const BLOCKS: u32 = 40;
const FILES: u32 = 700;
const PIECE_LEN: u32 = 300;

/// Byte `at` of block `block`.
fn byte(block: u32, at: u32) -> u8 {
    u8::try_from((block * 31 + at / PIECE_LEN * 7) % 251).unwrap()
}

/// An image of compressed blocks.
fn image(metadata: &Metadata, cache_bytes: u64) -> Image {
    let mut bytes = Vec::new();
    let mut push = |number, kind, compression, payload: &[u8]| {
        bytes.extend_from_slice(&encode_header(number, kind, compression, payload));
        bytes.extend_from_slice(payload);
    };
    let spec = durin_codec::Spec::parse("zstd:level=1").unwrap();
    let block_len = FILES * PIECE_LEN;
    for block in 0..BLOCKS {
        let data: Vec<u8> = (0..block_len).map(|at| byte(block, at)).collect();
        let mut payload = Vec::new();
        let mut encoder = spec.encoder(data.len(), None).unwrap();
        encoder.encode(&data, &mut payload).unwrap();
        push(block, SectionType::Block, CompressionType::Zstd, &payload);
    }
    let frozen = metadata.freeze().unwrap();
    let none = CompressionType::None;
    push(BLOCKS, SectionType::MetadataV2Schema, none, &frozen.schema);
    push(BLOCKS + 1, SectionType::MetadataV2, none, &frozen.data);
    let options = ImageOptions {
        cache: CacheOptions {
            bytes_max: cache_bytes,
            ..CacheOptions::default()
        },
        ..ImageOptions::default()
    };
    Image::open(std::sync::Arc::new(MemorySource::new(bytes)), &options).unwrap()
}

/// A piece of a block: the block and the place of the piece in it, in pieces.
type Piece = (u32, u32);

/// File `f` has piece `f` of each block, the last block first.
fn piece_of_each_block(file: u32) -> Vec<Piece> {
    (0..BLOCKS).rev().map(|block| (block, file)).collect()
}

/// Files have pieces of one block, which are in order, and between them one of any other.
fn piece_of_another_block(file: u32) -> Vec<Piece> {
    let (block, place) = (file / 20 % BLOCKS, file % 20 * 35);
    let other = (file.wrapping_mul(2_654_435_761) >> 16) % BLOCKS;
    let mut pieces: Vec<Piece> = (place..place + 35).map(|place| (block, place)).collect();
    pieces.insert(17, (other, file));
    pieces
}

fn metadata(pieces_of: fn(u32) -> Vec<Piece>) -> Metadata {
    let children = (0..FILES).map(|file| (format!("{file:04}"), Child::File(file as usize)));
    let tree = Tree {
        dirs: vec![children.collect()],
        files: vec![Vec::new(); FILES as usize],
    };
    let (mut chunks, mut chunk_table) = (Vec::new(), vec![0]);
    for file in 0..FILES {
        chunks.extend(pieces_of(file).into_iter().map(|(block, place)| Chunk {
            block,
            offset: place * PIECE_LEN,
            size: PIECE_LEN,
        }));
        chunk_table.push(u32::try_from(chunks.len()).unwrap());
    }
    Metadata {
        chunks,
        chunk_table,
        ..tree.metadata()
    }
}

/// The bytes of a file.
fn content(pieces: Vec<Piece>) -> impl Iterator<Item = u8> {
    let bytes_of = |(block, place)| {
        (place * PIECE_LEN..(place + 1) * PIECE_LEN).map(move |at| byte(block, at))
    };
    pieces.into_iter().flat_map(bytes_of)
}

#[test]
fn every_block_is_decoded_once_whatever_the_cache_has_room_for() {
    for (cache_bytes, disk_writers) in [(1, 1), (1, 4), (512 << 20, 2)] {
        let image = image(&metadata(piece_of_each_block), cache_bytes);
        let target = tempfile::tempdir().unwrap();
        let options = ExtractOptions {
            disk_writers,
            ..ExtractOptions::default()
        };
        let report = extract_image(&image, target.path(), &options)
            .result
            .unwrap();
        assert_eq!(report.files, u64::from(FILES));
        let all = u64::from(BLOCKS * FILES * PIECE_LEN);
        assert_eq!(report.bytes, all);
        assert_eq!(image.cache().stats().decoded_bytes, all, "{cache_bytes}");
        for file in 0..FILES {
            let found = fs::read(target.path().join(format!("{file:04}"))).unwrap();
            let expected = content(piece_of_each_block(file));
            assert!(found.iter().copied().eq(expected), "{file}");
        }
    }
}

#[test]
fn archives_keep_what_they_need_of_blocks_that_the_cache_has_no_room_for() {
    let block_bytes = u64::from(FILES * PIECE_LEN);
    let all = u64::from(BLOCKS) * block_bytes;
    let write = |cache_bytes, disk_writers| {
        let image = image(&metadata(piece_of_another_block), cache_bytes);
        let options = ExtractOptions {
            disk_writers,
            ..ExtractOptions::default()
        };
        let mut archive = Vec::new();
        archives::write(&image, ArchiveFormat::CpioOdc, &mut archive, &options)
            .result
            .unwrap();
        (archive, image.cache().stats().decoded_bytes)
    };
    let (expected, decoded) = write(512 << 20, 2);
    assert_eq!(decoded, all);
    let bytes: Vec<u8> = content(piece_of_another_block(20)).collect();
    assert!(expected.windows(bytes.len()).any(|window| window == bytes));
    // A block that is being decoded counts twice.
    for (blocks, disk_writers) in [(8, 1), (12, 4)] {
        let (archive, decoded) = write(blocks * block_bytes, disk_writers);
        assert!(archive == expected);
        // Some are needed before their turn and once more then.
        assert!(decoded <= 3 * all, "{decoded} of {all}, {blocks} blocks");
    }
}
