//! Archives: which format is asked for, and where it is written to.

use std::io::Write;
use std::path::Path;

use durin_extract::{ArchiveFormat, Report};
use durin_writer::output::{AtomicFile, Overwrite};

use super::Job;
use super::options::Options;
use crate::common::exit::Failure;
use crate::common::output;

/// The names of formats, as libarchive has them.
const FORMATS: [(&str, ArchiveFormat); 12] = [
    ("cpio", ArchiveFormat::CpioOdc),
    ("newc", ArchiveFormat::CpioNewc),
    ("odc", ArchiveFormat::CpioOdc),
    ("gnutar", ArchiveFormat::Gnutar),
    ("pax", ArchiveFormat::Pax),
    ("paxr", ArchiveFormat::PaxRestricted),
    ("posix", ArchiveFormat::Pax),
    ("rpax", ArchiveFormat::PaxRestricted),
    ("ustar", ArchiveFormat::Ustar),
    ("v7", ArchiveFormat::V7),
    ("v7tar", ArchiveFormat::V7),
    ("oldtar", ArchiveFormat::V7),
];

/// The format that is asked for; `None` for a directory.
pub(super) fn format(options: &Options) -> Result<Option<ArchiveFormat>, Failure> {
    let Some(name) = &options.archives.format else {
        return Ok(None);
    };
    let found = FORMATS.iter().find(|(known, _)| known == name);
    match found {
        Some((_, format)) => Ok(Some(*format)),
        None => Err(Failure::Usage(format!(
            "unknown format '{name}'; there are {}",
            FORMATS.map(|(name, _)| name).join(", ")
        ))),
    }
}

/// Writes the archive.
pub(super) fn write(
    job: &Job<'_>,
    format: ArchiveFormat,
    options: &Options,
) -> Result<Report, Failure> {
    match options.basic.output.as_deref() {
        Some(path) if !output::is_stdout(path) => to_file(job, format, options, path),
        _ => to_stdout(job, format, options),
    }
}

fn to_file(
    job: &Job<'_>,
    format: ArchiveFormat,
    options: &Options,
    path: &Path,
) -> Result<Report, Failure> {
    // As the reference, and as tar: an archive replaces the one before it; not until it is complete, though.
    let mut file = AtomicFile::create(path, Overwrite::Allow)?;
    let report = job.watched(options, || fill(job, format, &mut file))?;
    file.commit()?;
    Ok(report)
}

fn to_stdout(job: &Job<'_>, format: ArchiveFormat, options: &Options) -> Result<Report, Failure> {
    if options.basic.stdout_progress {
        return Err(Failure::Usage(
            "--stdout-progress and an archive cannot both go to standard output".to_owned(),
        ));
    }
    output::refuse_terminal("an archive")?;
    // Not through the standard library's buffer, which looks for line breaks.
    let mut out = output::raw_stdout().map_err(output::write_failed)?;
    job.watched(options, || fill(job, format, &mut out))
}

fn fill(job: &Job<'_>, format: ArchiveFormat, target: &mut dyn Write) -> Result<Report, Failure> {
    Ok(durin_extract::extract_to_archive(
        job.image,
        format,
        target,
        &job.extract,
        &job.stats,
        job.logger,
        job.cancel,
    )?)
}
