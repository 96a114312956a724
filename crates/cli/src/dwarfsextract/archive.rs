//! Archives: where they are written to.

use std::io::Write;
use std::path::Path;

use durin_extract::{ArchiveOptions, Report};
use durin_writer::output::{AtomicFile, Overwrite};

use super::Job;
use super::options::Options;
use crate::common::exit::{self, Failure};
use crate::common::output;
use crate::common::signals::Deadline;

/// Writes the archive.
pub(super) fn write(
    job: &Job<'_>,
    archive: &ArchiveOptions,
    options: &Options,
    deadline: &Deadline,
) -> Result<Report, Failure> {
    match options.basic.output.as_deref() {
        Some(path) if !output::is_stdout(path) => to_file(job, archive, options, path, deadline),
        _ => to_stdout(job, archive, options),
    }
}

fn to_file(
    job: &Job<'_>,
    archive: &ArchiveOptions,
    options: &Options,
    path: &Path,
    deadline: &Deadline,
) -> Result<Report, Failure> {
    // As the reference, and as tar: an archive replaces the one before it; not until it is complete, though.
    let mut file = AtomicFile::create(path, Overwrite::Allow)?;
    deadline.set_temporary(file.temporary().map(Path::to_owned));
    let report = job.watched(options, || fill(job, archive, &mut file))?;
    file.sync()?;
    deadline.conclude(|| file.commit())?;
    Ok(report)
}

fn to_stdout(
    job: &Job<'_>,
    archive: &ArchiveOptions,
    options: &Options,
) -> Result<Report, Failure> {
    if options.basic.stdout_progress {
        return Err(Failure::Usage(
            "--stdout-progress and an archive cannot both go to standard output".to_owned(),
        ));
    }
    output::refuse_terminal("an archive")?;
    // Not through the standard library's buffer, which looks for line breaks.
    let mut out = output::raw_stdout().map_err(output::write_failed)?;
    let written = job.watched(options, || fill(job, archive, &mut out));
    // The beginning of an archive is none, also for a reader who wanted no more.
    written.map_err(|failure| match failure {
        Failure::BrokenPipe => Failure::Code(
            exit::FAILURE,
            "cannot write to standard output: Broken pipe; the archive is not complete".to_owned(),
        ),
        failure => failure,
    })
}

fn fill(
    job: &Job<'_>,
    archive: &ArchiveOptions,
    target: &mut dyn Write,
) -> Result<Report, Failure> {
    Ok(durin_extract::extract_to_archive(
        job.image,
        archive,
        target,
        &job.extract,
        &job.stats,
        job.logger,
        job.cancel,
    )?)
}
