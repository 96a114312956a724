//! Memory that the kernel puts a request into and takes the answer from, when they come through io_uring.
//!
//! A page with the head at its beginning and the header of an answer at its end, then the payload: so an answer is
//! made in one piece, as it is for the device.

#![expect(
    unsafe_code,
    reason = "docs/unsafe.md: discarding pages that the kernel may have been given has no safe form"
)]

use std::io;

use memmap2::{MmapMut, MmapOptions, UncheckedAdvice};

use super::{HEAD_LEN, OUT_HEADER_LEN};

/// Bytes before the payload.
const FRONT_LEN: usize = 4096;

const _: () = assert!(HEAD_LEN + OUT_HEADER_LEN <= FRONT_LEN);

/// The memory of one entry.
#[derive(Debug)]
pub(crate) struct Shared(MmapMut);

impl Shared {
    /// Memory for payloads of up to `payload_max` bytes.
    pub(crate) fn new(payload_max: usize) -> io::Result<Self> {
        let len = FRONT_LEN + payload_max;
        Ok(Self(MmapOptions::new().len(len).map_anon()?))
    }

    /// Addresses and lengths of the head and the payload, for the kernel.
    pub(crate) fn parts(&mut self) -> [(*mut u8, usize); 2] {
        let (front, payload) = self.0.split_at_mut(FRONT_LEN);
        [
            (front.as_mut_ptr(), HEAD_LEN),
            (payload.as_mut_ptr(), payload.len()),
        ]
    }

    /// The head, and the payload of a request.
    pub(crate) fn request(&self) -> (&[u8], &[u8]) {
        self.0.split_at(FRONT_LEN)
    }

    pub(crate) fn head_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// Gives the pages back to the system; the memory stays, and is zero.
    ///
    /// # Safety
    /// Nothing may refer to the memory, and nobody may rely on what is in it.
    pub(crate) unsafe fn discard(&mut self) {
        // SAFETY: the memory is ours alone and has no file behind it; for the rest the caller vouches.
        let discarded = unsafe { self.0.unchecked_advise(UncheckedAdvice::DontNeed) };
        // If that fails, the memory stays in use, and nothing is wrong with it.
        discarded.ok();
    }

    /// An answer with its header.
    pub(crate) fn answer(&self) -> &[u8] {
        self.0.get(FRONT_LEN - OUT_HEADER_LEN..).unwrap_or_default()
    }

    pub(crate) fn answer_mut(&mut self) -> &mut [u8] {
        let answer = self.0.get_mut(FRONT_LEN - OUT_HEADER_LEN..);
        answer.unwrap_or_default()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_discarded_serves_again() {
        let mut shared = Shared::new(1 << 20).unwrap();
        shared.answer_mut().fill(7);
        assert_eq!(shared.answer().len(), OUT_HEADER_LEN + (1 << 20));
        // SAFETY: nothing refers to it.
        unsafe { shared.discard() };
        assert!(shared.answer().iter().all(|byte| *byte == 0));
        shared.answer_mut().fill(8);
        let [(head, head_len), (payload, payload_len)] = shared.parts();
        assert_eq!((head_len, payload_len), (HEAD_LEN, 1 << 20));
        assert_eq!(head.addr() + FRONT_LEN, payload.addr());
        assert_eq!(payload.addr() % FRONT_LEN, 0);
    }
}
