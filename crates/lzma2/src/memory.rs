//! Tables in huge pages where the system has them: matches are looked up all over tables as large as the block.

use crate::Error;

/// Returns a table of zeros.
pub(crate) fn zeros<T: Copy + Default>(len: usize) -> Result<Vec<T>, Error> {
    let mut table = Vec::new();
    grow(&mut table, len)?;
    Ok(table)
}

/// Makes `table` at least `len` entries long; the memory is asked for as huge pages before it is touched.
pub(crate) fn grow<T: Copy + Default>(table: &mut Vec<T>, len: usize) -> Result<(), Error> {
    if table.len() >= len {
        return Ok(());
    }
    // What is there is not needed: tables are filled anew for each block.
    *table = Vec::new();
    table.try_reserve_exact(len).map_err(|_| Error::Memory)?;
    ask_for_huge_pages(table);
    table.resize(len, T::default());
    Ok(())
}

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "the allocator of the standard library cannot be told the size of pages"
)]
fn ask_for_huge_pages<T>(table: &mut Vec<T>) {
    /// The usual size of a huge page. On systems with others the request has less effect or none.
    const HUGE_PAGE_LEN: usize = 2 << 20;
    let room = table.spare_capacity_mut();
    let bytes = size_of_val(room);
    let before = room.as_ptr().cast::<u8>().align_offset(HUGE_PAGE_LEN);
    let Some(rest) = bytes.checked_sub(before) else {
        return;
    };
    let whole = rest & !(HUGE_PAGE_LEN - 1);
    if whole == 0 {
        return;
    }
    // SAFETY: the range lies within memory that the vector owns, in whole pages, and the advice changes nothing but the
    // size of its pages. A failure leaves small pages, which is as good.
    let advised = unsafe {
        let start = room.as_mut_ptr().cast::<u8>().add(before);
        rustix::mm::madvise(start.cast(), whole, rustix::mm::Advice::LinuxHugepage)
    };
    advised.ok();
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages<T>(_: &mut Vec<T>) {}
