//! Blocks that wait for their headers, as the checksums of several take a fraction of the time.
//!
//! All threads that compress share what waits. Whoever brings the last block that fits makes the headers of all of them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::sections::Unsealed;

/// As many as go side by side.
const BATCH_MAX: usize = 8;
/// Fewer blocks take as long together as one by one.
const BATCH_MIN: usize = 3;

/// How long blocks wait when no others come: whoever fills those may be waiting for these to be written.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);

/// Compressed blocks without headers.
#[derive(Debug)]
pub(crate) struct Waiting {
    blocks: Mutex<Vec<Unsealed>>,
    batch: usize,
}

impl Waiting {
    /// For a build in which so many blocks may wait for each other.
    pub(crate) fn new(blocks_max: usize) -> Self {
        let batch = blocks_max.min(BATCH_MAX);
        Self {
            blocks: Mutex::default(),
            batch: if batch < BATCH_MIN { 1 } else { batch },
        }
    }

    /// Adds a block, and returns those whose time has come.
    pub(crate) fn add(&self, block: Unsealed) -> Vec<Unsealed> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.push(block);
        if blocks.len() < self.batch {
            return Vec::new();
        }
        std::mem::take(&mut blocks)
    }

    /// Returns all that wait.
    pub(crate) fn take(&self) -> Vec<Unsealed> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut blocks)
    }
}

#[cfg(test)]
mod tests {
    use durin_codec::Encoded;
    use durin_format::section::{CompressionType, SectionType};

    use super::*;

    fn block(number: u32) -> Unsealed {
        Unsealed {
            number,
            section_type: SectionType::Block,
            encoded: Encoded {
                compression: CompressionType::None,
                payload: Vec::new(),
            },
            data_len: 0,
        }
    }

    #[test]
    fn waits_for_as_many_as_may_wait() {
        for (blocks_max, expected) in [(0, 1), (1, 1), (2, 1), (3, 3), (8, 8), (100, 8)] {
            let waiting = Waiting::new(blocks_max);
            let lens: Vec<_> = (0..16)
                .map(|number| waiting.add(block(number)).len())
                .collect();
            let sealed: usize = lens.iter().sum();
            assert!(
                lens.iter().all(|len| [0, expected].contains(len)),
                "{lens:?}"
            );
            assert_eq!(waiting.take().len(), 16 - sealed);
            assert!(waiting.take().is_empty());
        }
    }
}
