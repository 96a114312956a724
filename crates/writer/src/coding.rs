//! How blocks are compressed, and the encoder that a thread keeps for them.

use durin_codec::{Encoded, Encoder, Spec, encode_if_smaller};
use durin_format::Result;

/// How the blocks of one stream are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coding {
    /// The algorithm and its options.
    pub spec: Spec,
    /// What the encoder must know of the layout of the data.
    pub metadata: Option<String>,
    /// Bytes of the largest block that is expected. Larger ones get an encoder of their own.
    pub block_len: usize,
    /// For data that do not have the layout that the algorithm needs.
    pub general: Option<Spec>,
}

impl Coding {
    fn encoder(&self, len: usize) -> Result<Box<dyn Encoder>> {
        let block_len = self.block_len.max(len);
        self.spec.encoder(block_len, self.metadata.as_deref())
    }

    /// Whether an encoder made for this does for the other.
    fn does_for(&self, other: &Self) -> bool {
        self.spec == other.spec
            && self.block_len >= other.block_len
            && (self.metadata == other.metadata || !self.spec.requires_metadata())
    }
}

/// Compresses one block after the other, and keeps the encoder of the last one's stream.
#[derive(Default)]
pub struct BlockEncoder {
    /// The one used last, and what it was made for.
    kept: Option<(Coding, Box<dyn Encoder>)>,
    /// What encoders write into.
    scratch: Vec<u8>,
}

impl BlockEncoder {
    /// Compresses `data`; returns nothing where they are to be stored as they are.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn encode(&mut self, coding: &Coding, data: &[u8]) -> Result<Option<Encoded>> {
        let scratch = &mut self.scratch;
        let kind = coding.spec.compression_type();
        let encoded = if data.len() > coding.block_len {
            let mut encoder = coding.encoder(data.len())?;
            encode_if_smaller(&mut *encoder, kind, data, scratch)?
        } else {
            let kept = self.kept.take();
            let kept = kept.filter(|(of, _)| of.does_for(coding));
            let (_, encoder) = match kept {
                Some(kept) => self.kept.insert(kept),
                None => self.kept.insert((coding.clone(), coding.encoder(0)?)),
            };
            encode_if_smaller(&mut **encoder, kind, data, scratch)?
        };
        match coding.general.as_ref() {
            Some(general) if encoded.is_none() => {
                // A header of a file has lied, which is too rare to keep an encoder for.
                let mut encoder = general.encoder(data.len(), None)?;
                encode_if_smaller(&mut *encoder, general.compression_type(), data, scratch)
            }
            _ => Ok(encoded),
        }
    }
}

impl std::fmt::Debug for BlockEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockEncoder").finish_non_exhaustive()
    }
}

/// Lowers the priority of this thread; failing to is no reason not to work.
pub fn be_nice(niceness: i32) {
    if niceness != 0 {
        let current = rustix::process::getpriority_process(None).unwrap_or(0);
        rustix::process::setpriority_process(None, current.saturating_add(niceness)).ok();
    }
}
