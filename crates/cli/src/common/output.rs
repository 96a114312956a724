//! Standard output and files that results are written to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use durin_format::Error;

use super::exit::Failure;
use super::system;

/// Writes a result to standard output: `write` fills a buffered writer that is flushed at the end.
pub(crate) fn to_stdout(
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Failure>,
) -> Result<(), Failure> {
    system::check_stdout().map_err(write_failed)?;
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
    write(&mut out)?;
    out.flush().map_err(write_failed)
}

/// Writes a text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    to_stdout(|out| out.write_all(text.as_bytes()).map_err(write_failed))
}

/// Finds out whether [`write_text`] could write to `target`, for whoever has much to do before and writes something else to
/// `taken`. Nothing changes there.
pub(crate) fn check_text_target(target: &Path, taken: &Path) -> Result<(), Failure> {
    if is_stdout(target) {
        return system::check_stdout().map_err(write_failed);
    }
    let found = fs::metadata(target);
    if found
        .as_ref()
        .is_ok_and(|found| !found.is_file() && !found.is_dir())
    {
        // A pipe would wait for its reader here, who would then see its end.
        return Ok(());
    }
    let context = |source| cannot_write(target, source);
    let is_missing = found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let mut options = OpenOptions::new();
    options.write(true).create(is_missing).truncate(false);
    let opened = options.open(target).map_err(context)?;
    // Not before: now it exists, so that all links lead somewhere.
    let is_taken = is_same_file(target, taken);
    if is_missing && opened.metadata().is_ok_and(|opened| opened.len() == 0) {
        // What a link that led nowhere leads to now.
        let made = fs::canonicalize(target).map_err(context)?;
        fs::remove_file(made).map_err(context)?;
    }
    if is_taken {
        let target = super::escape::path(target);
        return Err(Failure::Usage(format!(
            "'{target}' is wanted for two outputs"
        )));
    }
    Ok(())
}

/// Whether a file is the same as another one or standard output.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let other = match is_stdout(other) {
        true => Path::new("/dev/stdout"),
        false => other,
    };
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Refuses to write to the file that is read: an image that takes the place of the one it is made of would be lost with it
/// if anything was wrong, and other results would only destroy it. `-` stands for standard output.
///
/// To be called before any of the `targets` is opened.
pub(crate) fn refuse_own_input<'a>(
    input: &Path,
    targets: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Error> {
    let Ok(input) = fs::metadata(input) else {
        // Whoever opens it says so.
        return Ok(());
    };
    for target in targets {
        let found = match is_stdout(target) {
            true => stdout_metadata(),
            false => fs::metadata(target),
        };
        if found.is_ok_and(|found| is_same_content(&input, &found)) {
            let name = match is_stdout(target) {
                true => "standard output".to_owned(),
                false => format!("'{}'", super::escape::path(target)),
            };
            let text = format!("input and output are the same file: {name}");
            return Err(Error::invalid_input(text));
        }
    }
    Ok(())
}

fn stdout_metadata() -> io::Result<fs::Metadata> {
    raw_stdout()?.metadata()
}

/// Whether what is written to one is read from the other; a terminal or `/dev/null` forgets it.
fn is_same_content(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    let (one, other) = (behind_loop(one), behind_loop(other));
    one.is_some() && one == other
}

/// What keeps the bytes of a file: its device and inode number; for a loop device those of the file behind it, for another
/// block device its own number.
fn behind_loop(found: &fs::Metadata) -> Option<(u64, u64)> {
    if found.is_file() {
        return Some((found.dev(), found.ino()));
    }
    if !found.file_type().is_block_device() {
        return None;
    }
    let (major, minor) = (
        rustix::fs::major(found.rdev()),
        rustix::fs::minor(found.rdev()),
    );
    let place = format!("/sys/dev/block/{major}:{minor}/loop/backing_file");
    let backing = fs::read_to_string(place).ok();
    let backing = backing.and_then(|path| fs::metadata(path.trim_end_matches('\n')).ok());
    match backing {
        Some(file) if file.is_file() => Some((file.dev(), file.ino())),
        _ => Some((u64::MAX, found.rdev())),
    }
}

/// Writes `text` to the file `target`, or to standard output when that is `-`.
pub(crate) fn write_text(target: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(target) {
        return print(text);
    }
    let context = |source| cannot_write(target, source);
    let mut file = File::create(target).map_err(context)?;
    file.write_all(text.as_bytes()).map_err(context)?;
    Ok(())
}

fn cannot_write(target: &Path, source: io::Error) -> Error {
    let target = super::escape::path(target);
    Error::io(format!("cannot write '{target}'"), source)
}

/// Whether a file argument stands for standard output (or input).
pub(crate) fn is_stdout(target: &Path) -> bool {
    target.as_os_str() == "-"
}

/// Standard output without the buffer of the standard library.
pub(crate) fn raw_stdout() -> io::Result<File> {
    system::check_stdout()?;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Refuses to write binary data to a terminal.
pub(crate) fn refuse_terminal(what: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::Usage(format!(
            "refusing to write {what} to a terminal; redirect standard output"
        )));
    }
    Ok(())
}

/// A failed write to standard output.
pub(crate) fn write_failed(source: io::Error) -> Failure {
    Failure::from(Error::io("cannot write to standard output", source))
}
