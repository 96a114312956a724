//! The default tree of the benchmarks: the kernel source of Debian's package linux-source-6.1.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::say::say;
use crate::{install, workspace};

const ARCHIVE: &str = "/usr/src/linux-source-6.1.tar.xz";

/// Returns the unpacked source: what `DURIN_LINUX` names, else a copy below the target folder, unpacked once.
pub(super) fn kernel_source() -> Result<PathBuf> {
    if let Some(dir) = std::env::var_os("DURIN_LINUX") {
        return Ok(PathBuf::from(dir));
    }
    let dir = workspace::target_dir().join("linux-source-6.1");
    if dir.is_dir() {
        return Ok(dir);
    }
    if !Path::new(ARCHIVE).is_file() {
        install::package("linux-source-6.1")?;
    }
    say!("unpacking {ARCHIVE} ...");
    let partial = dir.with_extension("partial");
    std::fs::create_dir_all(&partial)?;
    let mut tar = Command::new("tar");
    tar.args(["-x", "--strip-components=1", "-f", ARCHIVE, "-C"])
        .arg(&partial);
    workspace::succeed(&mut tar)?;
    std::fs::rename(partial, &dir)?;
    Ok(dir)
}
