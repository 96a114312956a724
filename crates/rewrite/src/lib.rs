//! Making new images from old ones, without the tree they were made of.
//!
//! [`rewrite`] follows a block from one image to the other: `plan` decides what happens to it, `fetch` reads and decodes,
//! `cut` makes blocks of another size where that is asked for, `pack` compresses, and `pipeline` joins these with bounded
//! queues and writes; `rebuild` then describes the tree anew, or the metadata go along as they are.
//! Beside blocks and metadata, the history and sections of unknown types go along.
//! Every section is verified when it is read, whether or not the image was checked before: a section that was damaged
//! never gets a checksum that says otherwise.
//!
//! The bytes of the new image depend on the old one and the options only, not on the number of threads.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicBool;
//!
//! use durin_codec::Spec;
//! use durin_format::events::Quiet;
//! use durin_reader::{Image, ImageOptions};
//! use durin_rewrite::{Figures, Recompress, RewriteOptions, rewrite};
//! use durin_source::MemorySource;
//! # use durin_writer::{BuildOptions, Input, Stats, build};
//!
//! # fn main() -> durin_format::Result<()> {
//! # let cancel = AtomicBool::new(false);
//! # let dir = std::env::temp_dir().join(format!("durin-rewrite-example-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # std::fs::write(dir.join("file"), "to and fro and ".repeat(1000))?;
//! # let options = BuildOptions::new(Input::Directory(dir.clone()));
//! # let mut old = Vec::new();
//! # build(&options, &mut old, &Stats::default(), &Quiet, &cancel)?;
//! # std::fs::remove_dir_all(&dir)?;
//! let image = Image::open(Arc::new(MemorySource::new(old)), &ImageOptions::default())?;
//! let mut options = RewriteOptions::new(Recompress::ALL);
//! options.compression = Spec::parse("zstd:level=9")?.into();
//! let mut new = Vec::new();
//! let report = rewrite(&image, &options, &mut new, &Figures::default(), &Quiet, &cancel)?;
//! assert!(report.image_bytes < image.len());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod budget;
mod cut;
mod estimate;
mod fetch;
mod figures;
mod history;
mod metadata;
mod options;
mod pack;
mod pipeline;
mod plan;
mod rebuild;
mod remap;
mod report;
mod run;

pub use budget::least_memory;
pub use estimate::{Estimate, estimate};
pub use figures::{Figures, Phase};
pub use options::{CategoryChoice, Header, RebuildOptions, Recompress, RewriteOptions};
pub use report::{CategoryReport, Report};
pub use run::rewrite;
