//! Checking a whole image: the checksums of all sections and the consistency of the metadata.
//!
//! * [`sections`] reads every section and compares a checksum, with several threads.
//! * [`inodes`], [`directories`], [`tree`], [`strings`], [`contents`], [`sizes`] and [`extras`] look at every value of
//!   the metadata, a topic each, and find at most one error each: the first.
//!
//! **Cost**: one pass over the file and about three over the metadata. **Memory**: a few bytes for each directory and
//! each regular file; nothing for each entry or chunk. No recursion.

mod contents;
mod directories;
mod extras;
mod inodes;
mod sections;
mod sizes;
mod strings;
mod tree;

use durin_format::{Error, Result};

use crate::image::Image;

/// How thoroughly [`Image::check`] looks at sections. The metadata is always checked in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckLevel {
    /// XXH3-64 of every section: finds every accident.
    #[default]
    Quick,
    /// SHA-512/256 and XXH3-64 of every section.
    Full,
}

/// How to check an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// How thoroughly.
    pub level: CheckLevel,
    /// Threads that read sections; 0 counts as 1.
    pub workers: usize,
}

/// What a check found.
#[derive(Debug, Default)]
pub struct Report {
    /// What is wrong, sections first, in file order.
    pub errors: Vec<Error>,
    /// What is odd and does no harm.
    pub warnings: Vec<String>,
    /// Sections that cannot be read or have a wrong checksum, as places in [`Image::sections`], in order.
    pub damaged: Vec<usize>,
    /// Whether nothing is wrong with the metadata.
    pub is_metadata_consistent: bool,
    /// Number of sections read.
    pub sections_checked: u32,
    /// Bytes of all payloads read.
    pub bytes: u64,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.errors.is_empty()
    }
}

impl Image {
    /// Checks all sections and the metadata. Blocks are not decompressed.
    ///
    /// `progress` is called with the bytes read so far and the bytes to read, from several threads.
    #[must_use]
    pub fn check(&self, options: &CheckOptions, progress: &(dyn Fn(u64, u64) + Sync)) -> Report {
        let mut report = sections::check(self, options, progress);
        let (errors, warnings) = metadata(self);
        // A history that cannot be read harms nothing else; a section with a wrong checksum has been reported already.
        if report.is_ok()
            && let Err(error) = self.history()
        {
            report.warnings.push(format!("history: {error}"));
        }
        report.is_metadata_consistent = errors.is_empty();
        report.errors.extend(errors);
        report.warnings.extend(warnings);
        report
    }
}

/// Checks the metadata and returns the first error.
pub(crate) fn metadata_consistency(image: &Image) -> Result<()> {
    let (errors, _) = metadata(image);
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// One topic of the metadata; what is odd goes to the list.
type Topic = fn(&Image, &mut Vec<String>) -> Result<()>;

/// Checks the metadata: errors and warnings.
fn metadata(image: &Image) -> (Vec<Error>, Vec<String>) {
    // Without sound inodes and ranges of entries the other topics would only say the same in other words.
    let first: [Topic; 2] = [inodes::check, directories::check];
    let then: [Topic; 5] = [
        tree::check,
        strings::check,
        contents::check,
        sizes::check,
        extras::check,
    ];
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let mut run = |topics: &[Topic], warnings: &mut Vec<String>| {
        errors.extend(
            topics
                .iter()
                .filter_map(|topic| topic(image, warnings).err())
                .map(|error| image.metadata().place(error)),
        );
        errors.is_empty()
    };
    if run(&first, &mut warnings) {
        run(&then, &mut warnings);
    }
    (errors, warnings)
}
