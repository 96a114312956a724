//! `cargo xtask man DIR`: the manual pages, which the programs know best themselves.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{check_options, positional, release_programs, succeed};

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    check_options(arguments, &[])?;
    let dir = positional(arguments).context("which directory?")?;
    let programs = release_programs()?;
    succeed(Command::new(programs.path("durin")).arg("man").arg(dir))
}
