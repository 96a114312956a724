//! The program `dwarfsck`.

use std::process::ExitCode;

#[cfg(feature = "mimalloc")]
durin_cli::allocate_with_mimalloc!();

fn main() -> ExitCode {
    durin_cli::dwarfsck::main()
}
