//! `cargo xtask million`: the test of many files with its full million, on nearly release-speed programs.

use anyhow::Result;

use crate::workspace::{cargo, check_options, succeed};

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    check_options(arguments, &[])?;
    let test = [
        "test",
        "--locked",
        "--profile",
        "fast",
        "--package",
        "durin-cli",
        "--test",
        "e2e",
    ];
    let mut command = cargo(&test);
    command
        .args(["--", "--nocapture", "many_files"])
        .env("DURIN_MILLION", "1");
    succeed(&mut command)
}
