//! Unpacking DwarFS images to a directory or to an archive.
//!
//! In: an open [`Image`] and a target directory. Out: the tree, a [`Report`], and messages through [`Events`].
//! Directories are made first, then regular files, block by block, so that each is decoded once, then
//! symlinks and nodes; the attributes of directories come last, children before parents.
//!
//! **Invariants.** Nothing outside of the target is ever touched: every name is used alone, from a descriptor of its
//! directory, and no symlink is followed, whatever the image says and whatever lies in the target. No partial file stays
//! behind. Memory depends on the number of paths, the size of blocks and the limit of the image's cache, not on sizes of files.
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//! use durin_extract::{ExtractOptions, Stats, extract_to_directory};
//! use durin_format::events::Quiet;
//! use durin_reader::{Image, ImageOptions};
//!
//! # fn main() -> durin_format::Result<()> {
//! let source = durin_source::open(Path::new("tree.dwarfs"), durin_source::OpenMode::Mmap)?;
//! let image = Image::open(source, &ImageOptions::default())?;
//! let report = extract_to_directory(
//!     &image,
//!     Path::new("out"),
//!     &ExtractOptions::default(),
//!     &Stats::default(),
//!     &Quiet,
//!     &AtomicBool::new(false),
//! )?;
//! assert_eq!(report.errors, 0);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod archive;
mod attributes;
mod content;
mod dirs;
mod files;
mod job;
mod make;
pub mod options;
pub mod pattern;
mod plan;
pub mod salvage;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use durin_format::events::Events;
use durin_format::{Error, Result};
use durin_reader::{FileKind, Image};
use rustix::fs::{Mode, OFlags};

use crate::dirs::Dirs;
use crate::job::{Job, Run};
use crate::plan::{Paths, Plan};

pub use archive::{ArchiveFormat, ArchiveOptions, Filter, extract_to_archive};
pub use options::{ExtractOptions, OwnerRestore, Report, Stats};
pub use pattern::PatternSet;

/// Extracts `image` into the directory `target`, which must exist.
///
/// The target itself gets the attributes of the image's root if it was empty; otherwise it is somebody's place already, and
/// keeps its own. Existing files are replaced, existing directories are kept and filled.
/// `cancel` ends the extraction soon after it becomes true.
///
/// # Errors
/// `Io` if the target cannot be read or written, `InvalidInput` if a symlink is there in the place of a directory,
/// `Cancelled`; without [`continue_on_error`](ExtractOptions::continue_on_error) also `Corrupt` and others for the first
/// thing that cannot be read from the image. What has been extracted before stays.
pub fn extract_to_directory(
    image: &Image,
    target: &Path,
    options: &ExtractOptions,
    stats: &Stats,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<Report> {
    let target = Target::New(target, &mut false);
    extract_planned(image, target, options, stats, events, cancel, &mut |_| ())
}

/// Where something is extracted to.
pub(crate) enum Target<'a> {
    /// A directory of the user's; tells whether it was empty, so that it gets the attributes of the image's root.
    New(&'a Path, &'a mut bool),
    /// The same again, which was empty before or not.
    Again(&'a Path, bool),
}

/// Extracts what is in a plan after `edit` has changed it.
pub(crate) fn extract_planned(
    image: &Image,
    target: Target<'_>,
    options: &ExtractOptions,
    stats: &Stats,
    events: &dyn Events,
    cancel: &AtomicBool,
    edit: &mut dyn FnMut(&mut Plan),
) -> Result<Report> {
    let (top, was_empty) = match target {
        Target::New(path, was_empty) => {
            let (top, is_empty) = open_target(path)?;
            *was_empty = is_empty;
            (top, is_empty)
        }
        Target::Again(path, was_empty) => (open_target(path)?.0, was_empty),
    };
    let mut plan = Plan::make(image, options, Paths::Names)?;
    let refused = std::mem::take(&mut plan.refused);
    edit(&mut plan);
    let run = Run::new(image, options, stats, &plan, events, cancel);
    let job = Job::new(run, Dirs::new(&plan, top));
    job.begin(refused)?;
    let mut is_there = vec![false; plan.dirs.len()];
    let mut done = make::directories(&job, &mut is_there);
    if done.is_ok() {
        done = files::extract(&job, &is_there);
    }
    if done.is_ok() {
        done = others(&job, &is_there);
    }
    // Also after a failure: what is there is of more use with its attributes than locked up in private directories.
    let finished = make::directory_attributes(&job, &is_there, was_empty);
    done.and(finished)?;
    let clamped = job.counts.clamped_times.load(Ordering::Relaxed);
    if clamped > 0 {
        job.note(&format!(
            "{clamped} times are out of the range of the target's file system"
        ));
    }
    Ok(job.report())
}

/// Opens the target and tells whether it is empty.
fn open_target(target: &Path) -> Result<(OwnedFd, bool)> {
    let failed = |errno: rustix::io::Errno| {
        let hint = match errno {
            rustix::io::Errno::NOENT => ", which must exist",
            _ => "",
        };
        let text = format!(
            "cannot open the target directory {}{hint}",
            target.display()
        );
        Error::io(text, errno.into())
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = rustix::fs::open(target, flags, Mode::empty()).map_err(failed)?;
    for entry in rustix::fs::Dir::read_from(&top).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok((top, false));
        }
    }
    Ok((top, true))
}

/// Makes symlinks and nodes.
fn others(job: &Job<'_>, is_there: &[bool]) -> Result<()> {
    for entry in &job.plan.entries {
        if !is_there.get(entry.dir as usize).is_some_and(|there| *there) {
            continue;
        }
        job.check_cancel()?;
        match entry.kind {
            FileKind::Regular | FileKind::Directory => {}
            FileKind::Symlink => make::symlink(job, entry)?,
            _ => make::node(job, entry)?,
        }
    }
    Ok(())
}
