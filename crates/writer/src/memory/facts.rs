//! What a build will need, from what is known once it is ordered.

use durin_codec::EncoderMemory;

use crate::category::Stream;
use crate::read::Source;
use crate::tree::{bytes_of, usize_of};

/// What describing an entry takes beside the tables of the tree, at most: its place by name, its string, its inode.
const DESCRIBED_BYTES_PER_ENTRY: u64 = 120;
/// What an entry takes in the finished metadata, with its chunk, and once more as it is laid out.
const FROZEN_BYTES_PER_ENTRY: u64 = 24;
/// What the segmenter keeps for each content: a range, a chunk, and where it came from.
const SEGMENTED_BYTES_PER_CONTENT: u64 = 48;

/// What the division depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Bytes of all tables that stay in memory while blocks are written.
    pub(crate) table_bytes: u64,
    /// Bytes that the order took beside the tables, before there were blocks and encoders.
    pub(crate) ordering_bytes: u64,
    /// Bytes that describing the tree takes in the end, beside the tables, when blocks and encoders are gone.
    pub(crate) described_bytes: u64,
    /// Bytes of the described tree and of what compresses it, when the tables are gone too.
    pub(crate) frozen_bytes: u64,
    /// Bytes of all contents, without holes.
    pub(crate) data_len: u64,
    /// Bytes of the largest block.
    pub(crate) block_len: u64,
    /// How many blocks there are at most: each stream has its own.
    pub(crate) blocks: u64,
    /// What compressing takes, with its output.
    pub(crate) encoder: EncoderMemory,
    /// What encoders of the largest blocks have for themselves, falling, one for each block and each thread that is wanted.
    pub(crate) own: Vec<u64>,
    /// Entries that an index of full density would have for this much data.
    pub(crate) index_entries_wanted: u64,
}

impl Facts {
    pub(crate) fn of(source: &Source<'_>, ordering_bytes: u64) -> Self {
        let options = source.context.options;
        let fragments = |stream: &Stream| bytes_of(&stream.fragments);
        let fragment_bytes: u64 = source.streams.iter().map(fragments).sum();
        let entries = source.tree.entries.len() as u64;
        let frozen = FROZEN_BYTES_PER_ENTRY * entries;
        let packing = &options.metadata_compression;
        let workers = options.workers.max(1);
        let mut encoder = EncoderMemory::default();
        let (mut own, mut data_len, mut blocks, mut block_len) = (Vec::new(), 0, 0, 0);
        for stream in source.streams {
            let coding = source.coding(stream);
            let specs = std::iter::once(&coding.spec).chain(&coding.general);
            let needed = specs.map(|spec| spec.encoder_memory(coding.block_len));
            let needed = needed.fold(EncoderMemory::default(), EncoderMemory::max);
            let len = coding.block_len as u64;
            let stream_len = source.stream_data_len(stream);
            let count = stream_len.div_ceil(len.max(1));
            encoder = encoder.max(needed);
            data_len += stream_len;
            blocks += count;
            block_len = len.max(block_len);
            own.extend(std::iter::repeat_n(
                needed.own,
                usize_of(count).min(workers),
            ));
        }
        own.sort_unstable_by(|a, b| b.cmp(a));
        own.truncate(workers);
        Self {
            table_bytes: source.tree.bytes()
                + source.files.bytes()
                + source.contents.bytes()
                + fragment_bytes
                + SEGMENTED_BYTES_PER_CONTENT * u64::from(source.contents.len()),
            ordering_bytes,
            described_bytes: DESCRIBED_BYTES_PER_ENTRY * entries,
            frozen_bytes: frozen * 2 + packing.encoder_bytes(usize_of(frozen)),
            data_len,
            block_len,
            blocks,
            encoder,
            own,
            index_entries_wanted: source.index_entries(),
        }
    }
}
