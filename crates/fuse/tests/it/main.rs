//! The file system without a kernel.
#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, which is what it should do"
)]

mod model;
mod nodes;

use std::path::Path;
use std::sync::Arc;

use durin_format::events::Quiet;
use durin_fuse::FsOptions;
use durin_fuse::fs::Fs;
use durin_reader::{Image, ImageOptions};
use durin_source::OpenMode;

fn open(path: &Path) -> Fs {
    let source = durin_source::open(path, OpenMode::Mmap).unwrap();
    let image = Image::open(source, &ImageOptions::default()).unwrap();
    Fs::new(Arc::new(image), FsOptions::default(), Arc::new(Quiet))
}
