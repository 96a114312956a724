//! Dividing the memory limit.
//!
//! In: the limit that the user gave, or what the machine allows, and what is known once the scan and the ordering are
//! done. Out: a [`Budget`] that says how many threads compress, how many blocks may be on their way, how large the index
//! of the segmenter may become and how much stored data it may keep at hand.
//!
//! Without a limit of the user, the index is made for [`USUAL_BYTES`] and [`USUAL_HISTORY_BYTES`] are kept to compare with,
//! whatever the machine has: what they find is the same on all machines, and keeping more saves some reading only. Encoders,
//! of which there is one for each processor, and tables that they share, may take what the machine allows.
//!
//! Tables of the tree and of the metadata take what they take; of the rest one encoder and its blocks come first, then
//! the index, up to a quarter, then further encoders (`compressors`), then blocks that wait, then stored data. A limit
//! that is too low never fails a build by itself: it then goes on with one thread and the least of everything, and says
//! so.
//! The bytes of an image may depend on [`Budget::index_entries_max`] and [`slices_max`] only: what follows from them comes
//! in powers of two and depends on the tree, the options and the limit, and on nothing of the machine; all else here is a
//! matter of speed.

mod cgroup;
mod compressors;
mod facts;
mod machine;
mod usage;

use durin_codec::Spec;

use crate::context::Context;
use crate::order::ORDER_BYTES_PER_SLICE_MAX;
use crate::read::{RUN_LEN, RUNS_PER_READER};
use crate::sketch::SliceSketch;

use compressors::THREAD_BYTES;
pub use compressors::{Compressors, Role};
pub(crate) use facts::Facts;
pub(crate) use machine::automatic_limit;
pub use usage::peak_bytes;

/// The program itself: code, stacks, queues, what the allocator keeps for itself.
const PROGRAM_BYTES: u64 = 16 << 20;
/// What a build takes if nobody says otherwise and encoders are of usual size.
const USUAL_BYTES: u64 = 1 << 30;
/// Larger encoders and blocks take what exceeds this beyond the usual: those of lzma at level 9, above all.
const USUAL_ENCODER_BYTES: u64 = 256 << 20;
const USUAL_BLOCK_BYTES: u64 = 64 << 20;
/// What is kept to compare with: most repetitions are near, as like is next to like. What is farther is compared by hashes and,
/// at its ends, with the files themselves, which are in the system's cache as a rule.
const USUAL_HISTORY_BYTES: u64 = 64 << 20;
/// The block being compressed, the one being filled, and the one that waits for its turn.
const BLOCKS_LEAST: u64 = 3;
/// What an entry of the segmenter's index takes: its 8 bytes, and half as much again while the table doubles.
pub(crate) const INDEX_ENTRY_BYTES: u64 = 12;
/// The block that is filled and the one that is written.
const BLOCKS_AT_ENDS: usize = 2;
/// The smallest index: a mebibyte would be no relief to anybody.
const INDEX_ENTRIES_MIN: u64 = 1 << 16;
/// The share of what is left for the index; the rest serves speed, and blocks are larger than any index needs to be.
const INDEX_SHARE: u64 = 4;
/// The segmenter wants a hash of 16 bytes for each 16 KiB of data that is no longer in memory.
const HASHED_BYTES_PER_DATA_LOG2: u32 = 10;
/// The share of the limit for these hashes, beyond which each stands for more data.
const HASH_SHARE: u64 = 32;
/// The share of the limit for sketches of slices and what ordering them takes, beyond which slices are longer.
const SLICE_SHARE: u64 = 8;
/// How the limit is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Threads that compress.
    pub(crate) compressors: Compressors,
    /// Blocks between the moment they are begun and the moment they are written.
    pub(crate) blocks_in_flight: usize,
    /// The most entries of the segmenter's index, a power of two.
    pub(crate) index_entries_max: usize,
    /// Bytes of blocks that may be kept beyond the moment they are written, to compare with.
    pub(crate) history_bytes: u64,
    /// Bytes of hashes of blocks that are not kept.
    pub(crate) hash_bytes: u64,
    /// Runs that may be in memory.
    pub(crate) read_buffers: usize,
    /// The most bytes the process may have.
    pub(crate) limit: u64,
    /// The most bytes it will have.
    pub(crate) estimate: u64,
}

impl Budget {
    /// Divides the limit, and warns if it is too low.
    pub(crate) fn of(context: Context<'_>, facts: &Facts) -> Self {
        let options = context.options;
        let limit = limit(context);
        let request = Request {
            is_usual: options.memory_limit.is_none(),
            workers: options.workers.max(1),
            readers: options.scanner_workers.max(1) as u64,
        };
        let mut budget = divide(limit, facts, request);
        // What looking at files took is no guess any more.
        budget.estimate = budget.estimate.max(peak_bytes());
        let [estimate, limit] = [budget.estimate, budget.limit].map(display);
        if budget.estimate > budget.limit {
            context.events.warn(&format!(
                "this build takes an estimated {estimate} of memory, more than the limit of {limit}, even with one \
                 thread that compresses; smaller blocks or a lower level take less"
            ));
        } else if budget.compressors.threads < options.workers && facts.data_len > facts.block_len {
            context.events.info(&format!(
                "the memory limit of {limit} allows {} of {} threads to compress",
                budget.compressors.threads, options.workers
            ));
        }
        context.events.info(&format!(
            "memory: an estimated {estimate} of at most {limit}, {} for the tree, {} threads that compress with {} each \
             and {} together, {} blocks on their way, an index of {}",
            display(facts.table_bytes),
            budget.compressors.threads,
            display(facts.encoder.own),
            display(facts.encoder.shared * budget.compressors.tables as u64),
            budget.blocks_in_flight,
            display(budget.index_entries_max as u64 * INDEX_ENTRY_BYTES),
        ));
        budget
    }

    /// Returns how many blocks may wait while others are filled, compressed and written.
    pub(crate) fn blocks_waiting(&self) -> usize {
        let busy = BLOCKS_AT_ENDS + self.compressors.workers;
        self.blocks_in_flight.saturating_sub(busy)
    }
}

/// Returns the memory limit, in bytes, for users who give none: by the machine and what this process may have of it.
#[must_use]
pub fn automatic_memory_limit() -> u64 {
    machine::automatic_limit()
}

/// Returns what a build of a small tree takes that compresses blocks of `2^block_size_bits` bytes one at a time.
pub(crate) fn least(spec: &Spec, block_size_bits: u32) -> u64 {
    let block_len = 1_u64 << block_size_bits.min(62);
    PROGRAM_BYTES
        + spec.encoder_bytes(usize::try_from(block_len).unwrap_or(usize::MAX))
        + BLOCKS_LEAST * block_len
        + INDEX_ENTRIES_MIN * INDEX_ENTRY_BYTES
        + THREAD_BYTES
}

/// Returns how many slices of large contents may be ordered. As all that decides about the bytes of an image, that does not
/// depend on the machine.
pub(crate) fn slices_max(memory_limit: Option<u64>) -> u64 {
    let slice_bytes = ORDER_BYTES_PER_SLICE_MAX + size_of::<SliceSketch>() as u64;
    memory_limit.unwrap_or(USUAL_BYTES) / SLICE_SHARE / slice_bytes
}

/// Returns the limit that the user gave or that follows from the machine.
pub(crate) fn limit(context: Context<'_>) -> u64 {
    context.options.memory_limit.unwrap_or_else(automatic_limit)
}

/// How many threads the user wants.
#[derive(Clone, Copy, Debug)]
struct Request {
    workers: usize,
    readers: u64,
    /// Whether the limit is that of the machine only.
    is_usual: bool,
}

fn divide(limit: u64, facts: &Facts, request: Request) -> Budget {
    let comfort = if request.is_usual {
        let encoder = facts.encoder.own + facts.encoder.shared;
        let encoder = encoder.saturating_sub(USUAL_ENCODER_BYTES);
        let blocks = BLOCKS_LEAST * facts.block_len.saturating_sub(USUAL_BLOCK_BYTES);
        limit.min(USUAL_BYTES + encoder + blocks)
    } else {
        limit
    };
    let is_searched = facts.index_entries_wanted > 0;
    let hash_bytes = if is_searched {
        (facts.data_len >> HASHED_BYTES_PER_DATA_LOG2).min(comfort / HASH_SHARE)
    } else {
        0
    };
    let tables = PROGRAM_BYTES + facts.table_bytes + hash_bytes;
    // Blocks on their way are no more than all data. What is kept of others is beside them: those that are compressed
    // already are on their way, too.
    let least_blocks = facts.data_len.min(BLOCKS_LEAST * facts.block_len);
    let further_block = facts.block_len.min(facts.data_len - least_blocks);
    let worker_bytes = facts.encoder.own + facts.encoder.shared + THREAD_BYTES;
    let least = tables + worker_bytes + least_blocks;
    // Nothing that depends on the number of threads may come before this.
    let index_entries = index_entries(comfort.saturating_sub(least), facts.index_entries_wanted);
    let runs = request.readers * RUNS_PER_READER as u64;
    let read_bytes = runs * RUN_LEN as u64 + request.readers * THREAD_BYTES;
    let mut used = least + index_entries * INDEX_ENTRY_BYTES + read_bytes;
    let mut left = limit.saturating_sub(used);
    let mut take = |wanted: u64, unit: u64| {
        let taken = wanted.min(left / unit.max(1));
        left -= taken * unit;
        used += taken * unit;
        taken
    };

    let blocks = facts.blocks.max(1);
    // Encoders are large: none is made that would have nothing to do.
    let compressors = Compressors::of(
        facts.encoder,
        &facts.own,
        request.workers,
        blocks,
        facts.block_len,
        |bytes, role| {
            let block = if role == Role::Worker {
                further_block
            } else {
                0
            };
            take(1, bytes + block) == 1
        },
    );
    let waiting = take(compressors.waiting.min(blocks), further_block);
    let history_bytes = if is_searched {
        let kept_max = if request.is_usual {
            USUAL_HISTORY_BYTES
        } else {
            u64::MAX
        };
        let left = comfort.saturating_sub(used);
        facts.data_len.min(left).min(kept_max)
    } else {
        0
    };
    used += history_bytes;
    let before_or_after = facts.ordering_bytes.max(facts.described_bytes);
    let at_the_end = (tables + before_or_after).max(PROGRAM_BYTES + facts.frozen_bytes);
    Budget {
        compressors,
        blocks_in_flight: BLOCKS_AT_ENDS + compressors.workers + saturating(waiting),
        index_entries_max: saturating(index_entries),
        history_bytes,
        hash_bytes,
        read_buffers: saturating(runs),
        limit,
        estimate: used.max(at_the_end),
    }
}

/// Returns the largest power of two that is wanted and has room.
fn index_entries(left: u64, wanted: u64) -> u64 {
    if wanted == 0 {
        return 0;
    }
    let room = (left / INDEX_SHARE / INDEX_ENTRY_BYTES).max(INDEX_ENTRIES_MIN);
    let wanted = wanted.max(INDEX_ENTRIES_MIN).next_power_of_two();
    wanted.min(1 << room.ilog2())
}

fn saturating(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Shows bytes in mebibytes.
fn display(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use durin_codec::EncoderMemory;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn facts() -> Facts {
        Facts {
            table_bytes: 50 * MIB,
            ordering_bytes: 10 * MIB,
            described_bytes: 20 * MIB,
            frozen_bytes: 60 * MIB,
            data_len: 4 << 30,
            block_len: 16 * MIB,
            blocks: 256,
            own: vec![100 * MIB; 64],
            encoder: EncoderMemory {
                own: 100 * MIB,
                ..EncoderMemory::default()
            },
            index_entries_wanted: 1 << 22,
        }
    }

    fn budget(limit: u64, facts: &Facts, workers: usize) -> Budget {
        let request = Request {
            workers,
            readers: workers as u64,
            is_usual: false,
        };
        divide(limit, facts, request)
    }

    #[test]
    fn stays_within_the_limit_and_uses_it() {
        for limit in [256, 512, 1024, 2048, 8192] {
            for workers in [1, 2, 4, 8, 64] {
                let budget = budget(limit * MIB, &facts(), workers);
                let allowed = budget.compressors.workers;
                assert!(budget.estimate <= limit * MIB || allowed == 1);
                assert!((1..=workers).contains(&allowed));
                assert!(budget.blocks_in_flight > allowed);
            }
        }
        let workers = |limit| budget(limit, &facts(), 8).compressors.workers;
        assert_eq!([512 * MIB, 64 << 30].map(workers), [2, 8]);
        assert_eq!(budget(64 << 30, &facts(), 8).history_bytes, 4 << 30);
    }

    #[test]
    fn the_machine_decides_on_encoders_only() {
        let usual = |limit: u64, facts: &Facts, workers: usize| {
            let request = Request {
                workers,
                readers: workers as u64,
                is_usual: true,
            };
            divide(limit, facts, request)
        };
        let much = Facts {
            data_len: 100 << 30,
            index_entries_wanted: 1 << 32,
            ..facts()
        };
        let budget = usual(64 << 30, &much, 2);
        assert!(budget.estimate <= USUAL_BYTES, "{}", budget.estimate);
        assert!(budget.hash_bytes <= USUAL_BYTES / HASH_SHARE);
        let many = usual(64 << 30, &much, 32);
        assert_eq!((many.compressors.workers, many.history_bytes), (32, 0));
        assert_eq!(many.index_entries_max, budget.index_entries_max);
        assert_eq!(usual(512 << 20, &much, 32).compressors.workers, 2);
        let large = Facts {
            encoder: EncoderMemory {
                own: 100 << 20,
                shared: 600 << 20,
                helper: 50 << 20,
            },
            block_len: 64 << 20,
            ..much
        };
        let large = usual(64 << 30, &large, 1);
        assert!(large.index_entries_max >= 1 << 23 && large.estimate < 3 << 29);
        // Of large blocks few wait, and what is kept to compare with is no more because there is room.
        assert_eq!(large.blocks_in_flight, 4);
        let roomy = usual(64 << 30, &facts(), 1);
        assert_eq!(roomy.history_bytes, USUAL_HISTORY_BYTES);
    }

    #[test]
    fn too_low_a_limit_leaves_the_least_of_everything() {
        let budget = budget(1, &facts(), 8);
        assert_eq!(
            (budget.compressors.workers, budget.blocks_in_flight),
            (1, 3)
        );
        assert_eq!(budget.index_entries_max as u64, INDEX_ENTRIES_MIN);
        assert_eq!(budget.history_bytes, 0);
        assert!(budget.estimate > 200 * MIB);
    }

    #[test]
    fn index_does_not_depend_on_threads() {
        for limit in [1, 200 * MIB, 300 * MIB, 512 * MIB, 1 << 40] {
            let entries = |workers| budget(limit, &facts(), workers).index_entries_max;
            assert_eq!(entries(1), entries(64), "{limit}");
            assert!(entries(1).is_power_of_two());
        }
        assert_eq!(budget(1 << 40, &facts(), 1).index_entries_max, 1 << 22);
        assert_eq!(budget(1 << 40, &Facts::default(), 1).index_entries_max, 0);
    }

    #[test]
    fn little_data_needs_little() {
        let little = Facts {
            data_len: 1000,
            block_len: 1000,
            blocks: 1,
            index_entries_wanted: 10,
            ..facts()
        };
        let budget = budget(64 << 30, &little, 16);
        assert_eq!(
            (budget.compressors.workers, budget.history_bytes),
            (1, 1000)
        );
        assert!(budget.blocks_in_flight <= 4);
    }

    #[test]
    fn blocks_are_no_more_than_all_data() {
        let one_large_block = Facts {
            data_len: 60 * MIB,
            block_len: 58 * MIB,
            blocks: 2,
            encoder: EncoderMemory {
                own: 180 * MIB,
                ..EncoderMemory::default()
            },
            own: vec![180 * MIB, 6 * MIB],
            table_bytes: MIB,
            index_entries_wanted: 1 << 16,
            ..Facts::default()
        };
        let budget = budget(64 << 30, &one_large_block, 2);
        assert_eq!(budget.compressors.workers, 2);
        assert_eq!(budget.history_bytes, 60 * MIB);
        let runs = budget.read_buffers * RUN_LEN;
        let known = PROGRAM_BYTES + MIB + (60 << 10) + (180 + 6 + 2 * 60) * MIB + runs as u64;
        let index = INDEX_ENTRIES_MIN * INDEX_ENTRY_BYTES;
        assert_eq!(budget.estimate, known + index + 4 * THREAD_BYTES);
    }
}
