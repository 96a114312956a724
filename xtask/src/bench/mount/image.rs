//! Images, built once a corpus and command and then kept: what is measured is reading them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::definition::Image;
use super::shell::{self, Variables};
use crate::bench::session::Corpus;

const BUILD_TIME_MAX: Duration = Duration::from_secs(4 * 3600);

/// What an image was made of and how; beside it as JSON.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    command: String,
    files: u64,
    bytes: u64,
}

/// Builds the image of a corpus below `dir`, unless it is there. What comes out of it is compared all the same.
pub(super) fn ready(
    image: &Image,
    corpus: &Corpus,
    dir: &Path,
    variables: &Variables,
) -> Result<PathBuf> {
    let path = dir.join(format!("{}-{}", corpus.name, image.name));
    let note = path.with_extension("json");
    let origin = Origin {
        command: image.build.clone(),
        files: corpus.files,
        bytes: corpus.bytes,
    };
    let text = std::fs::read_to_string(&note).unwrap_or_default();
    if path.is_file() && serde_json::from_str::<Origin>(&text).is_ok_and(|found| found == origin) {
        return Ok(path);
    }
    println!("building {} ...", path.display());
    for old in [&note, &path] {
        if old.exists() {
            std::fs::remove_file(old).with_context(|| old.display().to_string())?;
        }
    }
    let variables = variables.with("IMAGE", &path);
    let taken = shell::run(&image.build, &variables, BUILD_TIME_MAX)?;
    if let Some(failure) = taken.failure {
        if path.exists() {
            std::fs::remove_file(&path)?;
        }
        anyhow::bail!("cannot build {}: {failure}", image.name);
    }
    ensure!(path.is_file(), "{} made no image", image.name);
    std::fs::write(&note, serde_json::to_string(&origin)?)?;
    Ok(path)
}

/// What an image takes on disk: images of other file systems can have holes.
pub(super) fn disk_bytes(path: &Path) -> u64 {
    path.metadata()
        .map_or(0, |data| data.len().min(data.blocks() * 512))
}
