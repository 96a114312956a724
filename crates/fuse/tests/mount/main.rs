//! The driver through the kernel: real mounts of real images, in this process.
//!
//! Each module is an operation. A test that cannot mount says SKIPPED.
#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, which is what it should do"
)]

mod caching;
mod capabilities;
mod hostile;
mod io_uring;
mod lseek;
mod manifests;
mod open;
mod readdir;
mod statfs;
mod unmount;
mod xattr;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use durin_format::events::{Events, Message, Severity};
use durin_fuse::{FsOptions, MountOptions, Unmounter};
use durin_reader::{Image, ImageOptions};
use durin_source::OpenMode;
use durin_testkit::vectors::Vectors;
use tempfile::TempDir;

/// Collects what the driver reports.
#[derive(Default)]
struct Messages(Mutex<Vec<String>>);

impl Events for Messages {
    fn message(&self, message: &Message<'_>) {
        if message.severity != Severity::Info {
            self.0.lock().unwrap().push(message.text.to_owned());
        }
    }
}

/// A mounted image, served by threads of the test; unmounted when it goes.
struct Mount {
    point: TempDir,
    unmounter: Unmounter,
    server: Option<JoinHandle<durin_format::Result<()>>>,
    messages: Arc<Messages>,
}

impl Mount {
    fn new(image: &Path) -> Self {
        Self::with(image, &FsOptions::default(), &MountOptions::default())
    }

    fn with(image: &Path, fs: &FsOptions, mount: &MountOptions) -> Self {
        let image = Arc::new(open(image));
        let point = tempfile::tempdir().unwrap();
        let messages = Arc::new(Messages::default());
        let events: Arc<Messages> = Arc::clone(&messages);
        let session = durin_fuse::mount(image, point.path(), fs, mount, events).unwrap();
        let unmounter = session.unmounter();
        let server = std::thread::Builder::new()
            .spawn(move || session.run())
            .unwrap();
        Self {
            point,
            unmounter,
            server: Some(server),
            messages,
        }
    }

    fn path(&self) -> &Path {
        self.point.path()
    }

    fn join(&self, path: &str) -> PathBuf {
        self.point.path().join(path)
    }

    fn messages(&self) -> Vec<String> {
        self.messages.0.lock().unwrap().clone()
    }

    /// Waits for the server to end, which somebody else has seen to.
    fn wait(&mut self) -> durin_format::Result<()> {
        self.server.take().unwrap().join().unwrap()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.unmounter.unmount().unwrap();
            let served = server.join();
            if !std::thread::panicking() {
                served.unwrap().unwrap();
            }
        }
    }
}

fn open(path: &Path) -> Image {
    let source = durin_source::open(path, OpenMode::Mmap).unwrap();
    Image::open(source, &ImageOptions::default())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a test needs to begin: that mounting works here, and the images.
fn ready() -> Result<Vectors, String> {
    durin_testkit::mount::available()?;
    Vectors::find()
}
