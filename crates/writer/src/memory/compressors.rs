//! How many threads compress, and how many blocks wait for them.

use std::sync::Arc;

use durin_codec::{Crew, EncoderMemory, THREADS_PER_TABLE};

/// What a thread costs beyond what is counted elsewhere: touched stack and partly used pages of the allocator.
pub(super) const THREAD_BYTES: u64 = 512 << 10;
/// More blocks than this do not keep more processors busy; it matters for very small blocks only.
const BLOCK_COUNT_MAX: u64 = 4096;
/// Blocks that wait for a slow one, for each thread that compresses.
const WAITING_PER_WORKER: u64 = 2;
/// Bytes of small blocks that may wait, so that the queues are worth their locks.
const WAITING_BYTES: u64 = 16 << 20;
/// Of blocks that are together larger than this, one for each that is compressed will do: compressing them takes far
/// longer than filling the next ones.
const WAITING_BYTES_MUCH: u64 = 32 << 20;

/// The threads that compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressors {
    /// Those that have a block each.
    pub workers: usize,
    /// Those that work at a time, some of which may help others.
    pub threads: usize,
    /// Blocks that are encoded at a time, where encoders share their tables.
    pub tables: usize,
    /// Blocks that should wait for a slow one.
    pub waiting: u64,
}

/// What a thread that compresses does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has a block, whose bytes come on top of what the thread takes.
    Worker,
    /// It helps those that have one.
    Helper,
}

impl Compressors {
    /// One thread, and as many more, up to `wanted`, as have a block of `blocks` or somebody to help, and as `take` has
    /// the bytes for. Who helps needs fewer: where no further block fits, a helper may.
    /// `own` is what the encoder of the first thread has for itself, of the second, and so on, falling, the last for all
    /// that follow.
    pub fn of(
        encoder: EncoderMemory,
        own: &[u64],
        wanted: usize,
        blocks: u64,
        block_len: u64,
        mut take: impl FnMut(u64, Role) -> bool,
    ) -> Self {
        let (mut workers, mut threads, mut tables) = (1, 1, 1);
        let mut is_room = true;
        while threads < wanted {
            let is_crowded = threads % THREADS_PER_TABLE == 0;
            let shared = if is_crowded { encoder.shared } else { 0 };
            let own = own.get(workers).or(own.last()).copied().unwrap_or_default();
            is_room = is_room
                && (workers as u64) < blocks
                && take(own + THREAD_BYTES + shared, Role::Worker);
            if is_room {
                workers += 1;
                tables += usize::from(is_crowded);
            } else if encoder.helper == 0
                || is_crowded
                || !take(encoder.helper + THREAD_BYTES, Role::Helper)
            {
                break;
            }
            threads += 1;
        }
        let at_once = if encoder.shared > 0 { tables } else { workers };
        Self {
            workers,
            threads,
            tables,
            waiting: waiting(at_once as u64, block_len),
        }
    }

    /// Makes the crew of these threads.
    #[must_use]
    pub fn crew(&self) -> Arc<Crew> {
        Arc::new(Crew::new(self.threads, self.tables))
    }
}

/// Returns how many blocks should wait if so many are compressed at a time.
fn waiting(at_once: u64, block_len: u64) -> u64 {
    let block_len = block_len.max(1);
    (at_once * WAITING_PER_WORKER)
        .min(at_once.max(WAITING_BYTES_MUCH / block_len))
        .max(WAITING_BYTES / block_len)
        .min(BLOCK_COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_larger_blocks_are_the_fewer_wait() {
        let of_two = |bits: u32| waiting(2, 1 << bits);
        assert_eq!([0, 20, 23, 24, 26].map(of_two), [4096, 16, 4, 2, 2]);
        assert_eq!(waiting(8, 64 << 20), 8);
        assert_eq!(waiting(1, 0), 4096);
    }

    #[test]
    fn four_threads_share_tables() {
        let encoder = EncoderMemory {
            own: 100 * MIB,
            shared: 600 * MIB,
            helper: 50 * MIB,
        };
        let own = [encoder.own];
        let of = |wanted, blocks, room: u64| {
            let mut left = room;
            let compressors =
                Compressors::of(encoder, &own, wanted, blocks, 64 * MIB, |bytes, role| {
                    let bytes = bytes + if role == Role::Worker { 64 * MIB } else { 0 };
                    let is_there = bytes <= left;
                    left -= if is_there { bytes } else { 0 };
                    is_there
                });
            let Compressors {
                workers,
                threads,
                tables,
                waiting,
            } = compressors;
            ([workers, threads, tables], waiting, (room - left) / MIB)
        };
        let much = 1 << 40;
        assert_eq!(of(1, 9, much), ([1, 1, 1], 1, 0));
        assert_eq!(of(4, 9, much), ([4, 4, 1], 1, 3 * 164 + 1));
        assert_eq!(of(9, 9, much), ([9, 9, 3], 3, 8 * 164 + 1200 + 4));
        // A single block keeps four of eight threads busy.
        assert_eq!(of(8, 1, much), ([1, 4, 1], 1, 3 * 50 + 1));
        assert_eq!(of(8, 9, 500 * MIB), ([4, 4, 1], 1, 3 * 164 + 1));
        // Where a second block does not fit, two that help do.
        assert_eq!(of(8, 9, 120 * MIB), ([1, 3, 1], 1, 2 * 50 + 1));
        assert_eq!(of(8, 9, 0), ([1, 1, 1], 1, 0));
    }

    #[test]
    fn who_shares_nothing_has_a_block() {
        let encoder = EncoderMemory {
            own: 20 * MIB,
            ..EncoderMemory::default()
        };
        let compressors = Compressors::of(encoder, &[20 * MIB], 8, 3, 16 * MIB, |_, _| true);
        assert_eq!((compressors.workers, compressors.threads), (3, 3));
        assert_eq!(compressors.waiting, 3);
        // The later, the smaller the blocks that are left.
        let own = [20 * MIB, 7 * MIB, 2 * MIB];
        let mut taken = Vec::new();
        Compressors::of(encoder, &own, 4, 9, 16 * MIB, |bytes, role| {
            taken.push((bytes - THREAD_BYTES, role));
            true
        });
        assert_eq!(taken, [7, 2, 2].map(|mib| (mib * MIB, Role::Worker)));
    }
}
