//! The task runner, `cargo xtask TASK`: needs nothing installed but Rust and a C compiler.
//!
//! It runs the programs as a user does and knows none of our libraries.

#![forbid(unsafe_code)]

mod bench;
mod ci;
mod client;
mod codecs;
mod corpora;
mod icount;
mod install;
mod long;
mod man;
mod million;
mod report;
mod round_trip;
mod say;
mod stress;
mod tidy;
mod try_tree;
mod workspace;

use std::process::ExitCode;

use say::{complain, say};

/// The exit status when nobody reads what is printed: as a shell reports a program that SIGPIPE ended.
const NOBODY_READS: u8 = 128 + 13;

const HELP: &str = "\
cargo xtask TASK

  try [DIR] [--level=N]   pack a real tree, mount it, compare every byte, and print what it took
  ci                      everything that must pass: format, lints, tidy, all tests
  tidy                    the rules of this workspace that no other tool knows
  roundtrip DIR [--corpus=NAME,...] [--levels=0-9] [--profile=release|fast] [--arguments='-S 20 ...']
                          pack trees at several levels, check, mount, unpack, compare
  archives                every public image in every archive format with every filter, unpacked by tar, bsdtar, cpio,
                          unzip and the filters' own programs; some minutes
  million                 a million files: build, mount and list within 2 GiB
  fsx [--seconds=3600] [--seed=N]
                          random reads of a mounted image in every way, compared with the source
  fuzz [--seconds=3600] [--seed=N] [--image=N]
                          real images damaged at random, and everything asked of them; a seed gives the same images again,
                          --image tries one of them
  cycles [--count=10000]  mount and unmount with readers at work
  stress [--case=million,sparse,near,images] [--quick] [--levels=1,3,7] [--limit=512] [--kill=700]
                          trees that take much memory, built where more than a limit is fatal
  corpora [NAME|all [DEST]]
                          make the trees of the benchmarks, or list them
  bench --quick           everything that is compared with others, in ten minutes; bench --help has the suites
  bench --docs            tables and plots of README.md and docs/comparison.md, made anew from benchmarks/record
  codecs DIR [--bits=24] [--pieces=4] [--rounds=1] [BITS/]SPEC...
                          size and time of compression settings on samples of a real tree
  icount [--update]       instructions of fixed small jobs against benchmarks/icount.toml
  order                   order a million made-up sketches, friendly and hostile ones: seconds and memory
  man DIR                 write the manual pages
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match say::while_somebody_reads(|| run(&arguments)) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            complain!("error: {error:#}");
            ExitCode::FAILURE
        }
        None => ExitCode::from(NOBODY_READS),
    }
}

fn run(arguments: &[String]) -> anyhow::Result<()> {
    let Some((task, rest)) = arguments.split_first() else {
        anyhow::bail!("which task?\n{HELP}");
    };
    match task.as_str() {
        "try" => try_tree::run(rest),
        "ci" => ci::run(rest),
        "tidy" => tidy::run(rest),
        "roundtrip" => round_trip::run(rest),
        "corpora" => corpora::run(rest),
        "fsx" => long::fsx(rest),
        "cycles" => long::cycles(rest),
        "fuzz" => long::fuzz(rest),
        "million" => million::run(rest),
        "stress" => stress::run(rest),
        "bench" => bench::run(rest),
        bench::TASK => bench::run_guarded(rest),
        "client" => client::run(rest),
        "codecs" => codecs::run(rest),
        "icount" => icount::run(rest),
        "order" => order(rest),
        "man" => man::run(rest),
        "archives" => archives(rest),
        "help" | "-h" | "--help" => {
            say!("{}", HELP.trim_end());
            Ok(())
        }
        _ => Err(anyhow::anyhow!("unknown task {task}\n{HELP}")),
    }
}

/// Runs all tests of archives, with each format and filter for each image, of which `ci` has a sample.
fn archives(arguments: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(
        arguments.is_empty(),
        "cargo xtask archives takes no arguments"
    );
    let started = std::time::Instant::now();
    let tests = [
        "test",
        "--profile=fast",
        "--package=durin-extract",
        "--test=it",
        "archives::",
    ];
    workspace::succeed(workspace::cargo(&tests).env("DURIN_ARCHIVES", "all"))?;
    say!("{:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Runs the benchmarks of the orders by similarity.
fn order(arguments: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(arguments.is_empty(), "cargo xtask order takes no arguments");
    workspace::succeed(&mut workspace::cargo(&[
        "bench",
        "--profile=fast",
        "--package=durin-writer",
        "--bench=order",
    ]))
}
