//! Compressing blocks with several threads.
//!
//! In: numbered blocks from a bounded queue. Out: sections ready to be written, in the order they get done. Each thread
//! keeps the encoder of the stream it had a block of last, as streams follow each other. The threads own all they use, so that a build can end without waiting for a block that takes
//! long; a thread left behind ends with its block.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use durin_codec::{Encoded, Encoder, Spec, encode_if_smaller, encode_section};
use durin_format::section::{CompressionType, SectionType, V2_HEADER_LEN, encode_header};
use durin_format::{Error, Result};

use crate::estimate::{Real, Sample, Sampler};
use crate::segment::Block;
use crate::stats::{Stage, StageThread, Stats, thread_cpu};
use crate::sync::spawn_detached;

/// A section, complete but for its place in the file.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) section_type: SectionType,
    pub(crate) header: [u8; V2_HEADER_LEN],
    pub(crate) payload: Vec<u8>,
    /// Bytes before compression.
    pub(crate) data_len: u64,
}

impl Section {
    /// Compresses `data` and adds the header for the section with this number.
    pub(crate) fn encode(
        number: u32,
        section_type: SectionType,
        encoder: &mut dyn Encoder,
        kind: CompressionType,
        data: Vec<u8>,
    ) -> Result<Self> {
        let data_len = data.len() as u64;
        let encoded = encode_section(encoder, kind, data)?;
        Ok(Self::new(number, section_type, encoded, data_len))
    }

    fn new(number: u32, section_type: SectionType, encoded: Encoded, data_len: u64) -> Self {
        let header = encode_header(number, section_type, encoded.compression, &encoded.payload);
        Self {
            section_type,
            header,
            payload: encoded.payload,
            data_len,
        }
    }
}

/// A section and the number of its block, or why there is none.
pub(crate) type Compressed = (u32, Result<Section>);

/// How the blocks of one stream are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Coding {
    pub(crate) spec: Spec,
    /// What the encoder must know of the layout of the data.
    pub(crate) metadata: Option<String>,
    /// Bytes of the largest block.
    pub(crate) block_len: usize,
    /// For data that do not have the layout that the algorithm needs.
    pub(crate) general: Option<Spec>,
}

impl Coding {
    fn encoder(&self) -> Result<Box<dyn Encoder>> {
        self.spec.encoder(self.block_len, self.metadata.as_deref())
    }

    /// Whether an encoder made for this does for the other.
    fn does_for(&self, other: &Self) -> bool {
        self.spec == other.spec
            && self.block_len >= other.block_len
            && (self.metadata == other.metadata || !self.spec.requires_metadata())
    }
}

/// The threads that compress.
pub(crate) struct Pool<'a> {
    pub(crate) workers: usize,
    pub(crate) niceness: i32,
    /// By stream.
    pub(crate) codings: Arc<[Coding]>,
    pub(crate) stats: &'a Stats,
    /// If there is one, most blocks are only looked at.
    pub(crate) sampler: Option<&'a Arc<Sampler>>,
}

impl Pool<'_> {
    /// Starts the threads, which work until no more blocks come or nobody takes the sections any more.
    ///
    /// # Errors
    /// What starting the first thread gives.
    pub(crate) fn start(
        &self,
        blocks: &Receiver<Block>,
        sections: &Sender<Compressed>,
        spare: &Sender<Vec<u8>>,
    ) -> Result<()> {
        let niceness = self.niceness;
        for number in 0..self.workers.max(1) {
            let entry = self.stats.entry(Stage::Compress);
            let mut worker = Worker {
                codings: Arc::clone(&self.codings),
                encoder: None,
                sampler: self.sampler.map(Arc::clone),
                cheap: None,
                blocks: blocks.clone(),
                sections: sections.clone(),
                spare: spare.clone(),
                scratch: Vec::new(),
            };
            let started = spawn_detached(move || {
                be_nice(niceness);
                worker.work(entry.enter());
            });
            match started {
                // The others do it, then.
                Err(_) if number > 0 => break,
                started => drop(started?),
            }
        }
        Ok(())
    }
}

struct Worker {
    codings: Arc<[Coding]>,
    /// The one used last, and the stream it was made for.
    encoder: Option<(usize, Box<dyn Encoder>)>,
    sampler: Option<Arc<Sampler>>,
    /// For blocks that are only looked at, and the length of block it was made for.
    cheap: Option<(usize, Box<dyn Encoder>)>,
    blocks: Receiver<Block>,
    sections: Sender<Compressed>,
    /// Takes the memory of blocks back.
    spare: Sender<Vec<u8>>,
    /// What encoders write into.
    scratch: Vec<u8>,
}

impl Worker {
    fn work(&mut self, mut thread: StageThread) {
        while let Ok(block) = thread.wait_in(|| self.blocks.recv()) {
            let number = block.number;
            let len = block.data.len() as u64;
            let spec = &self.codings[block.stream].spec;
            thread.job(len, || format!("block {number} ({spec})"));
            let section = match self.sampler.clone() {
                None => self.encode(block),
                Some(sampler) => self.sample(&sampler, block),
            };
            thread.did(1, len);
            thread.job_end();
            if thread
                .wait_out(|| self.sections.send((number, section)))
                .is_err()
            {
                return;
            }
        }
    }

    /// Compresses a block if it is in the sample; the section of any other has no payload.
    fn sample(&mut self, sampler: &Sampler, block: Block) -> Result<Section> {
        let (number, stream, len) = (block.number, block.stream, block.data.len());
        let is_stored = self.codings[stream].spec == Spec::NULL;
        let cheap_len = if is_stored {
            len as u64
        } else {
            let kept = self.cheap.take().filter(|(len_max, _)| *len_max >= len);
            let (_, cheap) = match kept {
                Some(kept) => self.cheap.insert(kept),
                None => self.cheap.insert((len, Sampler::cheap_encoder(len)?)),
            };
            Sampler::cheap_len(&mut **cheap, block.data.to_vec())?
        };
        let mut sample = Sample {
            number,
            stream,
            data_len: len as u64,
            cheap_len,
            real: None,
        };
        let section = if is_stored || sampler.takes(stream, number) {
            let begun = thread_cpu();
            let section = self.encode(block)?;
            sample.real = Some(Real {
                len: section.payload.len() as u64,
                cpu: thread_cpu().saturating_sub(begun),
            });
            section
        } else {
            Section {
                section_type: SectionType::Block,
                header: encode_header(number, SectionType::Block, CompressionType::None, &[]),
                payload: Vec::new(),
                data_len: len as u64,
            }
        };
        sampler.record(sample);
        Ok(section)
    }

    fn encode(&mut self, block: Block) -> Result<Section> {
        let coding = &self.codings[block.stream];
        let kept = self.encoder.take();
        let kept = kept.filter(|(stream, _)| self.codings[*stream].does_for(coding));
        let (_, encoder) = match kept {
            Some(kept) => self.encoder.insert(kept),
            None => self.encoder.insert((block.stream, coding.encoder()?)),
        };
        // Blocks are the first sections of an image, so that both numbers are the same.
        let number = block.number;
        let kind = coding.spec.compression_type();
        let (data, scratch) = (block.data, &mut self.scratch);
        let data_len = data.len() as u64;
        let mut encoded = encode_if_smaller(&mut **encoder, kind, &data, scratch)?;
        if let Some(general) = coding.general.as_ref().filter(|_| encoded.is_none()) {
            // A header of a file has lied, which is too rare to keep an encoder for.
            let mut encoder = general.encoder(data.len(), None)?;
            let kind = general.compression_type();
            encoded = encode_if_smaller(&mut *encoder, kind, &data, scratch)?;
        }
        // The history of the segmenter may have the data still.
        let encoded = match (encoded, Arc::try_unwrap(data)) {
            (Some(encoded), Ok(data)) => {
                // There may be enough of them.
                drop(self.spare.try_send(data));
                encoded
            }
            (Some(encoded), Err(_)) => encoded,
            (None, data) => Encoded {
                compression: CompressionType::None,
                payload: data.unwrap_or_else(|shared| shared.to_vec()),
            },
        };
        Ok(Section::new(number, SectionType::Block, encoded, data_len))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Otherwise the others would wait for the block that this thread had.
            let error = Error::unsupported("a compression thread has failed");
            drop(self.sections.send((u32::MAX, Err(error))));
        }
    }
}

/// Lowers the priority of this thread; failing to is no reason not to work.
fn be_nice(niceness: i32) {
    if niceness != 0 {
        let current = rustix::process::getpriority_process(None).unwrap_or(0);
        rustix::process::setpriority_process(None, current.saturating_add(niceness)).ok();
    }
}
