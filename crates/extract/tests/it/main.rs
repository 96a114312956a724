//! Extraction of real images to real directories.
#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, which is what it should do"
)]

mod archives;
mod damaged;
mod hostile;
mod in_the_way;
mod large;
mod manifests;
mod once;
mod patterns;
mod salvage;
mod synthetic;
mod target;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use durin_extract::{ExtractOptions, Report, Stats, extract_to_directory};
use durin_format::Result;
use durin_format::events::{Events, Message, Severity};
use durin_reader::{Image, ImageOptions};
use durin_source::OpenMode;

/// Collects what is reported.
#[derive(Default)]
struct Messages(Mutex<Vec<String>>);

impl Events for Messages {
    fn message(&self, message: &Message<'_>) {
        if message.severity != Severity::Info {
            self.0.lock().unwrap().push(message.text.to_owned());
        }
    }
}

/// The outcome of an extraction, with what was reported.
struct Outcome {
    result: Result<Report>,
    messages: Vec<String>,
}

fn open(path: &Path) -> Result<Image> {
    let source = durin_source::open(path, OpenMode::Mmap)?;
    Image::open(source, &ImageOptions::default())
}

fn extract_image(image: &Image, target: &Path, options: &ExtractOptions) -> Outcome {
    let messages = Messages::default();
    let (stats, cancel) = (Stats::default(), AtomicBool::new(false));
    let result = extract_to_directory(image, target, options, &stats, &messages, &cancel);
    Outcome {
        result,
        messages: messages.0.into_inner().unwrap(),
    }
}

fn extract(path: &Path, target: &Path, options: &ExtractOptions) -> Outcome {
    extract_image(&open(path).unwrap(), target, options)
}

/// Everything, going on after errors.
fn lenient() -> ExtractOptions {
    ExtractOptions {
        continue_on_error: true,
        ..ExtractOptions::default()
    }
}
