//! Where the bytes of files go that are read.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// Takes what is read, part by part, in order.
pub trait ReadTarget {
    /// Room for exactly the next `len` bytes, with any contents. A read never asks for more than it was told to read.
    fn room(&mut self, len: usize) -> &mut [u8];

    /// Is offered the next bytes where they are; whoever does not take them gets them copied.
    fn lend(&mut self, _: &Loan<'_>) -> bool {
        false
    }
}

/// Bytes of a whole block in the cache, on offer.
#[derive(Debug)]
pub struct Loan<'a> {
    block: &'a Arc<Vec<u8>>,
    range: Range<usize>,
}

impl<'a> Loan<'a> {
    /// `None` if the block ends before `offset + len`.
    pub(crate) fn of(block: &'a Arc<Vec<u8>>, offset: usize, len: usize) -> Option<Self> {
        let range = offset..offset.checked_add(len)?;
        block.get(range.clone())?;
        Some(Self { block, range })
    }

    /// Returns how many bytes it is about.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether it is about none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Keeps the bytes as they are, and the memory of their block in use, until the result is dropped.
    #[must_use]
    pub fn take(&self) -> BlockBytes {
        BlockBytes {
            block: Arc::clone(self.block),
            range: self.range.clone(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.block.get(self.range.clone()).unwrap_or_default()
    }
}

/// Bytes of a block, whether the cache still has it or not.
#[derive(Clone, Debug)]
pub struct BlockBytes {
    block: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Deref for BlockBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.block.get(self.range.clone()).unwrap_or_default()
    }
}

impl From<Vec<u8>> for BlockBytes {
    /// All of a block.
    fn from(block: Vec<u8>) -> Self {
        Self {
            range: 0..block.len(),
            block: Arc::new(block),
        }
    }
}

/// A buffer that is filled from its beginning. It must be as long as what is to be read: less room is a panic of the read.
#[derive(Debug)]
pub struct Filling<'a>(pub &'a mut [u8]);

impl ReadTarget for Filling<'_> {
    fn room(&mut self, len: usize) -> &mut [u8] {
        let rest = std::mem::take(&mut self.0);
        let (room, rest) = rest.split_at_mut(len.min(rest.len()));
        self.0 = rest;
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_filled_and_not_exceeded() {
        let mut buf = [0; 5];
        let mut target = Filling(&mut buf);
        target.room(2).fill(1);
        assert_eq!(target.room(0).len(), 0);
        target.room(9).fill(2);
        assert_eq!(target.room(1).len(), 0);
        assert_eq!(buf, [1, 1, 2, 2, 2]);
    }

    #[test]
    fn what_is_lent_stays() {
        let block = Arc::new(vec![1, 2, 3, 4]);
        assert!(Loan::of(&block, 3, 2).is_none() && Loan::of(&block, 5, 0).is_none());
        assert!(Loan::of(&block, usize::MAX, 2).is_none());
        let taken = Loan::of(&block, 1, 2).map(|loan| loan.take());
        drop(block);
        assert_eq!(taken.as_deref(), Some(&[2, 3][..]));
    }
}
