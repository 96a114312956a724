//! From new blocks to sections: compressing, or copying with a header that says the new place.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use durin_codec::{Crew, Encoded, Spec, uncompressed_len};
use durin_format::section::{CompressionType, SectionType, Version};
use durin_format::{Error, Result};
use durin_reader::RawSection;
use durin_writer::coding::{BlockEncoder, be_nice};
use durin_writer::sampler::{Candidate, CheapEncoder, Look, Sampler};
use durin_writer::sections::Section;

use crate::cut::{Task, Work};
use crate::plan::{Plan, StreamIndex};

/// A finished block.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) number: u32,
    pub(crate) stream: StreamIndex,
    pub(crate) section: Section,
    pub(crate) is_copy: bool,
}

/// The threads that compress.
pub(crate) struct Packer<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) crew: Arc<Crew>,
    pub(crate) niceness: i32,
    pub(crate) sampler: Option<&'a Sampler>,
}

/// What a thread keeps from block to block.
struct Encoders {
    earnest: BlockEncoder,
    cheap: CheapEncoder,
}

/// Tells those who wait for this thread's block that it will not come.
struct PanicGuard<'a>(&'a Sender<Result<Packed>>);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = Error::unsupported("a compression thread has failed");
            self.0.send(Err(error)).ok();
        }
    }
}

impl Packer<'_> {
    /// Works until no more blocks come or nobody takes the sections any more.
    pub(crate) fn work(&self, tasks: &Receiver<Task>, packed: &Sender<Result<Packed>>) {
        let guard = PanicGuard(packed);
        be_nice(self.niceness);
        let mut encoders = Encoders {
            earnest: BlockEncoder::new(Arc::clone(&self.crew)),
            cheap: CheapEncoder::default(),
        };
        while let Ok(task) = tasks.recv() {
            let member = self.crew.join();
            let result = self.pack(task, &mut encoders);
            drop(member);
            let is_last = result.is_err();
            if guard.0.send(result).is_err() || is_last {
                return;
            }
        }
    }

    fn pack(&self, task: Task, encoders: &mut Encoders) -> Result<Packed> {
        let Task {
            number,
            stream,
            place,
            work,
        } = task;
        let is_copy = matches!(work, Work::Copy(_));
        let section = match work {
            Work::Copy(raw) => copy(number, SectionType::Block, raw),
            Work::Encode(data) => match self.sampler {
                None => self.encode(number, stream, data, &mut encoders.earnest)?,
                Some(sampler) => {
                    let is_stored = self.is_stored(stream);
                    let data_len = data.len() as u64;
                    let look = if is_stored {
                        Look::stored(data_len)
                    } else {
                        encoders.cheap.look(&data)?
                    };
                    let candidate = Candidate {
                        number,
                        stream,
                        place,
                        data_len,
                        look,
                        is_stored,
                    };
                    let encoder = &mut encoders.earnest;
                    sampler.sample(candidate, || self.encode(number, stream, data, encoder))?
                }
            },
        };
        Ok(Packed {
            number,
            stream,
            section,
            is_copy,
        })
    }

    /// Whether the blocks of a stream are not compressed.
    fn is_stored(&self, stream: StreamIndex) -> bool {
        let stream = self.plan.streams.get(stream);
        let coding = stream.and_then(|stream| stream.coding.as_ref());
        coding.is_none_or(|coding| coding.spec == Spec::NULL)
    }

    fn encode(
        &self,
        number: u32,
        stream: StreamIndex,
        data: Vec<u8>,
        encoder: &mut BlockEncoder,
    ) -> Result<Section> {
        let data_len = data.len() as u64;
        let stream = self.plan.streams.get(stream);
        let encoded = match stream.and_then(|stream| stream.coding.as_ref()) {
            Some(coding) => encoder.encode(coding, &data)?,
            None => None,
        };
        let encoded = encoded.unwrap_or(Encoded {
            compression: CompressionType::None,
            payload: data,
        });
        Ok(Section::new(number, SectionType::Block, encoded, data_len))
    }
}

/// Gives a stored section another number. Its header goes along where it says the same already.
pub(crate) fn copy(number: u32, section_type: SectionType, raw: RawSection) -> Section {
    let RawSection {
        header,
        header_bytes,
        payload,
    } = raw;
    // What cannot be told without decoding it counts as it is stored.
    let data_len = uncompressed_len(header.compression, &payload, u64::MAX);
    let data_len = data_len.unwrap_or(payload.len() as u64);
    let is_same = header.number == Some(number)
        && header.version == Version::CURRENT
        && header.section_type == section_type;
    match header_bytes.filter(|_| is_same) {
        Some(header) => Section {
            section_type,
            header,
            payload,
            data_len,
        },
        None => {
            let encoded = Encoded {
                compression: header.compression,
                payload,
            };
            Section::new(number, section_type, encoded, data_len)
        }
    }
}
