//! What workers do with content, so that the one thread that writes the archive does not have to.

use durin_codec::Deflater;
use durin_format::Result;
use durin_format::digest::Digest;

/// The kind of preparation.
#[derive(Clone, Debug)]
pub(super) enum Prepare {
    /// Nothing.
    Plain,
    /// Raw Deflate of a level, where that is smaller or the size is not known yet, and the checksum.
    Deflate(u32),
    /// The checksum alone.
    Checksum,
    /// Digests, of files that come in one piece; others have to be digested in order.
    Digests(Vec<Digest>),
}

/// A piece of content.
#[derive(Default)]
pub(super) struct Prepared {
    /// What is to be written.
    pub(super) data: Vec<u8>,
    /// Bytes of the piece before it was prepared.
    pub(super) len: u64,
    /// Whether `data` are Deflate.
    pub(super) is_deflated: bool,
    pub(super) checksum: crc32fast::Hasher,
    /// Digests of the whole file, if it is one piece.
    pub(super) digests: Option<Vec<Vec<u8>>>,
    pub(super) position: Position,
}

/// Where in its file a piece is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

impl Position {
    pub(super) fn is_whole(self) -> bool {
        self.is_first && self.is_last
    }
}

impl Prepare {
    pub(super) fn run(&self, data: Vec<u8>, position: Position) -> Result<Prepared> {
        let mut prepared = Prepared {
            len: data.len() as u64,
            position,
            ..Prepared::default()
        };
        match self {
            Self::Plain => {}
            Self::Checksum => prepared.checksum.update(&data),
            Self::Deflate(level) => {
                prepared.checksum.update(&data);
                let mut out = Vec::new();
                Deflater::new(*level).compress(&data, position.is_last, &mut out)?;
                if !position.is_whole() || out.len() < data.len() {
                    prepared.is_deflated = true;
                    prepared.data = out;
                    return Ok(prepared);
                }
            }
            Self::Digests(digests) if position.is_whole() => {
                prepared.digests = Some(digest_all(digests, &data));
                return Ok(prepared);
            }
            Self::Digests(_) => {}
        }
        prepared.data = data;
        Ok(prepared)
    }
}

/// All digests of the same data.
pub(super) fn digest_all(digests: &[Digest], data: &[u8]) -> Vec<Vec<u8>> {
    let digest = |digest: &Digest| {
        let mut hasher = digest.hasher();
        hasher.update(data);
        hasher.finish()
    };
    digests.iter().map(digest).collect()
}
