//! What one member of an archive is, and what a format must know to write it.

use durin_format::Result;
use durin_reader::{Attr, FileKind};

use super::layout::Layout;
use super::output::Output;
use super::prepare::{Prepare, Prepared};

/// One member.
pub(super) struct Member<'a> {
    /// Its path in the archive, without a leading or closing slash; empty for the root.
    pub(super) path: &'a [u8],
    pub(super) attr: &'a Attr,
    pub(super) body: Body<'a>,
    /// How many members of the archive are this file, for formats that count them.
    pub(super) nlink: u32,
}

/// What there is beside attributes.
pub(super) enum Body<'a> {
    /// Nothing: a directory, device, fifo or socket.
    Empty,
    /// The target of a symlink.
    Target(&'a [u8]),
    /// A further name of the file that was stored as this path.
    LinkTo(&'a [u8]),
    /// A name of a file whose content comes with its last name.
    Later,
    /// The content of a regular file, which follows.
    Data(&'a Layout),
}

impl Body<'_> {
    /// Bytes that follow.
    pub(super) fn stored_len(&self) -> u64 {
        match self {
            Self::Data(layout) => layout.stored_len(),
            _ => 0,
        }
    }
}

/// How a format has hard links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// As members that name the first.
    Named,
    /// As members of equal inode number, the last of which has the content.
    LastHasContent,
    /// As members that all have the content.
    AllHaveContent,
}

/// A format of archives. Everything is called by one thread, in the order of the archive.
pub(super) trait Format {
    /// How hard links are stored.
    fn links(&self) -> Links;

    /// Whether holes are kept; otherwise they are zeros.
    fn keeps_holes(&self) -> bool {
        false
    }

    /// Whether there are members of this kind.
    fn holds(&self, kind: FileKind) -> bool;

    /// Whether the root directory is a member.
    fn has_root(&self) -> bool {
        false
    }

    /// What workers do with content before it comes to [`Self::data`].
    fn prepare(&self) -> Prepare {
        Prepare::Plain
    }

    /// Whether a member with that content can be begun, asked before names of it are stored whose content comes later.
    ///
    /// # Errors
    /// Those of [`Self::begin`] that come of the content.
    fn accepts(&self, body: &Body<'_>) -> Result<()> {
        let _ = body;
        Ok(())
    }

    /// Begins a member.
    ///
    /// # Errors
    /// `Unsupported` before anything is written if the format cannot hold it; `Io`.
    fn begin(&mut self, member: &Member<'_>, out: &mut Output<'_>) -> Result<()>;

    /// Takes the next piece of content of the member begun last.
    fn data(&mut self, piece: Prepared, out: &mut Output<'_>) -> Result<()>;

    /// Ends a member, of which all content has come.
    fn end(&mut self, member: &Member<'_>, out: &mut Output<'_>) -> Result<()>;

    /// Ends the archive.
    fn finish(&mut self, out: &mut Output<'_>) -> Result<()>;

    /// What could not be stored as it is, counted; told once at the end.
    fn losses(&self) -> Losses {
        Losses::default()
    }
}

/// Values that a format cannot hold and for which the nearest possible stand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    pub(super) times: u64,
    pub(super) owners: u64,
    pub(super) devices: u64,
}
