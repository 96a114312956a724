//! The few calls to the system that have no safe form: `fork`, the local time zone, locking memory, the allocator's
//! settings, and a look at standard output before the program begins.
#![allow(
    unsafe_code,
    reason = "fork, localtime_r, mlock, mallopt and what runs before main have no safe form; each is wrapped here"
)]

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether standard output was closed when the program started.
static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// What an allocator that is not the system's can be asked for.
pub(crate) struct Allocator {
    pub(crate) keep_freed_memory: fn(),
    pub(crate) release_free_memory: fn(),
}

/// The allocator of this program, once it has said that it brings its own.
pub(crate) static ALLOCATOR: OnceLock<Allocator> = OnceLock::new();

/// Has the allocator keep for a second what is freed, as it does by itself: what has no limit of memory to keep to is up to a
/// tenth faster.
pub(crate) fn keep_freed_memory() {
    if let Some(allocator) = ALLOCATOR.get() {
        (allocator.keep_freed_memory)();
    }
}

/// Takes as many descriptors as there are for the asking, up to what may be useful: many threads that read, and directories
/// that wait.
///
/// What is started from here inherits the number, so that it must not be asked for where anybody else's code runs: that may
/// use `select`, which ends at 1024, or close each descriptor that there could be.
pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// Three for each of 1024 threads, and as much again for directories.
    const WANTED: u64 = 8192;
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current else {
        return;
    };
    let wanted = limit.maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    if current < wanted {
        let raised = Rlimit {
            current: Some(wanted),
            maximum: limit.maximum,
        };
        // Without it there are as many as before.
        setrlimit(Resource::Nofile, raised).ok();
    }
}

/// How many threads can read a tree at a time with the descriptors there are; the bytes of an image are the same with any number.
///
/// Each has up to three, of a directory, of the next one and of a file; a quarter is left to directories that wait, and some
/// to all else.
pub(crate) fn reading_threads_max() -> usize {
    const OTHERS: u64 = 16;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let of_threads = limit.map_or(u64::MAX, |limit| (limit / 4 * 3).saturating_sub(OTHERS));
    usize::try_from(of_threads / 3).unwrap_or(usize::MAX).max(1)
}

/// Asks for all of the program file: its parts would come from the disk one after the other, when they are first used.
pub(crate) fn read_program_ahead() {
    // Without the hint they only come a little later.
    if let Ok(file) = std::fs::File::open("/proc/self/exe") {
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::WillNeed).ok();
    }
}

/// Runs before `main`: the standard library opens `/dev/null` in place of a closed standard output, so that everything
/// written there would be lost without an error.
// SAFETY: the section holds functions that are called once each with C's arguments, which this one leaves alone. It makes one
// system call and stores to an atomic, neither of which needs anything that is set up later.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_STDOUT: extern "C" fn() = look_at_stdout;

extern "C" fn look_at_stdout() {
    // SAFETY: a call that changes nothing, with any number.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    STDOUT_WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Fails if there was no standard output when the program started.
pub(crate) fn check_stdout() -> io::Result<()> {
    if STDOUT_WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(())
}

/// On which side of a fork the caller continues.
pub(crate) enum Fork {
    /// The process that called; `child` is the process id of the new one.
    Parent {
        /// The process id of the child.
        child: i32,
    },
    /// The new process.
    Child,
}

/// Splits the process in two.
///
/// Must be called while the process has a single thread, or the child is left with locks that nobody holds.
/// That is checked, and refused with an error.
pub(crate) fn fork_single_threaded() -> io::Result<Fork> {
    if thread_count() > 1 {
        return Err(io::Error::other(
            "fork is only possible before other threads start",
        ));
    }
    // SAFETY: `fork` has no preconditions for a process with one thread, which was checked above: no other thread
    // can hold a lock (of the allocator or of the standard library) that the child would wait for for ever.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent { child }),
    }
}

/// The memory that this process holds now.
pub(crate) fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let resident: u64 = pages.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let page_size = u64::try_from(rustix::param::page_size()).ok()?;
    resident.checked_mul(page_size)
}

/// Time that the processors spent on this process: for itself, and in the system on its behalf.
pub(crate) fn cpu_times() -> Option<(Duration, Duration)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    let mut next = || {
        let ticks: u64 = fields.next()?.parse().ok()?;
        let ms = ticks.checked_mul(1000)? / ticks_per_second;
        Some(Duration::from_millis(ms))
    };
    Some((next()?, next()?))
}

/// The number of threads of this process; 1 where the system does not tell.
fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

/// Seconds by which local time is ahead of UTC at `seconds` since 1970 UTC; 0 where that is unknown.
pub(crate) fn utc_offset_seconds(seconds: i64) -> i64 {
    // On systems with 32-bit times a later time is shown with the offset of 1970.
    let time = libc::time_t::try_from(seconds).unwrap_or_default();
    // SAFETY: all-zero bytes are a valid `tm`: integers and a pointer that may be null.
    let mut broken_down: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live, properly aligned locals, and `localtime_r` keeps neither. It reads `TZ` from
    // the environment, which no part of the programs modifies, so that there is no race on it.
    let result = unsafe { libc::localtime_r(&raw const time, &raw mut broken_down) };
    if result.is_null() {
        0
    } else {
        offset_of(&broken_down)
    }
}

#[allow(
    clippy::useless_conversion,
    reason = "`c_long` is `i64` on some systems only"
)]
fn offset_of(local: &libc::tm) -> i64 {
    i64::from(local.tm_gmtoff)
}

/// Keeps the pages of `data` in memory until they are unmapped or the process ends.
pub(crate) fn lock_in_memory(data: &[u8]) -> io::Result<()> {
    let start = data.as_ptr().cast_mut().cast();
    // SAFETY: the range is that of a live slice. Locking changes neither its contents nor its mapping; that pages stay
    // locked longer than the slice lives costs memory only.
    unsafe { rustix::mm::mlock(start, data.len()) }?;
    Ok(())
}

/// Has the allocator take each large piece of memory from the system, and give it back when it is freed.
///
/// By default glibc raises the size from which on it does that with each large piece that is freed: blocks of a cache end up
/// in heaps then, which they fragment. There a block of which only the beginning has been decoded takes all of its room, too,
/// as others have touched those pages before. Smaller pieces, decoders above all, come and go with each block: their memory
/// is kept, as getting it from the system again takes longer than using it, until [`release_free_memory`]: of a few heaps,
/// as each keeps some of its own, and threads that decode in turn would have one each.
pub(crate) fn map_large_allocations() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGE: libc::c_int = 256 << 10;
        const KEPT: libc::c_int = 4 << 20;
        // Each takes 64 MiB of addresses from the beginning.
        let heaps = if has_limited_addresses() { 1 } else { 4 };
        // SAFETY: `mallopt` only sets a number in the allocator, which it guards itself.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
            libc::mallopt(libc::M_ARENA_MAX, heaps);
        }
    }
}

/// Whether `ulimit -v` or `ulimit -d` bounds what this process may map.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn has_limited_addresses() -> bool {
    use rustix::process::{Resource, getrlimit};
    [Resource::As, Resource::Data]
        .into_iter()
        .any(|resource| getrlimit(resource).current.is_some())
}

/// Has memory come in small pages, also where the allocator has asked for huge ones.
///
/// Decoding is no faster in huge pages, and buffers that are used here and there fill all of them: extraction took up to
/// three times the memory.
pub(crate) fn refuse_huge_pages() {
    // An old kernel without this goes on as it is.
    #[cfg(target_os = "linux")]
    if !rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(true) {
        rustix::thread::disable_transparent_huge_pages(true).ok();
        REFUSES_HUGE_PAGES.store(true, Ordering::Relaxed);
    }
}

/// Whether this program has done that itself, and nobody for it.
#[cfg(target_os = "linux")]
static REFUSES_HUGE_PAGES: AtomicBool = AtomicBool::new(false);

/// Does what uses all of the memory that it asks for in huge pages, after [`refuse_huge_pages`], too, where they lie ready.
pub(crate) fn with_huge_pages<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_os = "linux")]
    return with_huge_pages_unless(is_free_memory_given_back, work);
    #[cfg(not(target_os = "linux"))]
    work()
}

/// Takes back what [`refuse_huge_pages`] has done for as long as `work` takes, unless huge pages are slow to come, which is
/// asked only if it matters.
#[cfg(target_os = "linux")]
fn with_huge_pages_unless<T>(are_slow: impl FnOnce() -> bool, work: impl FnOnce() -> T) -> T {
    if !REFUSES_HUGE_PAGES.load(Ordering::Relaxed) || are_slow() {
        return work();
    }
    rustix::thread::disable_transparent_huge_pages(false).ok();
    let done = work();
    rustix::thread::disable_transparent_huge_pages(true).ok();
    done
}

/// Whether the system is a guest that gives its host back what is free ("free page reporting").
///
/// What it gives back are free huge pages. One that is wanted again has to be made by the host first, which took ten
/// milliseconds for two of them; the small pages for as much come from what lies ready.
#[cfg(target_os = "linux")]
fn is_free_memory_given_back() -> bool {
    std::fs::read_to_string("/sys/module/page_reporting/parameters/page_reporting_order")
        .is_ok_and(|order| is_order(&order))
}

/// Whether a parameter of the kernel is the binary logarithm of the pages that it takes together. Without a device to
/// report to, it is none of those: -1, or in older kernels one more than the largest.
#[cfg(target_os = "linux")]
fn is_order(parameter: &str) -> bool {
    /// `MAX_PAGE_ORDER` of most systems.
    const ORDER_MAX: u8 = 10;
    parameter
        .trim()
        .parse::<u8>()
        .is_ok_and(|order| order <= ORDER_MAX)
}

/// Has the allocator give back to the system what it keeps for later.
pub(crate) fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` has no preconditions and takes the allocator's locks itself.
    unsafe {
        libc::malloc_trim(0);
    }
    // The allocator of `durin`, where the decoded blocks are then; the other one is that of the C libraries.
    if let Some(allocator) = ALLOCATOR.get() {
        (allocator.release_free_memory)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_to_fork_with_threads() {
        // The test harness itself runs tests on threads of their own.
        assert!(fork_single_threaded().is_err());
    }

    #[test]
    fn the_process_holds_memory_and_takes_time() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 16));
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(60) {
            std::hint::black_box(begun);
        }
        let (user, system) = cpu_times().expect("a system that tells");
        assert!(user + system > Duration::ZERO);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_refuses_huge_pages_can_have_them_for_a_while() {
        let are_refused = || rustix::thread::transparent_huge_pages_are_disabled().ok();
        let before = are_refused();
        // Who was refused them by others has none then, either; and nobody asks how fast they would come.
        with_huge_pages_unless(
            || panic!("not to be asked"),
            || assert_eq!(are_refused(), before),
        );
        refuse_huge_pages();
        let refused = are_refused();
        assert_ne!(refused, Some(false));
        with_huge_pages_unless(|| false, || assert_eq!(are_refused(), before));
        assert_eq!(are_refused(), refused);
        with_huge_pages_unless(|| true, || assert_eq!(are_refused(), refused));
        assert_eq!(are_refused(), refused);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_is_given_back_where_the_parameter_is_an_order() {
        for order in ["0", "9\n", "10\n"] {
            assert!(is_order(order), "{order}");
        }
        for other in ["", "-1\n", "11\n", "4294967295\n", "9 pages"] {
            assert!(!is_order(other), "{other}");
        }
    }

    #[test]
    fn offset_is_within_a_day() {
        assert!(utc_offset_seconds(0).abs() < 86_400);
        assert_eq!(utc_offset_seconds(i64::MAX), 0);
    }
}
