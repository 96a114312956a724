//! Every block is decoded once, however little memory there is and however files use blocks.

use std::fs;

use durin_extract::ExtractOptions;
use durin_format::metadata::{Chunk, Metadata};
use durin_format::section::{CompressionType, SectionType, encode_header};
use durin_reader::{CacheOptions, Image, ImageOptions};
use durin_source::MemorySource;

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

/// An image of compressed blocks; file `f` has piece `f` of each block, the last block first.
fn image(cache_bytes: u64) -> Image {
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
    let frozen = metadata().freeze().unwrap();
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

fn metadata() -> Metadata {
    let children = (0..FILES).map(|file| (format!("{file:04}"), Child::File(file as usize)));
    let tree = Tree {
        dirs: vec![children.collect()],
        files: vec![Vec::new(); FILES as usize],
    };
    let pieces = (0..FILES).flat_map(|file| {
        (0..BLOCKS).rev().map(move |block| Chunk {
            block,
            offset: file * PIECE_LEN,
            size: PIECE_LEN,
        })
    });
    Metadata {
        chunks: pieces.collect(),
        chunk_table: (0..=FILES).map(|file| file * BLOCKS).collect(),
        ..tree.metadata()
    }
}

#[test]
fn every_block_is_decoded_once_whatever_the_cache_has_room_for() {
    for (cache_bytes, disk_writers) in [(1, 1), (1, 4), (512 << 20, 2)] {
        let image = image(cache_bytes);
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
            let pieces = (0..BLOCKS).rev().flat_map(|block| {
                (file * PIECE_LEN..(file + 1) * PIECE_LEN).map(move |at| byte(block, at))
            });
            assert!(found.iter().copied().eq(pieces), "{file}");
        }
    }
}
