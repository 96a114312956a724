//! A source that fails on purpose, for tests of everything above.

use std::io;
use std::ops::Range;

use crate::Source;

/// What a [`FaultySource`] does to reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Reads that touch these bytes fail with an input/output error.
    Error(Range<u64>),
    /// The source ends here, although its length says otherwise: a file cut after it was opened.
    CutAt(u64),
    /// No read returns more than this many bytes.
    ShortReads(usize),
}

/// Another source with faults; it never offers a mapping, so that every byte goes through the faults.
#[derive(Debug)]
pub struct FaultySource<S> {
    inner: S,
    faults: Vec<Fault>,
}

impl<S: Source> FaultySource<S> {
    /// Puts `faults` before `inner`.
    pub fn new(inner: S, faults: Vec<Fault>) -> Self {
        Self { inner, faults }
    }
}

impl<S: Source> Source for FaultySource<S> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut want = buf.len();
        for fault in &self.faults {
            let end = offset.saturating_add(want as u64);
            match fault {
                Fault::Error(bad) if offset < bad.end && bad.start < end => {
                    return Err(io::Error::other("a fault put here for the test"));
                }
                Fault::Error(_) => {}
                Fault::CutAt(cut) => {
                    want = usize::try_from(cut.saturating_sub(offset))
                        .map_or(want, |left| left.min(want));
                }
                Fault::ShortReads(most) => want = want.min(*most),
            }
        }
        self.inner.read_at(offset, &mut buf[..want])
    }
}
