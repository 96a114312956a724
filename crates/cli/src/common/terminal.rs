//! What the terminal can show: its width, colours and characters.

use std::io::IsTerminal as _;

/// Width assumed when neither `COLUMNS` nor a terminal tells one.
const WIDTH_DEFAULT: usize = 80;

/// Height assumed when no terminal tells one.
const HEIGHT_DEFAULT: usize = 24;

/// Widest help and manual text; longer lines are tiring to read.
const TEXT_WIDTH_MAX: usize = 100;

/// The width of running text such as help, in columns.
pub(crate) fn text_width() -> usize {
    columns_from_environment()
        .or_else(|| columns_of(std::io::stdout()))
        .unwrap_or(WIDTH_DEFAULT)
        .min(TEXT_WIDTH_MAX)
}

/// The width of standard output, in columns.
pub(crate) fn stdout_width() -> usize {
    columns_of(std::io::stdout())
        .or_else(columns_from_environment)
        .unwrap_or(WIDTH_DEFAULT)
}

/// Columns and rows of the terminal on standard error.
pub(crate) fn stderr_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let known = |cells: u16| Some(usize::from(cells)).filter(|cells| *cells > 0);
    let columns = size
        .and_then(|size| known(size.ws_col))
        .or_else(columns_from_environment)
        .unwrap_or(WIDTH_DEFAULT);
    let rows = size.and_then(|size| known(size.ws_row));
    (columns, rows.unwrap_or(HEIGHT_DEFAULT))
}

fn columns_from_environment() -> Option<usize> {
    std::env::var("COLUMNS")
        .ok()?
        .parse()
        .ok()
        .filter(|columns| *columns >= 20)
}

fn columns_of(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns >= 20)
}

/// Whether messages may be coloured: standard error is a terminal, `TERM` names a capable one, and the user has not
/// set `NO_COLOR`.
pub(crate) fn stderr_has_colours() -> bool {
    let capable = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    capable && !refused && std::io::stderr().is_terminal()
}

/// Whether the locale of the environment uses UTF-8.
pub(crate) fn locale_is_utf8() -> bool {
    // The first one set decides, as in setlocale(3).
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty());
    locale.is_some_and(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}
