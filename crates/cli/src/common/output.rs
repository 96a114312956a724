//! Standard output and files that results are written to.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
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

/// Writes `text` to the file `target`, or to standard output when that is `-`.
pub(crate) fn write_text(target: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(target) {
        return print(text);
    }
    let context = |source| {
        Error::io(
            format!("cannot write '{}'", super::escape::path(target)),
            source,
        )
    };
    let mut file = File::create(target).map_err(context)?;
    file.write_all(text.as_bytes()).map_err(context)?;
    Ok(())
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
