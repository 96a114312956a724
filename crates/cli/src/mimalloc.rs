//! What programs that allocate with mimalloc tell it. `dwarfs` has the system's allocator, and nothing of this.
#![allow(
    unsafe_code,
    reason = "mimalloc's settings have no safe form; each is wrapped here"
)]

pub use ::mimalloc::MiMalloc;

use crate::common::system::{ALLOCATOR, Allocator};

/// Options that the bindings do not name: `mi_option_arena_eager_commit` and `mi_option_purge_delay`, in milliseconds.
const ARENA_EAGER_COMMIT: libmimalloc_sys::mi_option_t = 4;
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Makes mimalloc the allocator of a program.
#[macro_export]
macro_rules! allocate_with_mimalloc {
    () => {
        #[global_allocator]
        static ALLOCATOR: $crate::mimalloc::MiMalloc = $crate::mimalloc::MiMalloc;

        // SAFETY: the section holds functions that are called once each with C's arguments, which this one leaves alone. It
        // stores to static variables.
        #[allow(
            unsafe_code,
            reason = "the allocator must know before `main`, which allocates"
        )]
        #[used]
        #[unsafe(link_section = ".init_array")]
        static SET_UP_ALLOCATOR: extern "C" fn() = $crate::mimalloc::set_up;
    };
}

/// Runs before `main`, which allocates: mimalloc takes a gibibyte of address space with its first allocation, of which the
/// kernel gives huge pages where that is committed at once. They hold what is long freed, or never used, beside what is.
/// And it keeps for a second what is freed. Together that is 50 to 150 MiB more than is counted, of which there may be a limit.
/// Buffers for which huge pages save time ask for them themselves.
pub extern "C" fn set_up() {
    // SAFETY: options that exist; no other thread runs yet. `MIMALLOC_ARENA_EAGER_COMMIT` and `MIMALLOC_PURGE_DELAY` still win.
    unsafe {
        libmimalloc_sys::mi_option_set_default(ARENA_EAGER_COMMIT, 0);
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, 10);
    }
    // Nobody has said another before.
    ALLOCATOR.get_or_init(|| Allocator {
        keep_freed_memory,
        release_free_memory,
    });
}

fn keep_freed_memory() {
    // SAFETY: an option that exists, which is read when memory is freed. `MIMALLOC_PURGE_DELAY` still wins.
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, 1000);
    }
}

fn release_free_memory() {
    // SAFETY: `mi_collect` has no preconditions; it gives back what this thread and none has in use.
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}
