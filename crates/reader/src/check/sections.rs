//! The checksums of all sections, and which sections there are.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::thread::Builder;

use durin_format::section::{CompressionType, SectionType, Sha2Verifier, Xxh3Verifier};
use durin_format::sha512_256::together_max;
use durin_format::{Error, Result};

use super::{CheckLevel, CheckOptions, Report};
use crate::image::Image;
use crate::payload::Pieces;
use crate::sections::Section;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// Bytes of each section that is read and hashed beside others: of all of them, few enough for a processor's second level
/// cache.
const PIECE_LEN: usize = 64 << 10;

/// What one thread found out about one section: its place in the list, and an error.
type Found = (usize, Option<Error>, Option<String>);

/// Checks all sections.
pub(super) fn check(
    image: &Image,
    options: &CheckOptions,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Report {
    let mut report = Report {
        sections_checked: u32::try_from(image.sections().len()).unwrap_or(u32::MAX),
        bytes: image
            .sections()
            .iter()
            .map(|section| section.payload_len)
            .sum(),
        ..Report::default()
    };
    let (total, done) = (report.bytes, AtomicU64::new(0));
    let progress = |len| progress(done.fetch_add(len, Ordering::Relaxed) + len, total);
    let mut found = check_all(image, options, &progress);
    found.sort_by_key(|(number, ..)| *number);
    for (number, error, warning) in found {
        if error.is_some() {
            report.damaged.push(number);
        }
        report.errors.extend(error);
        report.warnings.extend(warning);
    }
    report.errors.extend(duplicates(image));
    report.warnings.extend(unused_index(image));
    report
}

fn check_all(image: &Image, options: &CheckOptions, progress: &(dyn Fn(u64) + Sync)) -> Vec<Found> {
    let sections = image.sections().len();
    let workers = options.workers.clamp(1, sections.max(1));
    // So many that all threads have work.
    let together = match options.level {
        CheckLevel::Full => together_max().min(sections.div_ceil(workers)).max(1),
        _ => 1,
    };
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let report = |number, section: &Section, error: Option<Error>| {
        let warning = oddity(image, section);
        if error.is_some() || warning.is_some() {
            lock(&found).push((number, error, warning));
        }
    };
    let begin = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let section = image.sections().get(number)?;
            match Checking::new(image, number, section, options.level) {
                Ok(Some(checking)) => return Some(checking),
                Ok(None) => {
                    progress(section.payload_len);
                    report(number, section, None);
                }
                Err(error) => report(number, section, Some(error)),
            }
        }
    };
    let work = || {
        let mut under_way: Vec<Checking<'_>> = Vec::new();
        loop {
            let missing = together - under_way.len();
            under_way.extend(std::iter::from_fn(begin).take(missing));
            if under_way.is_empty() {
                break;
            }
            for ended in step(&mut under_way, image, progress) {
                let (number, section) = (ended.number, ended.section);
                report(number, section, ended.finish().err());
            }
        }
    };
    std::thread::scope(|scope| {
        // This thread is one of them.
        for _ in 1..workers {
            // Without another thread this one does it all.
            Builder::new()
                .name("check".to_owned())
                .spawn_scoped(scope, work)
                .ok();
        }
        work();
    });
    found
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A section whose checksums are being made.
struct Checking<'a> {
    number: usize,
    section: &'a Section,
    pieces: Pieces<'a>,
    xxh3: Xxh3Verifier,
    sha2: Option<Sha2Verifier>,
    failed: Option<Error>,
}

impl<'a> Checking<'a> {
    /// `None` if the section has no checksums.
    fn new(
        image: &Image,
        number: usize,
        section: &'a Section,
        level: CheckLevel,
    ) -> Result<Option<Self>> {
        if image.version().has_v1_sections() {
            return Ok(None);
        }
        let (_, header) = image.header_of(section)?;
        // Several are read side by side, which a disk would have to hop between.
        image
            .source()
            .advise(section.payload_offset, section.payload_len);
        Ok(Some(Self {
            number,
            section,
            pieces: Pieces::new(section, PIECE_LEN),
            xxh3: Xxh3Verifier::new(&header),
            sha2: (level == CheckLevel::Full).then(|| Sha2Verifier::new(&header)),
            failed: None,
        }))
    }

    fn finish(self) -> Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.xxh3
            .finish()
            .and_then(|()| self.sha2.map_or(Ok(()), Sha2Verifier::finish))
            .map_err(|error| error.at(self.section.location()))
    }
}

/// Reads a piece of each section and adds it to its checksums; returns the sections that have ended.
fn step<'a>(
    under_way: &mut Vec<Checking<'a>>,
    image: &Image,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<Checking<'a>> {
    let mut ended = Vec::new();
    let mut going = Vec::with_capacity(under_way.len());
    for mut checking in under_way.drain(..) {
        match checking.pieces.next(image.source()) {
            Ok(Some(piece)) => {
                checking.xxh3.update(piece);
                progress(piece.len() as u64);
                going.push(checking);
            }
            Ok(None) => ended.push(checking),
            Err(error) => {
                checking.failed = Some(error);
                ended.push(checking);
            }
        }
    }
    *under_way = going;
    let (mut verifiers, mut pieces) = (Vec::new(), Vec::new());
    for checking in under_way {
        if let Some(sha2) = &mut checking.sha2 {
            verifiers.push(sha2);
            pieces.push(checking.pieces.last());
        }
    }
    Sha2Verifier::update_all(verifiers.into_iter(), &pieces);
    ended
}

/// What is unusual about the header of a section.
fn oddity(image: &Image, section: &Section) -> Option<String> {
    // An unreadable header is an error that was found already.
    let (header, _) = image.header_of(section).ok()?;
    let place = section.location();
    if let SectionType::Unknown(code) = header.section_type {
        return Some(format!("{place}: unknown section type {code}"));
    }
    if let CompressionType::Unknown(code) = header.compression {
        return Some(format!("{place}: unknown compression type {code}"));
    }
    let number = header.number.filter(|number| *number != section.number)?;
    Some(format!("{place}: the section is numbered {number}"))
}

/// Sections of which there may be one only, the second and later ones.
fn duplicates(image: &Image) -> Vec<Error> {
    let mut seen = BTreeSet::new();
    image
        .sections()
        .iter()
        .filter(|section| {
            !matches!(
                section.section_type,
                SectionType::Block | SectionType::History
            ) && !seen.insert(section.section_type)
        })
        .map(|section| Error::corrupt("duplicate section").at(section.location()))
        .collect()
}

/// A section index that is there and could not be used.
fn unused_index(image: &Image) -> Option<String> {
    let last = image.sections().last()?;
    let is_unused = last.section_type == SectionType::SectionIndex
        && !image.has_section_index()
        && image.version().minor >= 4;
    is_unused.then(|| {
        format!(
            "{}: the section index does not fit the sections",
            last.location()
        )
    })
}
