//! Memory in huge pages where the system has them: matches are looked up all over a block, and tables larger than that.

use std::alloc::{Layout, alloc_zeroed};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use crate::Error;

/// A type of table entries whose bytes may all be zero.
pub(crate) trait Entry {}

impl Entry for u32 {}
impl Entry for AtomicU64 {}

/// Returns a table of zeros.
pub(crate) fn zeros<T: Entry>(len: usize) -> Result<Vec<T>, Error> {
    let mut table = Vec::new();
    grow(&mut table, len)?;
    Ok(table)
}

/// Makes `table` at least `len` entries long; the memory is asked for as huge pages before it is touched.
pub(crate) fn grow<T: Entry>(table: &mut Vec<T>, len: usize) -> Result<(), Error> {
    if table.len() >= len {
        return Ok(());
    }
    // What is there is not needed: tables are filled anew for each block.
    *table = Vec::new();
    // Blocks are nearly, but not quite, of the same length. Memory that is not touched costs nothing.
    let step = len.next_power_of_two() >> 3;
    *table = allocate_zeros(len.next_multiple_of(step.max(1)))?;
    Ok(())
}

/// Returns so many zeros in memory that has not been touched, if the system gives such.
#[expect(
    unsafe_code,
    reason = "`vec![0; len]` ends the program where there is no memory, and `resize` touches all of it"
)]
fn allocate_zeros<T: Entry>(len: usize) -> Result<Vec<T>, Error> {
    let layout = Layout::array::<T>(len).map_err(|_| Error::Memory)?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is not empty. It is that of a vector of `len` entries, and zeros are entries: see `Entry`.
    let mut table = unsafe {
        let start = alloc_zeroed(layout).cast::<T>();
        if start.is_null() {
            return Err(Error::Memory);
        }
        Vec::from_raw_parts(start, len, len)
    };
    ask_for_huge_pages(table.as_mut_ptr_range());
    Ok(table)
}

/// Asks for huge pages for the memory that `buffer` has not used yet, which should not have been touched.
///
/// Encoders read a block all over, and hash tables are, which takes a twentieth less time then. There is no more to it than time.
pub fn prefer_huge_pages<T>(buffer: &mut Vec<T>) {
    let room = buffer.spare_capacity_mut().as_mut_ptr_range();
    ask_for_huge_pages(room.start..room.end);
}

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "the allocator of the standard library cannot be told the size of pages"
)]
fn ask_for_huge_pages<T>(memory: Range<*mut T>) {
    /// The usual size of a huge page. On systems with others the request has less effect or none.
    const HUGE_PAGE_LEN: usize = 2 << 20;
    let bytes = memory.end as usize - memory.start as usize;
    let before = memory.start.cast::<u8>().align_offset(HUGE_PAGE_LEN);
    let Some(rest) = bytes.checked_sub(before) else {
        return;
    };
    let whole = rest & !(HUGE_PAGE_LEN - 1);
    if whole == 0 {
        return;
    }
    // SAFETY: the range lies within memory that the caller owns, in whole pages, and the advice changes nothing but the
    // size of its pages. A failure leaves small pages, which is as good.
    let advised = unsafe {
        let start = memory.start.cast::<u8>().add(before);
        rustix::mm::madvise(start.cast(), whole, rustix::mm::Advice::LinuxHugepage)
    };
    advised.ok();
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages<T>(_: Range<*mut T>) {}

/// Has the processor fetch an entry that will be needed soon: nothing else tells it where that is.
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "there is no other way to say so to the processor"
)]
#[inline]
pub(crate) fn prefetch<T>(table: &[T], at: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    if let Some(entry) = table.get(at) {
        // SAFETY: this instruction is part of all processors of the architecture, and does not fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch<T>(_: &[T], _: usize) {}
