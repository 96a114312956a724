//! Compressing blocks with several threads.
//!
//! In: numbered blocks from a bounded queue. Out: sections ready to be written, in the order they get done. Each thread
//! keeps the encoder of the stream it had a block of last, as streams follow each other; while it waits, others may help
//! those that work (see [`Crew`]). Headers are made for several blocks at a time, as long as blocks keep coming. The threads
//! own all they use, so that a build can end without waiting for a block that takes long; a thread left behind ends with
//! its block.

use std::sync::Arc;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use durin_codec::{Crew, Encoded, Spec};
use durin_format::section::{CompressionType, SectionType};
use durin_format::{Error, Result};

use crate::coding::{BlockEncoder, Coding, be_nice};
use crate::sampler::{Candidate, CheapEncoder, Look, Sampler};
use crate::seal::{PATIENCE, Waiting};
use crate::sections::{Section, Unsealed};
use crate::segment::Block;
use crate::stats::{Stage, StageThread, Stats};
use crate::sync::spawn_detached;

/// A section and the number of its block, or why there is none.
pub(crate) type Compressed = (u32, Result<Section>);

/// The threads that compress.
pub(crate) struct Pool<'a> {
    pub(crate) workers: usize,
    /// Blocks that may wait for each other.
    pub(crate) blocks_waiting: usize,
    pub(crate) crew: Arc<Crew>,
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
        let waiting = Arc::new(Waiting::new(self.blocks_waiting));
        for number in 0..self.workers.max(1) {
            let entry = self.stats.entry(Stage::Compress);
            let mut worker = Worker {
                codings: Arc::clone(&self.codings),
                crew: Arc::clone(&self.crew),
                encoder: BlockEncoder::new(Arc::clone(&self.crew)),
                sampler: self.sampler.map(Arc::clone),
                cheap: CheapEncoder::default(),
                waiting: Arc::clone(&waiting),
                blocks: blocks.clone(),
                sections: sections.clone(),
                spare: spare.clone(),
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
    crew: Arc<Crew>,
    encoder: BlockEncoder,
    sampler: Option<Arc<Sampler>>,
    /// For blocks that are only looked at.
    cheap: CheapEncoder,
    /// What all threads have compressed and nobody has made the header of.
    waiting: Arc<Waiting>,
    blocks: Receiver<Block>,
    sections: Sender<Compressed>,
    /// Takes the memory of blocks back.
    spare: Sender<Vec<u8>>,
}

impl Worker {
    fn work(&mut self, mut thread: StageThread) {
        let crew = Arc::clone(&self.crew);
        while let Some(block) = self.next(&mut thread) {
            let member = thread.wait_in(|| crew.join());
            let number = block.number;
            let len = block.data.len() as u64;
            let spec = &self.codings[block.stream].spec;
            thread.job(len, || format!("block {number} ({spec})"));
            let done = self.compress(block);
            drop(member);
            thread.did(1, len);
            thread.job_end();
            for section in done {
                if !self.send(&mut thread, section) {
                    return;
                }
            }
        }
        self.seal_rest(&mut thread);
    }

    /// Takes the next block; none if there are no more, or nobody takes the sections.
    fn next(&self, thread: &mut StageThread) -> Option<Block> {
        match thread.wait_in(|| self.blocks.recv_timeout(PATIENCE)) {
            Ok(block) => return Some(block),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
        self.seal_rest(thread).then_some(())?;
        thread.wait_in(|| self.blocks.recv()).ok()
    }

    /// Sends what waits; false if nobody takes it.
    fn seal_rest(&self, thread: &mut StageThread) -> bool {
        let mut sealed = seal(self.waiting.take());
        sealed.all(|section| self.send(thread, section))
    }

    fn send(&self, thread: &mut StageThread, section: Compressed) -> bool {
        thread.wait_out(|| self.sections.send(section)).is_ok()
    }

    /// Compresses a block, and returns the sections that are done.
    fn compress(&mut self, block: Block) -> Vec<Compressed> {
        let number = block.number;
        if let Some(sampler) = self.sampler.clone() {
            return vec![(number, self.sample(&sampler, block))];
        }
        match self.encode(block) {
            Ok(block) => seal(self.waiting.add(block)).collect(),
            Err(error) => vec![(number, Err(error))],
        }
    }

    /// Compresses a block if it is in the sample; the section of any other has no payload.
    fn sample(&mut self, sampler: &Sampler, block: Block) -> Result<Section> {
        let is_stored = self.codings[block.stream].spec == Spec::NULL;
        let data_len = block.data.len() as u64;
        let candidate = Candidate {
            number: block.number,
            stream: block.stream,
            // The blocks of a stream follow each other.
            place: block.number.into(),
            data_len,
            look: if is_stored {
                Look::stored(data_len)
            } else {
                self.cheap.look(&block.data)?
            },
            is_stored,
        };
        sampler.sample(candidate, || self.encode(block).map(Unsealed::seal))
    }

    fn encode(&mut self, block: Block) -> Result<Unsealed> {
        let coding = &self.codings[block.stream];
        // Blocks are the first sections of an image, so that both numbers are the same.
        let number = block.number;
        let data = block.data;
        let data_len = data.len() as u64;
        let encoded = self.encoder.encode(coding, &data)?;
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
        Ok(Unsealed {
            number,
            section_type: SectionType::Block,
            encoded,
            data_len,
        })
    }
}

/// Makes the headers of blocks.
fn seal(blocks: Vec<Unsealed>) -> impl Iterator<Item = Compressed> {
    let numbers: Vec<_> = blocks.iter().map(|block| block.number).collect();
    let sections = Unsealed::seal_all(blocks).into_iter().map(Ok);
    numbers.into_iter().zip(sections)
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
