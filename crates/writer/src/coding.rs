//! How blocks are compressed, and the encoder that a thread keeps for them.

use std::sync::Arc;

use durin_codec::{Crew, Encoded, Encoder, Spec, encode_if_smaller, sample};
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
    /// For data that do not have the layout that the algorithm needs, or that it makes smaller nevertheless.
    pub general: Option<Spec>,
}

impl Coding {
    fn encoder(&self, crew: &Arc<Crew>, len: usize) -> Result<Box<dyn Encoder>> {
        let block_len = self.block_len.max(len);
        self.spec
            .encoder_for(crew, block_len, self.metadata.as_deref())
    }

    /// Whether an encoder made for this does for the other.
    fn does_for(&self, other: &Self) -> bool {
        self.spec == other.spec
            && self.block_len >= other.block_len
            && (self.metadata == other.metadata || !self.spec.requires_metadata())
    }
}

/// Compresses one block after the other, and keeps the encoder of the last one's stream.
pub struct BlockEncoder {
    crew: Arc<Crew>,
    /// The one used last, and what it was made for.
    kept: Option<(Coding, Box<dyn Encoder>)>,
    /// What encoders write into.
    scratch: Vec<u8>,
}

impl BlockEncoder {
    /// For a thread that is a member of `crew` while it encodes.
    #[must_use]
    pub fn new(crew: Arc<Crew>) -> Self {
        Self {
            crew,
            kept: None,
            scratch: Vec::new(),
        }
    }

    /// Compresses `data`; returns nothing where they are to be stored as they are.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn encode(&mut self, coding: &Coding, data: &[u8]) -> Result<Option<Encoded>> {
        let (crew, scratch) = (&self.crew, &mut self.scratch);
        let kind = coding.spec.compression_type();
        let encoded = if data.len() > coding.block_len {
            let mut encoder = coding.encoder(crew, data.len())?;
            encode_if_smaller(&mut *encoder, kind, data, scratch)?
        } else {
            let kept = self.kept.take();
            let kept = kept.filter(|(of, _)| of.does_for(coding));
            let (_, encoder) = match kept {
                Some(kept) => self.kept.insert(kept),
                None => {
                    let encoder = coding.encoder(crew, 0)?;
                    self.kept.insert((coding.clone(), encoder))
                }
            };
            encode_if_smaller(&mut **encoder, kind, data, scratch)?
        };
        let Some(general) = coding.general.as_ref() else {
            return Ok(encoded);
        };
        let Some(encoded) = encoded else {
            // A header of a file has lied, which is too rare to keep an encoder for.
            return generally(crew, general, data, scratch);
        };
        let len = encoded.payload.len();
        if !may_be_smaller(crew, general, data, len, scratch)? {
            return Ok(Some(encoded));
        }
        let other = generally(crew, general, data, scratch)?;
        Ok(Some(match other {
            Some(other) if (other.payload.len() as u64) < worthwhile(len) => other,
            _ => encoded,
        }))
    }
}

fn generally(
    crew: &Arc<Crew>,
    general: &Spec,
    data: &[u8],
    scratch: &mut Vec<u8>,
) -> Result<Option<Encoded>> {
    let mut encoder = general.encoder_for(crew, data.len(), None)?;
    encode_if_smaller(&mut *encoder, general.compression_type(), data, scratch)
}

/// What must be undercut by an algorithm that knows nothing of the layout: it has to save a 32nd,
/// as lzma is read more slowly than what it replaces.
fn worthwhile(len: usize) -> u64 {
    (len - len / 32) as u64
}

/// Whether an algorithm that knows nothing of the layout makes a sample smaller than `len` is for all of the data: what is
/// no sound, or has been made by a program, repeats in ways that codecs for sound do not look for.
/// So does some speech, behind a Delta filter.
fn may_be_smaller(
    crew: &Arc<Crew>,
    general: &Spec,
    data: &[u8],
    len: usize,
    scratch: &mut Vec<u8>,
) -> Result<bool> {
    let sample = sample(data);
    let of_sample = generally(crew, general, &sample, scratch)?;
    Ok(of_sample.is_some_and(|encoded| {
        encoded.payload.len() as u64 * (data.len() as u64) < worthwhile(len) * sample.len() as u64
    }))
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

#[cfg(test)]
mod tests {
    use durin_format::section::CompressionType;
    use durin_testkit::random::Random;

    use super::*;

    #[test]
    fn what_repeats_is_compressed_without_its_layout() -> Result<()> {
        const PCM: &str = r#"{"bits_per_sample":16,"bytes_per_sample":2,"endianness":"little","number_of_channels":1,"padding":"msb","signedness":"signed"}"#;
        let coding = Coding {
            spec: Spec::parse("flac:level=5")?,
            metadata: Some(PCM.to_owned()),
            block_len: 1 << 20,
            general: Some(Spec::parse("zstd:level=9")?),
        };
        let samples = |sample: &dyn Fn(u32) -> u32| -> Vec<u8> {
            let samples = (0..200_000).map(sample);
            samples
                .flat_map(|sample| [sample.to_le_bytes()[0], sample.to_le_bytes()[1]])
                .collect()
        };
        let noise = Random::new(1).bytes(10_000);
        let slope = samples(&|at| (at % 3000) * 7 + u32::from(noise[at as usize % 9973]) / 8);
        let repeated = noise.repeat(40);
        for (data, expected) in [
            (&slope, CompressionType::Flac),
            (&repeated, CompressionType::Zstd),
            (&repeated[..9999].to_vec(), CompressionType::None),
        ] {
            let encoded = BlockEncoder::new(Arc::new(Crew::alone())).encode(&coding, data)?;
            let kind = encoded.map_or(CompressionType::None, |encoded| encoded.compression);
            assert_eq!(kind, expected);
        }
        // What saves less than a 32nd is not worth it.
        let echo = noise[..500].repeat(40);
        let mixed: Vec<u8> = slope[..80_000]
            .chunks(20_000)
            .flat_map(|chunk| [chunk, &echo[..10_750]].concat())
            .collect();
        let alone = Coding {
            general: None,
            ..coding.clone()
        };
        let payload_len = |encoded: Option<Encoded>| encoded.map(|encoded| encoded.payload.len());
        let crew = Arc::new(Crew::alone());
        let mut encoder = BlockEncoder::new(Arc::clone(&crew));
        let flac = payload_len(encoder.encode(&alone, &mixed)?);
        let general = Spec::parse("zstd:level=9")?;
        let zstd = payload_len(generally(&crew, &general, &mixed, &mut Vec::new())?);
        assert!(zstd < flac, "{zstd:?} of {flac:?}");
        assert_eq!(payload_len(encoder.encode(&coding, &mixed)?), flac);
        Ok(())
    }
}
