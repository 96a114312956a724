//! Images, built once a corpus and command and then kept: what is measured is reading them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use durin_testkit::roundtrip::remove_tree;
use serde::{Deserialize, Serialize};

use super::definition::Image;
use super::shell::{self, Variables};
use crate::bench::clean;
use crate::bench::session::Corpus;
use crate::say::say;

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
    time_max: Duration,
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
    say!("building {} ...", path.display());
    for old in [&note, &path] {
        if old.exists() {
            std::fs::remove_file(old).with_context(|| old.display().to_string())?;
        }
    }
    // What is interrupted can be told from what is whole, and is taken away.
    let partial = path.with_extension("partial");
    std::fs::create_dir_all(&partial)?;
    let made = build(image, &partial, &path, (variables, time_max));
    clean::remove(&partial)?;
    made?;
    std::fs::write(&note, serde_json::to_string(&origin)?)?;
    Ok(path)
}

/// Builds an image in a directory, and moves it from there with whatever else was made.
fn build(
    image: &Image,
    partial: &Path,
    path: &Path,
    (variables, time_max): (&Variables, Duration),
) -> Result<()> {
    let name = path.file_name().context("no name")?;
    let variables = variables.with("IMAGE", partial.join(name));
    let taken = shell::run(&image.build, &variables, time_max)?;
    if let Some(failure) = taken.failure {
        anyhow::bail!("cannot build {}: {failure}", image.name);
    }
    ensure!(partial.join(name).is_file(), "{} made no image", image.name);
    for entry in std::fs::read_dir(partial)? {
        let entry = entry?;
        let place = path.with_file_name(entry.file_name());
        if place.is_dir() {
            remove_tree(&place)?;
        }
        std::fs::rename(entry.path(), &place).with_context(|| place.display().to_string())?;
    }
    Ok(())
}

/// What an image takes on disk: images of other file systems can have holes.
pub(super) fn disk_bytes(path: &Path) -> u64 {
    path.metadata()
        .map_or(0, |data| data.len().min(data.blocks() * 512))
}
