//! Dividing the memory limit among those who work at blocks.
//!
//! Nothing here changes a byte of the image. A limit that is too low never fails a rewriting by itself: it then goes on
//! with one thread of each kind and the least of everything, and says so.

use durin_codec::EncoderMemory;
use durin_format::Result;
use durin_format::events::Events;
use durin_reader::Image;
use durin_writer::{Compressors, Role, automatic_memory_limit};

use crate::options::RewriteOptions;
use crate::plan::Plan;

/// The program itself: code, stacks, queues, what the allocator keeps for itself.
const PROGRAM_BYTES: u64 = 16 << 20;
/// What a thread costs beyond what is counted elsewhere.
const THREAD_BYTES: u64 = 512 << 10;
/// What a directory entry takes while the tree is described anew.
const REBUILD_ENTRY_BYTES: u64 = 160;
/// What a chunk takes while the tree is described anew.
const REBUILD_CHUNK_BYTES: u64 = 24;

/// How the limit is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Threads that compress.
    pub(crate) compressors: Compressors,
    /// Threads that read and decode.
    pub(crate) fetchers: usize,
    /// Blocks between the moment they are to be read and the moment they are cut or passed on.
    pub(crate) fetched: usize,
    /// Blocks between the moment they are begun and the moment they are written.
    pub(crate) in_flight: usize,
    /// The most bytes the process may have.
    pub(crate) limit: u64,
    /// The most bytes it will have.
    pub(crate) estimate: u64,
}

/// What is known of the work.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    /// Bytes that are held all the time, or at the end.
    table_bytes: u64,
    /// Bytes of a block that is being read and decoded.
    fetch_bytes: u64,
    /// Bytes of a block that waits or is being compressed.
    block_bytes: u64,
    /// What compressing takes.
    encoder: EncoderMemory,
    /// Old blocks.
    blocks: u64,
}

impl Budget {
    /// Divides the limit, and warns if it is too low.
    pub(crate) fn of(
        image: &Image,
        plan: &Plan,
        options: &RewriteOptions,
        events: &dyn Events,
    ) -> Self {
        let limit = options.memory_limit.unwrap_or_else(automatic_memory_limit);
        let budget = divide(limit, &facts(image, plan, options), options.workers);
        let [estimate, shown] = [budget.estimate, limit].map(|bytes| bytes.div_ceil(1 << 20));
        if budget.estimate > limit {
            events.warn(&format!(
                "rewriting takes an estimated {estimate} MiB of memory, more than the limit of {shown} MiB, even with \
                 one thread that compresses"
            ));
        } else if budget.compressors.threads < options.workers
            && plan.sections.len() > budget.compressors.workers
        {
            events.info(&format!(
                "the memory limit of {shown} MiB allows {} of {} threads to compress",
                budget.compressors.threads, options.workers
            ));
        }
        budget
    }
}

/// Returns the least memory, in bytes, that rewriting `image` is expected to take: with one thread of each kind.
///
/// # Errors
/// As [`rewrite`](crate::rewrite) for options that cannot be used with this image.
pub fn least_memory(image: &Image, options: &RewriteOptions) -> Result<u64> {
    let plan = Plan::of(image, options)?;
    Ok(divide(0, &facts(image, &plan, options), 1).estimate)
}

fn facts(image: &Image, plan: &Plan, options: &RewriteOptions) -> Facts {
    let (tables, data) = image.tables();
    let rebuilt = options.rebuild.as_ref().map_or(0, |_| {
        u64::from(image.entry_count()) * REBUILD_ENTRY_BYTES
            + tables.chunks.len() * REBUILD_CHUNK_BYTES
    });
    let codings = plan
        .streams
        .iter()
        .filter_map(|stream| stream.coding.as_ref());
    let encoders = codings.map(|coding| coding.spec.encoder_memory(coding.block_len));
    let encoder = encoders.fold(EncoderMemory::default(), EncoderMemory::max);
    let payload = plan.payload_len_max();
    let old_block = plan.old_block_len_max();
    let is_decoded = plan.streams.iter().any(|stream| stream.coding.is_some());
    // Decoders have windows of up to the size of the block.
    let decoded = if is_decoded { 2 * old_block } else { 0 };
    let new_block = if plan.recuts {
        1 << plan.block_size_bits
    } else {
        old_block.max(payload)
    };
    Facts {
        table_bytes: data.len() as u64 + rebuilt,
        fetch_bytes: payload + decoded + THREAD_BYTES,
        block_bytes: new_block,
        encoder,
        blocks: plan.sections.len() as u64,
    }
}

fn divide(limit: u64, facts: &Facts, workers: usize) -> Budget {
    let EncoderMemory { own, shared, .. } = facts.encoder;
    let worker_bytes = own + shared + facts.block_bytes + THREAD_BYTES;
    let mut used =
        PROGRAM_BYTES + facts.table_bytes + facts.fetch_bytes + worker_bytes + facts.block_bytes;
    let mut left = limit.saturating_sub(used);
    let mut take = |wanted: u64, unit: u64| {
        let taken = wanted.min(left / unit.max(1));
        left -= taken * unit;
        used += taken * unit;
        taken
    };
    let blocks = facts.blocks.max(1);
    let compressors = Compressors::of(
        facts.encoder,
        &[own],
        workers,
        blocks,
        facts.block_bytes,
        |bytes, role| {
            let block = if role == Role::Worker {
                facts.block_bytes
            } else {
                0
            };
            take(1, bytes + block) == 1
        },
    );
    let wanted = (workers.max(1) as u64).min(blocks);
    let fetchers = 1 + take(wanted - 1, facts.fetch_bytes);
    let waiting = take(compressors.waiting.min(facts.blocks), facts.block_bytes);
    let fetched = fetchers + take(fetchers, facts.fetch_bytes);
    let saturating = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Budget {
        compressors,
        fetchers: saturating(fetchers),
        fetched: saturating(fetched),
        in_flight: 1 + compressors.workers + saturating(waiting),
        limit,
        estimate: used,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn stays_within_the_limit_and_uses_it() {
        let facts = Facts {
            table_bytes: 10 * MIB,
            fetch_bytes: 40 * MIB,
            block_bytes: 16 * MIB,
            encoder: EncoderMemory {
                own: 100 * MIB,
                ..EncoderMemory::default()
            },
            blocks: 1000,
        };
        for limit in [256, 512, 1024, 8192] {
            for workers in [1, 2, 8, 64] {
                let budget = divide(limit * MIB, &facts, workers);
                assert!(budget.estimate <= limit * MIB, "{limit} {workers}");
                assert!((1..=workers).contains(&budget.compressors.workers));
                assert!(budget.fetched >= budget.fetchers);
                assert!(budget.in_flight > budget.compressors.workers);
            }
        }
        assert_eq!(divide(64 << 30, &facts, 8).compressors.workers, 8);
        let least = divide(1, &facts, 8);
        assert_eq!(
            (
                least.compressors.workers,
                least.fetchers,
                least.fetched,
                least.in_flight
            ),
            (1, 1, 1, 2)
        );
        assert!(least.estimate > 1);
    }
}
