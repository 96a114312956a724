//! Building DwarFS images.
//!
//! [`build`] runs the stages in this order, and the modules are named after them: `scan` reads the tree (leaving out
//! what the [`filter`] and a [`script`] say), `transform` lets a script change attributes, `analyze` reads files once to find equal
//! ones and what kinds of data they are (`dedupe`, `categorize`), `streams` and `order` decide where contents go, `read` fetches them,
//! `segment` cuts them into blocks, `compress` and `emit` write the blocks, and `metadata` describes everything.
//! The image depends on the input and the options only: not on the number of threads, nor on the order in which the
//! file system lists names. This crate knows nothing of reading images.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use durin_codec::Spec;
//! use durin_format::events::Quiet;
//! use durin_writer::{BuildOptions, Input, Stats, build};
//!
//! # fn main() -> durin_format::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("durin-writer-example-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! let mut options = BuildOptions::new(Input::Directory(dir.clone()));
//! options.compression = Spec::parse("lz4")?.into();
//! let mut image = Vec::new();
//! let report = build(&options, &mut image, &Stats::default(), &Quiet, &AtomicBool::new(false))?;
//! assert_eq!((report.errors, report.image_bytes), (0, image.len() as u64));
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod analyze;
mod attributes;
mod categorize;
mod category;
mod category_presets;
pub mod coding;
mod compress;
mod context;
mod dedupe;
mod emit;
mod estimate;
mod figures;
mod files;
pub mod filter;
pub mod level;
mod memory;
mod metadata;
pub mod mode;
mod open;
mod options;
mod order;
pub mod output;
mod per_category;
mod pipeline;
mod read;
mod report;
pub mod sampler;
mod scan;
pub mod script;
mod script_order;
mod seal;
pub mod sections;
mod segment;
mod sketch;
mod sparse;
pub mod stats;
mod status;
mod streams;
mod sync;
pub mod tables;
mod times;
mod transform;
mod tree;

pub use categorize::{CategorizeOptions, Categorizer, IncompressibleOptions};
pub use category::CATEGORY_NAMES;
pub use category_presets::{CategoryPresets, usual_categorizers, usual_incompressible};
pub use estimate::Estimate;
pub use memory::{Compressors, Role, automatic_memory_limit, peak_bytes};
pub use options::{
    BuildOptions, Input, NilsimsaOptions, Order, PackOptions, SmallTree, TimeResolution,
};
#[doc(hidden)]
pub use order::MadeUp;
pub use per_category::PerCategory;
pub use pipeline::{build, decide, estimate};
pub use report::{CategoryReport, Critical, Report};
pub use stats::Stats;
