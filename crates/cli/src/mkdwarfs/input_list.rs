//! `--input-list`: the paths to pack, one a line, from a file or standard input.

use std::fs;
use std::io::{self, Read as _};
use std::path::{self, Path, PathBuf};

use durin_format::{Error, Result};

use super::order;
use crate::common::logger::Logger;
use crate::common::{escape, output};

/// Reads the list.
pub(super) fn read(list: &Path, logger: &Logger) -> Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    if output::is_stdout(list) {
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|error| Error::io("cannot read the input list from standard input", error))?;
    } else {
        let failed = |error| {
            Error::io(
                format!("cannot read input list '{}'", escape::path(list)),
                error,
            )
        };
        bytes = fs::read(list).map_err(failed)?;
    }
    let paths = order::lines(&bytes);
    if paths.is_empty() {
        logger.warn("the input list is empty");
    }
    Ok(paths)
}

/// Makes absolute paths relative that lie below the input as the user has named it.
///
/// The writer knows the input without symbolic links on the way to it, and takes absolute paths that begin so.
pub(super) fn strip_input(paths: &mut [PathBuf], named: &Path) -> Result<()> {
    let named = path::absolute(named).map_err(|error| {
        let shown = escape::path(named);
        Error::io(format!("cannot use input '{shown}'"), error)
    })?;
    for path in paths {
        if let Ok(relative) = path.strip_prefix(&named) {
            *path = relative.to_owned();
        }
    }
    Ok(())
}
