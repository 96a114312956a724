//! Writing sections, one after the other: the only stage that touches the output.

use std::collections::BTreeMap;
use std::io::Write;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use durin_format::{Error, Result};

use crate::compress::Compressed;
use crate::context::Context;
use crate::sections::{Section, SectionWriter};
use crate::segment::Permit;
use crate::stats::Stage;
use crate::sync::POLL;

/// The output and what has been written to it.
pub(crate) struct Emitter<'a> {
    context: Context<'a>,
    sections: SectionWriter<'a>,
    /// Bytes of each block before compression and as written.
    block_lens: Vec<[u32; 2]>,
}

impl<'a> Emitter<'a> {
    /// Writes the header in front of the image.
    pub(crate) fn start(context: Context<'a>, output: &'a mut dyn Write) -> Result<Self> {
        let mut emitter = Self {
            context,
            sections: SectionWriter::new(output),
            block_lens: Vec::new(),
        };
        emitter.sections.prefix(&context.options.header)?;
        emitter.count_written();
        Ok(emitter)
    }

    /// Returns the bytes of each block, before compression and as written.
    pub(crate) fn block_lens(&self) -> &[[u32; 2]] {
        &self.block_lens
    }

    /// Returns the number of the next section.
    pub(crate) fn next_number(&self) -> u32 {
        self.sections.next_number()
    }

    /// Writes the next section.
    pub(crate) fn section(&mut self, section: &Section) -> Result<()> {
        self.sections.section(section)?;
        self.count_written();
        Ok(())
    }

    /// Writes blocks in the order of their numbers until no more come, and gives their permits back.
    ///
    /// # Errors
    /// What compressing a block or writing it gives; `Cancelled`.
    pub(crate) fn blocks(
        &mut self,
        sections: &Receiver<Compressed>,
        permits: &Sender<Permit>,
    ) -> Result<()> {
        let stats = self.context.stats;
        let mut early: BTreeMap<u32, Section> = BTreeMap::new();
        let mut thread = stats.enter(Stage::Emit);
        loop {
            self.context.check_cancelled()?;
            let (number, section) = match thread.wait_in(|| sections.recv_timeout(POLL)) {
                Ok(compressed) => compressed,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            early.insert(number, section?);
            while let Some(section) = early.remove(&self.next_number()) {
                self.context.check_cancelled()?;
                self.section(&section)?;
                thread.did(1, section.payload.len() as u64);
                let lens = [section.data_len, section.payload.len() as u64];
                let lens = lens.map(|len| u32::try_from(len).unwrap_or(u32::MAX));
                self.block_lens.push(lens);
                stats.blocks_written.add(1);
                stats.written_block_bytes.add(section.data_len);
                stats
                    .compressed_block_bytes
                    .add(section.payload.len() as u64);
                stats.memory_bytes.sub(section.data_len);
                // The segmenter may have ended already.
                drop(permits.send(Permit));
            }
        }
        if early.is_empty() {
            Ok(())
        } else {
            Err(Error::cancelled())
        }
    }

    /// Writes the section index, which is the end of the image.
    ///
    /// An image that is too large for one goes without, as readers allow.
    pub(crate) fn section_index(&mut self) -> Result<()> {
        if !self.sections.section_index()? {
            self.context
                .events
                .warn("the image is too large for a section index");
        }
        self.count_written();
        Ok(())
    }

    /// Hands everything over to whatever is behind the output.
    pub(crate) fn finish(self) -> Result<()> {
        self.sections.finish()
    }

    fn count_written(&self) {
        let counted = &self.context.stats.written_bytes;
        counted.add(self.sections.written_bytes() - counted.get());
    }
}
