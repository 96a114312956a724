//! Getting out of a damaged image what is still in it.
//!
//! [`scan`] finds sections without the index, [`composed`] makes an image of them that can be opened, [`losses`] finds the
//! files that need what is lost; all others are extracted as ever. Without metadata the contents of blocks are written.
//! docs/salvage.md says what users may rely on.

mod composed;
mod index;
mod losses;
mod raw;
mod scan;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use durin_format::events::Events;
use durin_format::section::SectionType;
use durin_format::{InodeNum, Result};
use durin_reader::{FileKind, Image, ImageOffset, ImageOptions};
use durin_source::Source;

use crate::options::{ExtractOptions, Report, Stats};
use crate::plan::{Paths, Plan};
use crate::{Target, extract_planned};
use composed::{Composed, StandIn};
use scan::Scan;

pub use index::{RepairedIndex, repair_index};
pub use losses::LostRange;
pub use scan::SectionState;

/// Added to the names of files with zeros in place of what is lost.
const SUFFIX: &str = ".partial";
/// How often it is repeated for a name that nothing else has.
const SUFFIX_COUNT_MAX: usize = 8;

/// What to salvage.
#[derive(Clone, Debug)]
pub struct SalvageOptions {
    /// How the image is opened; where it begins may be found in spite of the damage.
    pub image: ImageOptions,
    /// What is extracted.
    pub extract: ExtractOptions,
    /// Whether files are written that are not whole: with zeros for what is lost, and `.partial` after their name.
    pub with_partial: bool,
}

/// What was salvaged, and what not.
#[derive(Debug)]
pub struct Salvaged {
    /// Bytes before the image.
    pub image_offset: u64,
    /// All sections, those that were not found included.
    pub sections: Vec<SectionFound>,
    /// Why the metadata cannot be used; then there are no files, only contents of blocks.
    pub metadata_error: Option<String>,
    /// What was extracted; without metadata its `files` are blocks.
    pub report: Report,
    /// Files of which something is lost, in the order of the tree.
    pub lost: Vec<LostFile>,
    /// Names of the files that contents of blocks were written to, without metadata.
    pub raw_blocks: Vec<String>,
}

/// A section, or where one should be.
#[derive(Clone, Copy, Debug)]
pub struct SectionFound {
    /// Its number.
    pub number: u32,
    /// What it holds, if it was found.
    pub section_type: Option<SectionType>,
    /// Bytes from the start of the file.
    pub offset: Option<u64>,
    /// Bytes of the payload.
    pub len: Option<u64>,
    /// `None` if it was not found.
    pub state: Option<SectionState>,
}

/// A file of which something is lost.
#[derive(Clone, Debug)]
pub struct LostFile {
    /// Its paths.
    pub paths: Vec<Vec<u8>>,
    /// Its bytes.
    pub size: u64,
    /// What is lost of it; empty if that cannot be said.
    pub ranges: Vec<LostRange>,
    /// What was written instead, if anything was: the name of the first path with a suffix.
    pub partial: Option<Vec<u8>>,
}

/// Extracts what survives of the image in `source` to `target`, which must exist.
///
/// # Errors
/// `NotFound` if nothing of an image is found, `Io` if the target cannot be written, `Cancelled`.
pub fn salvage(
    source: &Arc<dyn Source>,
    target: &Path,
    options: &SalvageOptions,
    stats: &Stats,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<Salvaged> {
    let scan = scan::scan(source.as_ref(), options.image.offset)?;
    let mut salvaged = Salvaged {
        image_offset: scan.start,
        sections: sections(&scan),
        metadata_error: None,
        report: Report::default(),
        lost: Vec::new(),
        raw_blocks: Vec::new(),
    };
    for section in salvaged
        .sections
        .iter()
        .filter(|section| section.state != Some(SectionState::Good))
    {
        events.warn(&describe(section));
    }
    let image = match open(source, &scan, StandIn::Nothing, options) {
        Ok(image) => image,
        Err(error) => {
            events.error(&format!("the metadata cannot be used: {error}"));
            salvaged.metadata_error = Some(error.to_string());
            raw::write(
                source.as_ref(),
                &scan,
                target,
                &mut salvaged,
                events,
                cancel,
            )?;
            return Ok(salvaged);
        }
    };
    let bad = losses::bad_blocks(&image);
    let extract = ExtractOptions {
        continue_on_error: true,
        ..options.extract.clone()
    };
    let mut lost = Vec::new();
    let mut was_empty = false;
    let mut leave_out = |plan: &mut Plan| lost = take_lost(&image, plan, &bad);
    salvaged.report = extract_planned(
        &image,
        Target::New(target, &mut was_empty),
        &extract,
        stats,
        events,
        cancel,
        &mut leave_out,
    )?;
    if options.with_partial && !lost.is_empty() {
        let zeros = StandIn::Zeros(image.block_size());
        // Good blocks have been verified, and those that stand in for others have no checksum.
        let mut unverified = options.clone();
        unverified.image.cache.verify_blocks = false;
        let partial = open(source, &scan, zeros, &unverified)?;
        let mut keep = |plan: &mut Plan| keep_lost(&partial, plan, &mut lost);
        let report = extract_planned(
            &partial,
            Target::Again(target, was_empty),
            &extract,
            &Stats::default(),
            events,
            cancel,
            &mut keep,
        )?;
        salvaged.report.errors += report.errors;
        for file in &mut lost {
            let is_missing = |path: &mut Vec<u8>| {
                let path = target.join(OsStr::from_bytes(path));
                path.symlink_metadata().is_err()
            };
            file.partial.take_if(is_missing);
        }
    }
    for file in &lost {
        events.error(&file.describe());
    }
    salvaged.lost = lost;
    Ok(salvaged)
}

/// Finds the files that have data in a block that cannot be read, each with all its paths.
///
/// # Errors
/// `Corrupt` if the directories cannot be read.
pub fn lost_files(image: &Image) -> Result<Vec<LostFile>> {
    let mut plan = Plan::make(image, &ExtractOptions::default(), Paths::Whole)?;
    let bad = losses::bad_blocks(image);
    Ok(take_lost(image, &mut plan, &bad))
}

fn open(
    source: &Arc<dyn Source>,
    scan: &Scan,
    stand_in: StandIn,
    options: &SalvageOptions,
) -> Result<Image> {
    let mut image = options.image.clone();
    image.offset = ImageOffset::At(0);
    image.image_size = None;
    Image::open(Arc::new(Composed::new(source, scan, stand_in)), &image)
}

fn sections(scan: &Scan) -> Vec<SectionFound> {
    let mut sections = Vec::new();
    let mut next = 0;
    for found in &scan.found {
        let missing = (next..found.number).map(|number| SectionFound {
            number,
            section_type: None,
            offset: None,
            len: None,
            state: None,
        });
        sections.extend(missing);
        sections.push(SectionFound {
            number: found.number,
            section_type: Some(found.header.section_type),
            offset: Some(found.offset),
            len: Some(found.header.payload_len),
            state: Some(found.state),
        });
        next = found.number.saturating_add(1);
    }
    sections
}

fn describe(section: &SectionFound) -> String {
    let number = section.number;
    let what = section.section_type.map_or("", SectionType::name);
    match (section.state, section.offset) {
        (Some(SectionState::CutOff), Some(offset)) => {
            format!("section {number} ({what}) at offset {offset}: cut off by the end of the file")
        }
        (Some(_), Some(offset)) => {
            format!("section {number} ({what}) at offset {offset}: the checksum is wrong")
        }
        _ => format!("section {number}: not found"),
    }
}

/// Takes the files of which something is lost out of the plan.
fn take_lost(image: &Image, plan: &mut Plan, bad: &[bool]) -> Vec<LostFile> {
    let mut ranges: HashMap<InodeNum, Option<usize>> = HashMap::new();
    let mut lost: Vec<LostFile> = Vec::new();
    let entries = std::mem::take(&mut plan.entries);
    let kept = entries.into_iter().filter(|entry| {
        if entry.kind != FileKind::Regular {
            return true;
        }
        let inode = entry.entry.inode;
        let place = *ranges.entry(inode).or_insert_with(|| {
            // One whose metadata are damaged is met and reported later.
            let found = losses::of_file(image, inode, bad).unwrap_or_default();
            if found.is_empty() {
                return None;
            }
            lost.push(LostFile {
                paths: Vec::new(),
                size: image.attr(entry.entry).map_or(0, |attr| attr.size),
                ranges: found,
                partial: None,
            });
            Some(lost.len() - 1)
        });
        let Some(file) = place.and_then(|place| lost.get_mut(place)) else {
            return true;
        };
        file.paths.push(plan.path(entry));
        false
    });
    plan.entries = kept.collect();
    lost
}

/// Keeps nothing in the plan but the first name of each lost file, changed so that nothing else has it.
fn keep_lost(image: &Image, plan: &mut Plan, lost: &mut [LostFile]) {
    let by_path: HashMap<Vec<u8>, usize> = lost
        .iter()
        .enumerate()
        .filter_map(|(place, file)| Some((file.paths.first()?.clone(), place)))
        .collect();
    let mut given = HashSet::new();
    let entries = std::mem::take(&mut plan.entries);
    for mut entry in entries {
        let Some(file) = by_path
            .get(&plan.path(&entry))
            .and_then(|place| lost.get_mut(*place))
        else {
            continue;
        };
        let dir = plan.dirs.get(entry.dir as usize).map(|dir| dir.entry.inode);
        let is_in_image = |name: &[u8]| {
            dir.is_some_and(|dir| image.lookup(dir, name).is_ok_and(|found| found.is_some()))
        };
        // Many long names have one beginning, which is all that is left of them: numbers of inodes tell them apart.
        let numbered = format!(".{}{SUFFIX}", entry.entry.inode);
        let suffixes = (1..=SUFFIX_COUNT_MAX).map(|count| SUFFIX.repeat(count));
        let free = suffixes.chain([numbered]).find_map(|suffix| {
            let name = with_suffix(plan.name(&entry), suffix.as_bytes());
            let is_free = !is_in_image(&name) && !given.contains(&(entry.dir, name.clone()));
            is_free.then_some(name)
        });
        let Some(name) = free else {
            continue;
        };
        plan.rename(&mut entry, &name);
        given.insert((entry.dir, name));
        file.partial = Some(plan.path(&entry));
        plan.entries.push(entry);
    }
}

/// A name with a suffix, without as much of its end as would make it too long for file systems.
fn with_suffix(name: &[u8], suffix: &[u8]) -> Vec<u8> {
    const NAME_LEN_MAX: usize = 255;
    let is_within_char = |at: usize| name.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    let mut len = name.len();
    if len + suffix.len() > NAME_LEN_MAX {
        len = NAME_LEN_MAX.saturating_sub(suffix.len());
        while len > 0 && is_within_char(len) {
            len -= 1;
        }
    }
    [name.get(..len).unwrap_or(name), suffix].concat()
}

impl LostFile {
    /// Says in a line what is lost.
    #[must_use]
    pub fn describe(&self) -> String {
        let paths: Vec<String> = self
            .paths
            .iter()
            .map(|path| crate::plan::shown(path))
            .collect();
        let bytes: u64 = self.ranges.iter().map(|range| range.len).sum();
        let mut blocks: Vec<u32> = self.ranges.iter().map(|range| range.block).collect();
        blocks.dedup();
        let blocks: Vec<String> = blocks.iter().take(8).map(u32::to_string).collect();
        format!(
            "{}: {bytes} of {} bytes are lost with block {}",
            paths.join(", "),
            self.size,
            blocks.join(", ")
        )
    }
}
