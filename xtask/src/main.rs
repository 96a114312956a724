//! The task runner, `cargo xtask TASK`: needs nothing installed but Rust and a C compiler.
//!
//! It runs the programs as a user does and knows none of our libraries.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

mod bench;
mod ci;
mod install;
mod man;
mod million;
mod report;
mod round_trip;
mod tidy;
mod try_tree;
mod workspace;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask TASK

  try [DIR] [--level=N]   pack a real tree, mount it, compare every byte, and print what it took
  ci                      everything that must pass: format, lints, tidy, all tests
  tidy                    the rules of this workspace that no other tool knows
  roundtrip DIR [--levels=0,1,...]
                          pack a tree at several levels, check, mount, unpack, compare
  million                 a million files: build, mount and list within 2 GiB
  bench [DIR] [--runs=N] [--only=build|read]
                          figures against squashfs, as a Markdown table
  man DIR                 write the manual pages
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((task, rest)) = arguments.split_first() else {
        print!("{HELP}");
        return ExitCode::FAILURE;
    };
    let result = match task.as_str() {
        "try" => try_tree::run(rest),
        "ci" => ci::run(rest),
        "tidy" => tidy::run(rest),
        "roundtrip" => round_trip::run(rest),
        "million" => million::run(rest),
        "bench" => bench::run(rest),
        "man" => man::run(rest),
        "help" | "-h" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        _ => Err(anyhow::anyhow!("unknown task {task}\n{HELP}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
