//! What workers do with content, so that the one thread that writes the archive does not have to.

/// The kind of preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prepare {
    /// Nothing.
    Plain,
}

/// A piece of content.
pub(super) struct Prepared {
    /// What is to be written.
    pub(super) data: Vec<u8>,
}

/// Where in its file a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

impl Prepare {
    pub(super) fn run(self, data: Vec<u8>, _position: Position) -> Prepared {
        match self {
            Self::Plain => Prepared { data },
        }
    }
}
