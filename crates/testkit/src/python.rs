//! The independent decoder: a Python program that shares no line with ours and judges what we write.
//!
//! It lies beside the vectors (or where `DURIN_DECODER` says) and needs four packages from PyPI, which go into a virtual
//! environment below `target`, made once.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::run::Run;
use crate::vectors::located;

const PACKAGES: [&str; 4] = ["zstandard", "lz4", "brotli", "xxhash"];

/// A Python that can run the decoder.
#[derive(Debug, Clone)]
pub struct Decoder {
    python: PathBuf,
    scripts: PathBuf,
}

impl Decoder {
    /// Finds the decoder and makes its environment, once for all tests.
    ///
    /// # Errors
    ///
    /// Says what is missing, for [`crate::require!`].
    pub fn find() -> Result<Self, String> {
        let scripts = located("DURIN_DECODER", "decoder");
        if !scripts.join("check.py").is_file() {
            let place = scripts.display();
            return Err(format!(
                "no independent decoder in {place} (set DURIN_DECODER)"
            ));
        }
        let python = environment()?;
        Ok(Self { python, scripts })
    }

    /// Runs the decoder's checker over an image.
    ///
    /// # Errors
    ///
    /// What the checker says about the image unless it says that all is well.
    pub fn check(&self, image: &Path) -> Result<(), String> {
        let run = Run::new(&self.python)
            .arg(self.scripts.join("check.py"))
            .arg(image);
        let outcome = run.time_max(Duration::from_secs(600)).output();
        let said = String::from_utf8_lossy(&outcome.stdout);
        let is_ok = outcome.code == Some(0) && said.contains("('ok', '')");
        if is_ok {
            Ok(())
        } else {
            Err(format!("{said}\n{outcome}"))
        }
    }

    /// Decodes an image and returns its manifest as JSON.
    ///
    /// # Errors
    ///
    /// The decoder's messages if it cannot.
    pub fn manifest(&self, image: &Path) -> Result<String, String> {
        let run = Run::new(&self.python)
            .arg("-c")
            .arg(MANIFEST_SCRIPT)
            .arg(&self.scripts);
        let outcome = run.arg(image).time_max(Duration::from_secs(600)).output();
        match outcome.code {
            Some(0) => Ok(String::from_utf8_lossy(&outcome.stdout).into_owned()),
            _ => Err(outcome.to_string()),
        }
    }
}

const MANIFEST_SCRIPT: &str = include_str!("python_manifest.py");

/// Makes the virtual environment if it is not there, one process at a time, and returns its interpreter.
fn environment() -> Result<PathBuf, String> {
    let target = target_dir();
    std::fs::create_dir_all(&target).map_err(|error| error.to_string())?;
    let lock = File::create(target.join("python-env.lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let dir = target.join("python-env");
    let python = dir.join("bin/python");
    let ready = dir.join("ready");
    if ready.is_file() {
        return Ok(python);
    }
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&dir))?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    run(Command::new(&python).args(pip).args(PACKAGES))?;
    File::create(ready).map_err(|error| error.to_string())?;
    Ok(python)
}

fn target_dir() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from)
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    let output = command
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{shown}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::manifest::Manifest;
    use crate::vectors::Vectors;

    #[test]
    fn the_decoder_knows_good_from_bad() {
        let decoder = crate::require!(Decoder::find());
        let vectors = crate::require!(Vectors::find());
        let good = vectors.image("handmade", "base");
        decoder.check(&good).unwrap();
        let found = Manifest::parse(&decoder.manifest(&good).unwrap()).unwrap();
        assert_eq!(found.entries.len(), Vectors::manifest(&good).entries.len());
        assert!(decoder.check(&vectors.image("evil", "xxh-flip")).is_err());
    }
}
