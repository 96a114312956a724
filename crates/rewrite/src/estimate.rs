//! What a rewriting would come to, without writing.
//!
//! The old image is checked, its blocks are read and decoded, and the metadata are made as for the new image; of the blocks
//! that are compressed anew, only a sample is compressed in earnest: see `durin_writer::sampler`.

use std::io;
use std::sync::atomic::AtomicBool;

use durin_format::Result;
use durin_format::events::Events;
use durin_reader::Image;
use durin_writer::sampler::{Expected, Sampler};
use durin_writer::stats::process_cpu;

use crate::figures::Figures;
use crate::options::RewriteOptions;
use crate::report::Report;
use crate::run::{Run, run};

/// What a rewriting is expected to come to.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The figures of all that was done; what depends on blocks as written is an estimate.
    pub report: Report,
    /// The estimate itself, of the image without its header.
    pub expected: Expected,
}

/// Does what [`rewrite`](crate::rewrite) does, but compresses only some of the blocks and writes nothing.
///
/// # Errors
/// As [`rewrite`](crate::rewrite), but for those of an output.
pub fn estimate(
    image: &Image,
    options: &RewriteOptions,
    figures: &Figures,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<Estimate> {
    let begun = process_cpu();
    let sampler = Sampler::default();
    let asked = Run {
        image,
        options,
        figures,
        events,
        cancel,
        sampler: Some(&sampler),
    };
    let report = run(asked, &mut io::sink())?;
    let all = sampler.predict();
    let cpu_besides = process_cpu()
        .saturating_sub(begun)
        .saturating_sub(all.sampling_cpu);
    let expected = all.expected(report.image_bytes, cpu_besides);
    let written = expected.image_bytes.saturating_sub(report.image_bytes);
    Ok(Estimate {
        expected,
        report: Report {
            image_bytes: expected.image_bytes,
            compressed_block_bytes: report.compressed_block_bytes + written,
            // Their blocks were not compressed.
            categories: Vec::new(),
            ..report
        },
    })
}
