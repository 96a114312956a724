//! The program `dwarfs`.
//!
//! It has the system's allocator, unlike the others: that gives back what a cache frees. With mimalloc the driver's peak was
//! 650 MiB instead of 540 for a cache of 512, and 25 s later it still had 100 MiB instead of 42, in the same CPU time
//! (`tar` of Linux 6.1 from a mount). It is also a twentieth smaller, and starts sooner.

use std::process::ExitCode;

fn main() -> ExitCode {
    durin_cli::dwarfs::main()
}
