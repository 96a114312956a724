//! The one table from what went wrong to what a process is told.

use durin_format::{Error, ErrorKind};
use rustix::io::Errno;

/// Returns the error number for a failed operation on the image.
///
/// Whatever is wrong with the bytes is an input/output error to a reader: it asked for a file that is there.
#[must_use]
pub fn from_error(error: &Error) -> Errno {
    from_kind(error.kind())
}

/// Returns the error number for one kind of failure.
#[must_use]
pub fn from_kind(kind: ErrorKind) -> Errno {
    match kind {
        ErrorKind::NotFound => Errno::NOENT,
        ErrorKind::InvalidInput => Errno::INVAL,
        ErrorKind::Cancelled => Errno::INTR,
        // `Io`, `Corrupt`, `Unsupported`, `Limit`, and every kind that may be added later.
        _ => Errno::IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_number() {
        let table = [
            (ErrorKind::Io, Errno::IO),
            (ErrorKind::Corrupt, Errno::IO),
            (ErrorKind::Unsupported, Errno::IO),
            (ErrorKind::Limit, Errno::IO),
            (ErrorKind::NotFound, Errno::NOENT),
            (ErrorKind::InvalidInput, Errno::INVAL),
            (ErrorKind::Cancelled, Errno::INTR),
        ];
        for (kind, errno) in table {
            assert_eq!(from_error(&Error::new(kind, "x")), errno, "{kind:?}");
        }
    }
}
