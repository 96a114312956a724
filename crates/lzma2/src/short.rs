//! The nearest matches of a few bytes, from tables of where bytes with the same hash stood last.

use crate::Error;
use crate::memory::zeros;

/// How many bytes the tables look at.
pub(crate) const SHORT_LENS: [usize; 3] = [2, 3, 4];
const BITS: [u32; 3] = [16, 16, 18];

#[derive(Debug)]
pub(crate) struct ShortMatches {
    /// Positions + 1.
    tables: [Vec<u32>; 3],
    /// Everything before is in the tables.
    next: usize,
    /// What the last look found, for looking twice at the same place.
    last: [u32; 3],
}

impl ShortMatches {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self {
            tables: [
                zeros(1 << BITS[0])?,
                zeros(1 << BITS[1])?,
                zeros(1 << BITS[2])?,
            ],
            next: 0,
            last: [0; 3],
        })
    }

    pub(crate) fn reset(&mut self) {
        for table in &mut self.tables {
            table.fill(0);
        }
        self.next = 0;
        self.last = [0; 3];
    }

    /// Returns for each of [`SHORT_LENS`] where bytes with the same hash stood last before `position`, plus 1.
    ///
    /// Called with growing positions; a smaller one gets nothing.
    #[inline]
    pub(crate) fn at(&mut self, data: &[u8], position: usize) -> [u32; 3] {
        while self.next <= position {
            let Some(bytes) = data.get(self.next..).and_then(<[u8]>::first_chunk) else {
                return [0; 3];
            };
            let bytes = u32::from_le_bytes(*bytes);
            let hashes = [
                bytes & 0xFFFF,
                (bytes << 8).wrapping_mul(0x9E37_79B1) >> (32 - BITS[1]),
                bytes.wrapping_mul(0x9E37_79B1) >> (32 - BITS[2]),
            ];
            self.next += 1;
            for index in 0..3 {
                let mask = (1 << BITS[index]) - 1;
                let place = &mut self.tables[index][hashes[index] as usize & mask];
                self.last[index] = *place;
                *place = self.next as u32;
            }
        }
        if self.next == position + 1 {
            self.last
        } else {
            [0; 3]
        }
    }
}
