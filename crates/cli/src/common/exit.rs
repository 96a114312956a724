//! Exit codes: the one table from what went wrong to what the shell sees, and the hint that goes with it.

use std::process::ExitCode;

use durin_format::{Error, ErrorKind};

use super::signals;

/// All went well.
pub(crate) const SUCCESS: u8 = 0;
/// The program did not do what was asked.
pub(crate) const FAILURE: u8 = 1;
/// The program did what was asked except for parts that it reported.
pub(crate) const WITH_ERRORS: u8 = 2;

/// Why a program ends without having done what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line cannot be followed.
    Usage(String),
    /// A library failed.
    Error(Error),
    /// Whoever read our standard output has seen enough.
    BrokenPipe,
    /// An exit code of the program's own, with what to say.
    Code(u8, String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.io_source() {
            Some(source) if source.kind() == std::io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Error(error),
        }
    }
}

impl Failure {
    /// What to tell the user, if anything, in one or two lines.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Usage(message) | Self::Code(_, message) => Some(message.clone()),
            Self::Error(error) => Some(match hint(error.kind()) {
                Some(hint) => format!("{error}\n({hint})"),
                None => error.to_string(),
            }),
            Self::BrokenPipe => None,
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => FAILURE,
            Self::Error(error) => code(error.kind()),
            Self::BrokenPipe => SUCCESS,
            Self::Code(code, _) => *code,
        }
    }
}

/// The exit code for a library's error.
pub(crate) fn code(kind: ErrorKind) -> u8 {
    match kind {
        // As a shell reports a program that a signal ended.
        ErrorKind::Cancelled => {
            signals::received().map_or(FAILURE, |signal| signal.saturating_add(128))
        }
        _ => FAILURE,
    }
}

/// What the user can do about an error of this kind, where the message cannot say it.
fn hint(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::Corrupt => Some("the image is damaged, or this is no image at all"),
        ErrorKind::Unsupported => Some("a newer release may support it"),
        _ => None,
    }
}

/// The code of a program that reported so many errors and did the rest.
pub(crate) const fn of_errors(errors: u64) -> u8 {
    if errors == 0 { SUCCESS } else { FAILURE }
}

/// The code of a program that did what was asked but for so many parts.
pub(crate) const fn of_problems(errors: u64) -> u8 {
    if errors == 0 { SUCCESS } else { WITH_ERRORS }
}

/// The code as `main` returns it.
pub(crate) fn exit_code(code: u8) -> ExitCode {
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [ErrorKind; 7] = [
        ErrorKind::Io,
        ErrorKind::Corrupt,
        ErrorKind::Unsupported,
        ErrorKind::Limit,
        ErrorKind::NotFound,
        ErrorKind::InvalidInput,
        ErrorKind::Cancelled,
    ];

    #[test]
    fn every_kind_of_error_fails() {
        for kind in KINDS {
            // No signal was received in this process, so that a cancelled one fails plainly too.
            assert_eq!(code(kind), FAILURE, "{kind:?}");
        }
    }

    #[test]
    fn broken_pipe_is_quiet() {
        let source = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let failure = Failure::from(Error::io("cannot write", source));
        assert_eq!((failure.message(), failure.code()), (None, SUCCESS));
    }

    #[test]
    fn hints_follow_the_message() {
        let failure = Failure::from(Error::unsupported("feature 'x'"));
        assert_eq!(
            failure.message().as_deref(),
            Some("feature 'x'\n(a newer release may support it)")
        );
    }
}
