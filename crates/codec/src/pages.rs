//! Pages of memory that is about to be written for the first time.
//!
//! What the system gives has no pages yet: the first byte written to each interrupts whoever writes it. In a virtual
//! machine above all, that takes longer than decoding what goes into the page. Asked for many at once, the system makes
//! them in a good part of that time.

#![expect(unsafe_code, reason = "the standard library has no advice for memory")]

/// Below this it is not worth a system call.
#[cfg(target_os = "linux")]
const LEN_MIN: usize = 64 << 10;

/// Has the system make the pages of the next `len` bytes behind what is in `out`, as far as there is room for them.
///
/// There is no more to it than time: systems that do not know the request (before Linux 5.14), or have no memory, make pages
/// when they are written.
#[cfg(target_os = "linux")]
pub fn prepare_pages(out: &mut Vec<u8>, len: usize) {
    let room = out.spare_capacity_mut();
    let room = room.get_mut(..len.min(room.len())).unwrap_or_default();
    if room.len() < LEN_MIN {
        return;
    }
    // SAFETY: the call changes nothing.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(LEN_MIN);
    let before = room.as_ptr().align_offset(page).min(room.len());
    let whole = (room.len() - before) & !(page - 1);
    // SAFETY: the range lies in memory that the caller owns, and what is in it stays as it is.
    unsafe {
        let start = room.as_mut_ptr().add(before);
        libc::madvise(start.cast(), whole, libc::MADV_POPULATE_WRITE);
    }
}

#[cfg(not(target_os = "linux"))]
pub fn prepare_pages(_: &mut Vec<u8>, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_and_what_is_not_there_is_left_alone() {
        let mut out = Vec::with_capacity(1 << 20);
        out.extend_from_slice(&[7; 100_001]);
        for len in [0, 1, 65_536, 300_000, 1 << 30, usize::MAX] {
            prepare_pages(&mut out, len);
            assert!(out.len() == 100_001 && out.iter().all(|byte| *byte == 7));
        }
        let capacity = out.capacity();
        out.resize(capacity, 9);
        prepare_pages(&mut out, usize::MAX);
        assert!(out.ends_with(&[9]) && out.capacity() == capacity);
        prepare_pages(&mut Vec::new(), usize::MAX);
    }
}
