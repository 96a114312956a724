//! What all systems of a table begin with: `$WORK/input`, made by the table's `prepare`.
//!
//! Where that takes long and nothing changes it, it is kept beside the images of mounts, and a link leads to it.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};
use durin_testkit::roundtrip::remove_tree;

use super::definition::Table;
use crate::bench::session::Corpus;
use crate::say::say;

pub(super) const NAME: &str = "input";

/// Has it made, unless it is kept.
pub(super) fn ready(
    table: &Table,
    corpus: &Corpus,
    prepare: &str,
    work: &Path,
    images: &Path,
    make: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let input = work.join(NAME);
    let kept = images.join(format!("steps-{}-{}", table.name, corpus.name));
    // Of what, and how.
    let origin = format!("{} {}\n{prepare}", corpus.files, corpus.bytes);
    let note = kept.join("origin");
    let is_there = std::fs::read_to_string(&note).is_ok_and(|found| found == origin);
    if !table.keeps_input || !is_there {
        say!("{}: preparing ...", table.name);
        make()?;
    }
    if !table.keeps_input {
        return Ok(());
    }
    if !is_there {
        if kept.exists() {
            remove_tree(&kept)?;
        }
        std::fs::create_dir_all(images)?;
        copy(&input, &kept)?;
        std::fs::write(note, origin)?;
        remove_tree(&input)?;
    }
    let kept = std::fs::canonicalize(&kept)?;
    symlink(&kept, &input).with_context(|| input.display().to_string())
}

/// Copies files, for images can be on another file system.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir(to).with_context(|| to.display().to_string())?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        std::fs::copy(entry.path(), &place).with_context(|| place.display().to_string())?;
    }
    Ok(())
}

/// Takes the link away, so that nothing goes through it.
pub(super) fn let_go(work: &Path) -> Result<()> {
    let input = work.join(NAME);
    if input.is_symlink() {
        std::fs::remove_file(&input).with_context(|| input.display().to_string())?;
    }
    Ok(())
}
