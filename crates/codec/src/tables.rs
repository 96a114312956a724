//! Memory for the tables of encoders, in huge pages where the system has them.
//!
//! Searching for matches follows links all over tables of ten times the size of a block. With pages of 4 KiB a good part
//! of the time goes into looking up where those pages are: lzma with a dictionary of 16 MiB takes 17% less time with
//! pages of 2 MiB. Systems give huge pages without being asked (`always`), when asked (`madvise`, usual), or never;
//! this asks. The libraries allocate once for an encoder or a block, so that the way back to 4 KiB pages costs nothing.

#![expect(
    unsafe_code,
    reason = "allocators that the C libraries call; none of them offers huge pages itself"
)]

use core::ffi::c_void;

/// The usual size of a huge page. On systems with others the request has less effect or none.
pub(crate) const HUGE_PAGE_LEN: usize = 2 << 20;

/// Allocates `len` bytes, uninitialized; null if there is no memory.
///
/// What this returns must be given to [`release`] or `free`.
pub(crate) fn allocate(len: usize) -> *mut c_void {
    if len < 2 * HUGE_PAGE_LEN {
        // SAFETY: any size may be asked for; `malloc(0)` may give null, which the libraries never ask for.
        return unsafe { libc::malloc(len) };
    }
    let mut start = std::ptr::null_mut();
    // SAFETY: `start` is a valid place for the result; the alignment is a power of two and a multiple of a pointer.
    let failed = unsafe { libc::posix_memalign(&raw mut start, HUGE_PAGE_LEN, len) };
    if failed != 0 {
        return std::ptr::null_mut();
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the range was just allocated and this changes nothing but the size of its pages. Whole pages only, so
    // that neighbours are not touched. A failure leaves small pages.
    unsafe {
        let whole = len & !(HUGE_PAGE_LEN - 1);
        libc::madvise(start, whole, libc::MADV_HUGEPAGE);
    }
    start
}

/// Gives back what [`allocate`] returned, or does nothing for null.
///
/// # Safety
/// `start` must come from [`allocate`], and nothing may use that memory any more.
pub(crate) unsafe fn release(start: *mut c_void) {
    // SAFETY: both ways of allocating are for `free`; the rest is the caller's promise.
    unsafe { libc::free(start) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_any_size_can_be_used() {
        for len in [1, 1 << 20, 4 << 20, (5 << 20) + 123] {
            let start = allocate(len);
            assert!(!start.is_null());
            // SAFETY: the range has just been allocated, and is not used after its release.
            unsafe {
                start.cast::<u8>().write_bytes(7, len);
                assert_eq!(start.cast::<u8>().add(len - 1).read(), 7);
                release(start);
            }
        }
        // SAFETY: null is allowed.
        unsafe { release(std::ptr::null_mut()) };
        assert!(allocate(usize::MAX / 2).is_null());
    }
}
