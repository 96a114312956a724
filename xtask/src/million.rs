//! `cargo xtask million`: the test of many files with its full million.

use anyhow::Result;

use crate::workspace::{cargo, check_options, succeed};

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    check_options(arguments, &[])?;
    let test = [
        "test",
        "--locked",
        "--package",
        "durin-cli",
        "--test",
        "e2e",
    ];
    let mut command = cargo(&test);
    command.args(["--", "--nocapture", "many_files"]);
    succeed(command.env("DURIN_MILLION", "1"))
}
