//! Memory of payloads that have been decoded, for those to come.
//!
//! Pages that are new to the process take longer than reading a payload into them.

use crate::sync::{Mutex, lock};

/// The share of the cache that it may have.
const SHARE: u64 = 64;

/// More are not in use at a time but on machines with many processors, and each is looked at.
const COUNT_MAX: usize = 8;

/// Smaller payloads are where the allocator has memory at hand.
const LEN_MIN: usize = 64 << 10;

/// What is kept.
pub(super) struct Payloads {
    bytes_max: u64,
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Payloads {
    /// None, of a cache of so many bytes.
    pub(super) fn new(cache_bytes_max: u64) -> Self {
        Self {
            bytes_max: cache_bytes_max / SHARE,
            spare: Mutex::default(),
        }
    }

    /// Memory of a former payload, with any contents, that has room for `len` bytes and little more; or none.
    pub(super) fn take(&self, len: u64) -> Vec<u8> {
        let mut spare = lock(&self.spare);
        let fits = |payload: &Vec<u8>| {
            (len..=len.saturating_mul(2)).contains(&(payload.capacity() as u64))
        };
        // The last one is likeliest to be in the processor's cache.
        match spare.iter().rposition(fits) {
            Some(at) => spare.remove(at),
            None => Vec::new(),
        }
    }

    /// Keeps what has been decoded, and gives back what is too much.
    pub(super) fn give(&self, payload: Vec<u8>) -> Change {
        let mut change = Change::default();
        if payload.capacity() < LEN_MIN || payload.capacity() as u64 > self.bytes_max {
            return change;
        }
        change.added = payload.capacity() as u64;
        let mut spare = lock(&self.spare);
        spare.push(payload);
        while spare.len() > COUNT_MAX || bytes_of(&spare) > self.bytes_max {
            change.removed += spare.remove(0).capacity() as u64;
        }
        change
    }

    /// Gives all of it back; gives how many bytes that were.
    pub(super) fn clear(&self) -> u64 {
        bytes_of(&std::mem::take(&mut *lock(&self.spare)))
    }
}

/// What the books have to know.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Change {
    pub(super) added: u64,
    pub(super) removed: u64,
}

fn bytes_of(payloads: &[Vec<u8>]) -> u64 {
    payloads
        .iter()
        .map(|payload| payload.capacity() as u64)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(len: usize) -> Vec<u8> {
        vec![1; len]
    }

    #[test]
    fn what_fits_is_used_again() {
        let payloads = Payloads::new(SHARE << 20);
        assert_eq!(payloads.give(payload(100_000)).added, 100_000);
        assert_eq!(payloads.give(payload(300_000)).added, 300_000);
        assert_eq!(payloads.take(100_001).capacity(), 0, "neither is near");
        assert_eq!(payloads.take(90_000), payload(100_000));
        assert_eq!(payloads.take(90_000).capacity(), 0, "it is in use");
        assert_eq!(payloads.clear(), 300_000);
    }

    #[test]
    fn there_are_no_more_than_may_be() {
        let payloads = Payloads::new(SHARE << 20);
        assert_eq!(payloads.give(payload(1000)), Change::default(), "too small");
        assert_eq!(payloads.give(payload(2 << 20)), Change::default());
        for _ in 0..3 {
            payloads.give(payload(300 << 10));
        }
        let change = payloads.give(payload(400 << 10));
        assert_eq!((change.added, change.removed), (400 << 10, 300 << 10));
        assert_eq!(payloads.clear(), 1000 << 10);
        for _ in 0..2 * COUNT_MAX {
            payloads.give(payload(LEN_MIN));
        }
        assert_eq!(payloads.clear(), (COUNT_MAX * LEN_MIN) as u64);
    }
}
