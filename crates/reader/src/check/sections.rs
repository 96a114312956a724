//! The checksums of all sections, and which sections there are.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::thread::Builder;

use durin_format::section::{CompressionType, SectionType, SectionVerifier};
use durin_format::{Error, Result};

use super::{CheckLevel, CheckOptions, Report};
use crate::image::Image;
use crate::payload;
use crate::sections::Section;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};

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
    for (_, error, warning) in found {
        report.errors.extend(error);
        report.warnings.extend(warning);
    }
    report.errors.extend(duplicates(image));
    report.warnings.extend(unused_index(image));
    report
}

fn check_all(image: &Image, options: &CheckOptions, progress: &(dyn Fn(u64) + Sync)) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(section) = image.sections().get(number) else {
                break;
            };
            let error = check_one(image, section, options.level, progress).err();
            let warning = oddity(image, section);
            if error.is_some() || warning.is_some() {
                lock(&found).push((number, error, warning));
            }
        }
    };
    std::thread::scope(|scope| {
        // This thread is one of them.
        for _ in 1..options.workers.min(image.sections().len()) {
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

fn check_one(
    image: &Image,
    section: &Section,
    level: CheckLevel,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<()> {
    if image.version().has_v1_sections() {
        progress(section.payload_len);
        return Ok(());
    }
    let (_, header) = image.header_of(section)?;
    let mut verifiers = vec![SectionVerifier::xxh3(&header)];
    if level == CheckLevel::Full {
        verifiers.push(SectionVerifier::sha2(&header));
    }
    payload::verify_streaming(image.source(), section, verifiers, progress)
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
