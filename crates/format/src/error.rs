//! The one error type of every durin library above `source`.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use crate::section::SectionType;

/// The result of every fallible operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, one word wide.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    location: Location,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What a caller can do about an error.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The operating system refused or failed.
    Io,
    /// The bytes are not what the format says.
    Corrupt,
    /// The bytes may be right, but this release cannot handle them.
    Unsupported,
    /// A ceiling of [`crate::limits`] or one the user set was reached.
    Limit,
    /// What was asked for does not exist.
    NotFound,
    /// The caller or the user gave something unusable.
    InvalidInput,
    /// The user asked to stop.
    Cancelled,
}

/// Where in an image something is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The number of the section, counted from 0 in file order.
    pub section: Option<u32>,
    /// The type of the section.
    pub section_type: Option<SectionType>,
    /// Bytes from the start of the file that holds the image.
    pub offset: Option<u64>,
}

impl Error {
    /// Returns an error of `kind`; `message` is lower case without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            location: Location::default(),
            source: None,
        }))
    }

    /// The bytes are not what the format says.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// This release cannot handle what the bytes say.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// A ceiling was reached.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    /// Something asked for does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The caller or the user gave something unusable.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// The user asked to stop.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "cancelled")
    }

    /// The operating system refused or failed; `context` says what was tried.
    pub fn io(context: impl Into<String>, source: io::Error) -> Self {
        let mut error = Self::new(ErrorKind::Io, context);
        error.0.source = Some(Box::new(source));
        error
    }

    /// Keeps `source` as the reason of this error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds where it happened; what an inner layer already said stays.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        if self.0.kind == ErrorKind::Cancelled {
            return self;
        }
        let own = &mut self.0.location;
        own.section = own.section.or(location.section);
        own.section_type = own.section_type.or(location.section_type);
        own.offset = own.offset.or(location.offset);
        self
    }

    /// Puts `context` and a colon before the message.
    /// Where the user asked to stop, what was worked on does not matter.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        if self.0.kind == ErrorKind::Cancelled {
            return self;
        }
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// What a caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Where in an image it happened, as far as it is known.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.0.location
    }

    /// The operating system's error behind an error of kind [`ErrorKind::Io`].
    #[must_use]
    pub fn io_source(&self) -> Option<&io::Error> {
        self.0.source.as_ref()?.downcast_ref()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.section, self.section_type) {
            (Some(number), Some(kind)) => write!(f, "section {number} ({})", kind.name())?,
            (Some(number), None) => write!(f, "section {number}")?,
            (None, Some(kind)) => write!(f, "section {}", kind.name())?,
            (None, None) => {}
        }
        match self.offset {
            Some(offset) if self.section.is_some() || self.section_type.is_some() => {
                write!(f, " at offset {offset}")
            }
            Some(offset) => write!(f, "offset {offset}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.location != Location::default() {
            write!(f, "{}: ", self.0.location)?;
        }
        f.write_str(&self.0.message)?;
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl StdError for Error {
    // `Display` already tells the source, so that a chain printer would say it twice.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        None
    }
}

impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        Self::io("input/output error", source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_and_what() {
        let error = Error::corrupt("xxh3 mismatch").at(Location {
            section: Some(3),
            section_type: Some(SectionType::MetadataV2),
            offset: Some(5951),
        });
        assert_eq!(
            error.to_string(),
            "section 3 (METADATA_V2) at offset 5951: xxh3 mismatch"
        );
    }

    #[test]
    fn who_was_asked_to_stop_does_not_say_where() {
        let place = Location {
            offset: Some(7),
            ..Location::default()
        };
        let error = Error::cancelled().context("usr/bin/x").at(place);
        assert_eq!(error.to_string(), "cancelled");
    }

    #[test]
    fn inner_location_stays() {
        let outer = Location {
            offset: Some(1),
            section: Some(9),
            ..Location::default()
        };
        let inner = Location {
            offset: Some(7),
            ..Location::default()
        };
        let error = Error::corrupt("x").at(inner).at(outer);
        assert_eq!(
            (error.location().offset, error.location().section),
            (Some(7), Some(9))
        );
    }
}
