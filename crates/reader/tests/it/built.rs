//! Images made here from owned metadata, for what no vector has: very many chunks, very deep trees, odd times,
//! and values that only the quick check lets through.

use std::iter::repeat_n;
use std::sync::Arc;
use std::time::{Duration, Instant};

use durin_codec::Spec;
use durin_format::metadata::{
    Chunk, DirEntry, Directory, FsOptions, InodeData, InodeSizeCache, Metadata,
};
use durin_format::section::{CompressionType, SectionType, encode_header};
use durin_format::{BlockIndex, ErrorKind, InodeNum, Result};
use durin_reader::perfmon::{Component, Operation, Perfmon};
use durin_reader::{CheckOptions, Image, ImageOptions, Time};
use durin_testkit::random::Random;

use crate::common::{checked, open_bytes, quick};

/// The root, one directory `d` with a file `f`, and a file `g` in the root.
///
/// Inodes: 0 the root, 1 `d`, 2 `d/f`, 3 `g`. Contents come from one stored block with `block_len` bytes.
struct Made {
    metadata: Metadata,
    block: Vec<u8>,
}

const DIRECTORY: u32 = 0o040_755;
const REGULAR: u32 = 0o100_644;

fn made() -> Made {
    let inode = |mode_index| InodeData {
        mode_index,
        ..InodeData::default()
    };
    let chunk = |offset, size| Chunk {
        block: 0,
        offset,
        size,
    };
    let metadata = Metadata {
        modes: vec![DIRECTORY, REGULAR],
        uids: vec![0],
        gids: vec![0],
        inodes: [inode(0), inode(0), inode(1), inode(1)]
            .into_iter()
            .collect(),
        names: ["d", "f", "g"]
            .map(|name| name.as_bytes().to_vec())
            .to_vec(),
        directories: vec![directory(0, 1), directory(0, 3), directory(0, 4)],
        dir_entries: Some(vec![entry(0, 0), entry(0, 1), entry(2, 3), entry(1, 2)]),
        chunks: vec![chunk(0, 10), chunk(20, 5), chunk(5, 100)],
        chunk_table: vec![0, 2, 3],
        block_size: 1 << 20,
        options: Some(FsOptions::default()),
        ..Metadata::default()
    };
    let block = (0..100_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    Made { metadata, block }
}

fn directory(parent_entry: u32, first_entry: u32) -> Directory {
    Directory {
        parent_entry,
        first_entry,
        self_entry: 0,
    }
}

fn entry(name_index: u32, inode_num: u32) -> DirEntry {
    DirEntry {
        name_index,
        inode_num,
    }
}

impl Made {
    fn bytes(&self) -> Vec<u8> {
        self.bytes_of_block(CompressionType::None, &self.block)
    }

    /// The same with another block.
    fn bytes_of_block(&self, compression: CompressionType, payload: &[u8]) -> Vec<u8> {
        self.bytes_of_blocks(&[(compression, payload)])
    }

    /// The same with other blocks.
    fn bytes_of_blocks(&self, blocks: &[(CompressionType, &[u8])]) -> Vec<u8> {
        let none = CompressionType::None;
        let frozen = self.metadata.freeze().unwrap();
        let blocks = blocks
            .iter()
            .map(|(compression, payload)| (SectionType::Block, *compression, *payload));
        let sections = blocks.chain([
            (SectionType::MetadataV2Schema, none, &frozen.schema[..]),
            (SectionType::MetadataV2, none, &frozen.data[..]),
        ]);
        let mut bytes = Vec::new();
        for (number, (kind, compression, payload)) in (0..).zip(sections) {
            bytes.extend(encode_header(number, kind, compression, payload));
            bytes.extend_from_slice(payload);
        }
        bytes
    }

    /// The same with a further section, whose checksums are right.
    fn bytes_with(&self, kind: SectionType, payload: &[u8]) -> Vec<u8> {
        let mut bytes = self.bytes();
        bytes.extend(encode_header(3, kind, CompressionType::None, payload));
        bytes.extend_from_slice(payload);
        bytes
    }

    fn open(&self, options: &ImageOptions) -> Result<Image> {
        open_bytes(self.bytes(), options)
    }

    /// What the full check says.
    fn refusal(&self) -> String {
        self.open(&checked()).unwrap_err().to_string()
    }
}

/// Changes the made image and returns it as the quick check lets it through, and what the full check says.
fn changed(change: impl FnOnce(&mut Metadata)) -> (Image, String) {
    let mut made = made();
    change(&mut made.metadata);
    (made.open(&quick()).unwrap(), made.refusal())
}

#[test]
fn a_history_that_is_none_is_a_warning() {
    let bytes = made().bytes_with(SectionType::History, b"no Compact struct");
    let image = open_bytes(bytes, &checked()).unwrap();
    assert_eq!(image.history().unwrap_err().kind(), ErrorKind::Corrupt);
    let report = image.check(&CheckOptions::default(), &|_, _| ());
    assert!(report.is_ok(), "{:?}", report.errors);
    let [warning] = &report.warnings[..] else {
        panic!("{:?}", report.warnings);
    };
    assert!(
        warning.starts_with("history: section 3 (HISTORY)"),
        "{warning}"
    );
}

#[test]
fn the_made_image_is_good() {
    let made = made();
    let image = made.open(&checked()).unwrap();
    let file = image.resolve(b"d/f").unwrap().unwrap();
    let mut content = vec![0; 50];
    let len = image.read_at(file.inode, 0, &mut content).unwrap();
    assert_eq!(
        content[..len],
        [&made.block[..10], &made.block[20..25]].concat()
    );
}

#[test]
fn a_file_of_very_many_chunks_is_read_from_front_to_back_in_time() {
    const COUNT: u32 = 300_000;
    let mut made = made();
    let chunks = (0..COUNT).map(|at| Chunk {
        block: 0,
        offset: at.wrapping_mul(977) % 90_000,
        size: at % 7 + 1,
    });
    made.metadata.chunks = chunks.collect();
    made.metadata.chunk_table = vec![0, COUNT, COUNT];
    let expected: Vec<u8> = made
        .metadata
        .chunks
        .iter()
        .flat_map(|chunk| &made.block[chunk.offset as usize..][..chunk.size as usize])
        .copied()
        .collect();
    let image = made.open(&checked()).unwrap();
    let file = InodeNum(2);
    let begun = Instant::now();
    assert_eq!(image.inode_attr(file).unwrap().size, expected.len() as u64);
    let mut content = Vec::new();
    let mut buf = [0; 1_000];
    loop {
        let len = image.read_at(file, content.len() as u64, &mut buf).unwrap();
        if len == 0 {
            break;
        }
        content.extend_from_slice(&buf[..len]);
    }
    assert!(content == expected);
    // Adding up all lengths for each read would be 1,200 times 300,000 steps: minutes in a debug build.
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    for offset in (0..expected.len()).step_by(90_001) {
        image.read_at(file, offset as u64, &mut buf[..1]).unwrap();
        assert_eq!(buf[0], expected[offset]);
    }
}

#[test]
fn a_very_deep_tree_needs_no_stack() {
    const DEPTH: u32 = 20_000;
    let mut made = made();
    let metadata = &mut made.metadata;
    metadata.inodes = repeat_n(InodeData::default(), DEPTH as usize + 1).collect();
    metadata.names = vec![b"d".to_vec()];
    metadata.dir_entries = Some((0..=DEPTH).map(|dir| entry(0, dir)).collect());
    let parents = (0..=DEPTH).map(|dir| directory(dir.saturating_sub(1), dir + 1));
    metadata.directories = parents.chain([directory(0, DEPTH + 1)]).collect();
    metadata.chunks = Vec::new();
    metadata.chunk_table = vec![0];
    let image = made.open(&checked()).unwrap();
    let deepest = image
        .walk()
        .map(|entry| entry.unwrap().path.len())
        .max()
        .unwrap();
    assert_eq!(deepest, 2 * DEPTH as usize - 1);
    let path = b"d/".repeat(DEPTH as usize);
    let found = image.resolve(&path).unwrap().unwrap();
    assert_eq!(found.inode, InodeNum(DEPTH));
    assert_eq!(image.parent(found.inode).unwrap(), InodeNum(DEPTH - 1));
}

#[test]
fn a_circle_of_directories_ends_a_walk() {
    let (image, refusal) = changed(|metadata| {
        metadata.dir_entries.as_mut().unwrap()[3].inode_num = 1;
        metadata.names[1] = b"x".to_vec();
    });
    assert!(refusal.contains("has a name already"), "{refusal}");
    let (good, bad): (Vec<_>, Vec<_>) = image.walk().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (3, 1));
}

#[test]
fn directories_that_share_entries_end_a_walk() {
    // Every directory says that it has all entries.
    const COUNT: u32 = 2_000;
    let mut made = made();
    let metadata = &mut made.metadata;
    metadata.inodes = repeat_n(InodeData::default(), COUNT as usize).collect();
    metadata.names = (0..COUNT)
        .map(|name| name.to_string().into_bytes())
        .collect();
    metadata.dir_entries = Some((0..COUNT).map(|dir| entry(dir, dir)).collect());
    let starts = (0..COUNT).map(|dir| directory(0, if dir % 2 == 0 { 1 } else { COUNT }));
    metadata.directories = starts.chain([directory(0, COUNT)]).collect();
    metadata.chunks = Vec::new();
    metadata.chunk_table = vec![0];
    let image = made.open(&quick()).unwrap();
    assert!(image.walk().count() <= COUNT as usize + 1);
    assert!(
        made.refusal().contains("out of range"),
        "{}",
        made.refusal()
    );
}

#[test]
fn names_that_lead_elsewhere_are_never_handed_out() {
    for name in [&b".."[..], b".", b"", b"a/b", b"a\0b", b"/etc"] {
        let (image, refusal) = changed(|metadata| metadata.names[0] = name.to_vec());
        assert!(
            refusal.contains("name") || refusal.contains("strings"),
            "{refusal}"
        );
        let root = image.root().inode;
        let error = image.dir_entry(root, 0, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(image.dir(root).unwrap().filter(Result::is_err).count(), 1);
        assert_eq!(image.lookup(root, name).unwrap(), None);
    }
}

#[test]
fn chunks_of_no_bytes_are_skipped() {
    let (image, refusal) = changed(|metadata| metadata.chunks[0].size = 0);
    assert!(refusal.contains("chunk 0 is empty"), "{refusal}");
    let mut buf = [0; 20];
    assert_eq!(image.read_at(InodeNum(2), 0, &mut buf).unwrap(), 5);
    assert_eq!(buf[..5], made().block[20..25]);
}

#[test]
fn chunks_beyond_the_end_of_their_block_are_errors() {
    let mut made = made();
    made.metadata.chunks[1].offset = 99_999;
    // The block size allows it, so that only the block itself can tell.
    let image = made.open(&checked()).unwrap();
    let mut buf = [0; 20];
    assert_eq!(image.read_at(InodeNum(2), 0, &mut buf[..11]).unwrap(), 11);
    let error = image.read_at(InodeNum(2), 0, &mut buf).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(
        error.to_string(),
        "section 0 (BLOCK) at offset 0: block 0: too short: expected 100004 bytes or more, found 100000"
    );
}

#[test]
fn chunks_of_blocks_that_do_not_exist_are_errors() {
    let (image, refusal) = changed(|metadata| metadata.chunks[1].block = 7);
    assert!(refusal.contains("block 7"), "{refusal}");
    let error = image.read_at(InodeNum(2), 10, &mut [0; 20]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(image.read_at(InodeNum(3), 0, &mut [0; 20]).unwrap(), 20);
}

#[test]
fn overlapping_contents_do_not_make_a_walk_quadratic() {
    let (image, refusal) = changed(|metadata| metadata.chunk_table = vec![3, 0, 3]);
    assert!(refusal.contains("chunk_table"), "{refusal}");
    assert_eq!(image.walk().count(), 1);
    assert!(image.walk().next().unwrap().is_err());
    assert!(image.files_in_data_order().is_err());
}

#[test]
fn wrong_parents_and_links_are_found() {
    let (_, refusal) = changed(|metadata| metadata.directories[1].parent_entry = 2);
    assert!(
        refusal.contains("expected parent_entry 0, found 2"),
        "{refusal}"
    );
    let (_, refusal) = changed(|metadata| {
        metadata.options.as_mut().unwrap().inodes_have_nlink = true;
        let mut inodes: Vec<InodeData> = metadata.inodes.iter().collect();
        inodes[3].nlink_minus_one = 2;
        metadata.inodes = inodes.into_iter().collect();
    });
    assert!(refusal.contains("expected 1 links, found 3"), "{refusal}");
    let (_, refusal) = changed(|metadata| {
        metadata.reg_file_size_cache = Some(InodeSizeCache {
            size_lookup: [(0, 16)].into(),
            ..InodeSizeCache::default()
        });
    });
    assert!(refusal.contains("has 15 bytes, found 16"), "{refusal}");
}

#[test]
fn names_out_of_order_are_found() {
    let (_, refusal) = changed(|metadata| metadata.names.swap(0, 2));
    assert!(
        refusal.contains("is not in order or occurs twice"),
        "{refusal}"
    );
    let (_, refusal) = changed(|metadata| metadata.names[2] = b"d".to_vec());
    assert!(
        refusal.contains("is not in order or occurs twice"),
        "{refusal}"
    );
}

#[test]
fn times_before_1970_and_after_2106_are_right() {
    let check = |seconds: i64, nanoseconds: u32| {
        let mut made = made();
        let metadata = &mut made.metadata;
        metadata.timestamp_base = seconds.wrapping_sub(5).cast_unsigned();
        metadata
            .options
            .as_mut()
            .unwrap()
            .subsecond_resolution_nsec_multiplier = Some(1);
        let at_the_time = |inode| InodeData {
            mtime_offset: 5,
            mtime_subsec: nanoseconds.into(),
            ..inode
        };
        metadata.inodes = metadata.inodes.iter().map(at_the_time).collect();
        let image = made.open(&checked()).unwrap();
        let attr = image.inode_attr(InodeNum(2)).unwrap();
        let expected = Time {
            sec: seconds,
            nsec: nanoseconds,
        };
        assert_eq!(attr.mtime, expected);
    };
    check(-1, 999_999_999);
    check(-10_000_000_000, 0);
    check(1 << 34, 1);
    check(3, 0);
}

#[test]
fn resolutions_that_make_no_sense_are_refused() {
    let check = |change: fn(&mut FsOptions)| {
        let mut made = made();
        change(made.metadata.options.as_mut().unwrap());
        made.open(&quick()).unwrap_err();
    };
    check(|options| options.time_resolution_sec = Some(0));
    check(|options| options.subsecond_resolution_nsec_multiplier = Some(0));
    check(|options| options.subsecond_resolution_nsec_multiplier = Some(1_000_000_000));
}

#[test]
fn block_sizes_that_make_no_sense_are_refused() {
    for block_size in [0, 3, 1_000_000, u32::MAX] {
        let mut made = made();
        made.metadata.block_size = block_size;
        let error = made.open(&quick()).unwrap_err().to_string();
        assert!(error.contains("block size"), "{error}");
    }
}

#[test]
fn who_wants_what_is_decoded_waits_for_a_step_and_not_for_the_rest() {
    const LEN: u32 = 24 << 20;
    // Several steps of decoding: whoever is just about to ask may miss one.
    const STEPS_LEN: u64 = 2 << 20;
    let mut made = made();
    made.metadata.block_size = 1 << 25;
    made.block = Random::new(1).text(LEN as usize);
    let spec = Spec::parse("lzma:level=0").unwrap();
    let mut payload = Vec::new();
    let mut encoder = spec.encoder(LEN as usize, None).unwrap();
    encoder.encode(&made.block, &mut payload).unwrap();
    let bytes = made.bytes_of_block(CompressionType::Lzma, &payload);
    let image = open_bytes(bytes, &quick()).unwrap();
    let (cache, block) = (image.cache(), BlockIndex(0));
    let read = |at| {
        let mut buf = [0; 100];
        cache.read(block, at, &mut buf).unwrap();
        let at = at as usize;
        assert_eq!(buf, made.block[at..at + buf.len()]);
    };
    read(0);
    let decoded = || cache.stats().decoded_bytes;
    let mut meanwhile = Vec::new();
    std::thread::scope(|scope| {
        let all = scope.spawn(|| read(LEN - 100));
        while !all.is_finished() {
            let before = decoded();
            read(50);
            meanwhile.push(decoded() - before);
        }
    });
    meanwhile.retain(|len| *len > 0);
    meanwhile.sort_unstable();
    let usual = meanwhile.get(meanwhile.len() / 2);
    assert!(usual.is_some_and(|len| *len <= STEPS_LEN), "{meanwhile:?}");
}

#[test]
fn blocks_in_a_row_are_decoded_ahead_of_who_reads_them_to_the_end() {
    const LEN: usize = 1 << 20;
    let content = Random::new(2).text(LEN);
    let mut payload = Vec::new();
    let spec = Spec::parse("zstd:level=1").unwrap();
    let mut encoder = spec.encoder(LEN, None).unwrap();
    encoder.encode(&content, &mut payload).unwrap();
    let bytes = made().bytes_of_blocks(&[(CompressionType::Zstd, payload.as_slice()); 5]);
    // Blocks that were decoded ahead of somebody who reads so far in blocks 1 and 2.
    let ahead = |end: usize| {
        let perfmon = Arc::new(Perfmon::new(&[Component::BlockCache], false));
        let mut options = quick();
        options.cache.workers = 1;
        options.cache.perfmon = Some(Arc::clone(&perfmon));
        let image = open_bytes(bytes.clone(), &options).unwrap();
        for block in [1, 2] {
            let mut read = vec![0; end];
            image.cache().read(BlockIndex(block), 0, &mut read).unwrap();
            assert!(read == content[..end]);
        }
        // Waits for the thread.
        drop(image);
        let figures = perfmon.figures(Operation::BlockDecodeAhead);
        figures.map_or(0, |figures| figures.count)
    };
    assert_eq!(ahead(LEN), 1);
    assert_eq!(ahead(1), 0);
}
