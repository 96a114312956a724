//! The program `durin`.

use std::process::ExitCode;

#[cfg(feature = "mimalloc")]
durin_cli::allocate_with_mimalloc!();

fn main() -> ExitCode {
    durin_cli::durin::main()
}
