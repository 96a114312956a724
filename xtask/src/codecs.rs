//! `cargo xtask codecs DIR SPEC...`: what compression settings cost and save, by the benchmark of `codec`.

use anyhow::Result;

use crate::workspace;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    // Settings and their meaning belong to the benchmark, which checks them.
    let mut command = workspace::cargo(&[
        "bench",
        "--profile",
        "fast",
        "--package",
        "durin-codec",
        "--bench",
        "effort",
        "--",
    ]);
    workspace::succeed(command.args(arguments))
}
