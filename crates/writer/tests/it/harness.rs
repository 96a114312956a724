//! Building an image in memory and seeing it as a tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use durin_format::digest::Digest;
use durin_format::events::{Events, Message};
use durin_format::metadata::Metadata;
use durin_reader::{
    Attr, CheckLevel, CheckOptions, FileKind, Image, ImageOptions, MetadataCheck, Place,
};
use durin_source::MemorySource;
use durin_testkit::tree::{Kind, Node, Time, Tree};
use durin_writer::{BuildOptions, Input, Report, Stats};

/// The result of a build.
pub(crate) struct Built {
    pub(crate) bytes: Vec<u8>,
    pub(crate) report: Report,
    /// Messages with their level, in the order in which they came.
    pub(crate) messages: Vec<String>,
}

/// Keeps messages.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<String>>);

impl Events for Recorder {
    fn message(&self, message: &Message<'_>) {
        let severity = format!("{:?}", message.severity).to_lowercase();
        let line = format!("{severity}: {}", message.text);
        self.0.lock().unwrap().push(line);
    }
}

impl Recorder {
    pub(crate) fn messages(self) -> Vec<String> {
        self.0.into_inner().unwrap()
    }
}

/// Options that make many small blocks, so that little data crosses many of their ends.
pub(crate) fn options(dir: &Path) -> BuildOptions {
    let mut options = BuildOptions::new(Input::Directory(dir.to_owned()));
    options.block_size_bits = 12;
    options.workers = 2;
    options.scanner_workers = 2;
    options
}

/// Builds an image, which must work.
pub(crate) fn build(options: &BuildOptions) -> Built {
    let recorder = Recorder::default();
    let mut bytes = Vec::new();
    let (stats, never) = (Stats::default(), AtomicBool::new(false));
    let report = durin_writer::build(options, &mut bytes, &stats, &recorder, &never).unwrap();
    assert_eq!(report.image_bytes, bytes.len() as u64);
    let messages = recorder.messages();
    let errors = messages
        .iter()
        .filter(|message| message.starts_with("error"));
    assert_eq!(errors.count() as u64, report.errors, "{messages:?}");
    Built {
        bytes,
        report,
        messages,
    }
}

impl Built {
    /// Opens the image, which must be without fault.
    pub(crate) fn image(&self) -> Image {
        let options = ImageOptions {
            check: MetadataCheck::Full,
            ..ImageOptions::default()
        };
        let source = Arc::new(MemorySource::new(self.bytes.clone()));
        let image = Image::open(source, &options).unwrap();
        let check = CheckOptions {
            level: CheckLevel::Full,
            workers: 1,
        };
        let report = image.check(&check, &|_, _| {});
        assert!(report.is_ok() && report.warnings.is_empty(), "{report:?}");
        image
    }

    pub(crate) fn metadata(&self) -> Metadata {
        self.image().thaw_metadata().unwrap()
    }

    /// Returns the contents of all regular files by their paths.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let image = self.image();
        let mut files = BTreeMap::new();
        for step in image.walk() {
            let step = step.unwrap();
            if step.attr.kind == FileKind::Regular {
                let content = read(&image, &step.attr, 0, step.attr.size);
                files.insert(String::from_utf8(step.path).unwrap(), content);
            }
        }
        files
    }

    /// Returns all paths but the root's, directories with a `/` at the end.
    pub(crate) fn paths(&self) -> Vec<String> {
        let image = self.image();
        let paths = image.walk().skip(1).map(|step| {
            let step = step.unwrap();
            let mut path = String::from_utf8(step.path).unwrap();
            if step.attr.kind == FileKind::Directory {
                path.push('/');
            }
            path
        });
        paths.collect()
    }
}

fn read(image: &Image, attr: &Attr, offset: u64, len: u64) -> Vec<u8> {
    let mut data = vec![0; len as usize];
    assert_eq!(
        image.read_at(attr.inode, offset, &mut data).unwrap(),
        data.len()
    );
    data
}

/// Makes files with these contents below `dir`.
pub(crate) fn put(dir: &Path, files: &[(&str, &[u8])]) {
    for (path, content) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// Sees an image as the kernel would show it mounted.
pub(crate) fn tree_of(image: &Image) -> Tree {
    let mut nodes: Vec<Node> = image
        .walk()
        .map(|step| {
            let step = step.unwrap();
            node_of(image, step.path, &step.attr)
        })
        .collect();
    nodes.sort_by(|a, b| a.path.cmp(&b.path));
    let mut leaders = BTreeMap::new();
    for (index, node) in nodes.iter_mut().enumerate() {
        node.link_leader = *leaders.entry(node.ino).or_insert(index);
    }
    Tree { nodes }
}

fn node_of(image: &Image, path: Vec<u8>, attr: &Attr) -> Node {
    let time = |time: durin_reader::Time| Time {
        sec: time.sec,
        nsec: time.nsec,
    };
    let mut node = Node {
        path,
        kind: Kind::of_mode(attr.mode).unwrap(),
        mode: attr.mode,
        uid: attr.uid,
        gid: attr.gid,
        atime: time(attr.atime),
        mtime: time(attr.mtime),
        ctime: time(attr.ctime),
        size: attr.size,
        allocated: attr.allocated,
        nlink: u64::from(attr.nlink),
        rdev: attr.rdev,
        ino: u64::from(attr.inode.0),
        link_leader: 0,
        target: Vec::new(),
        digest: None,
        data: Vec::new(),
    };
    match attr.kind {
        FileKind::Symlink => node.target = image.read_link(attr.inode).unwrap(),
        FileKind::Regular => {
            for extent in image.chunks(attr.inode).unwrap() {
                let extent = extent.unwrap();
                if matches!(extent.place, Place::Data { .. }) {
                    node.data.push(extent.offset..extent.offset + extent.len);
                }
            }
            node.digest = Some(positions_digest(image, attr, &node));
        }
        _ => {}
    }
    node
}

/// As `durin_testkit::tree::Digest::Positions`: each aligned 4 KiB that is not all zero, with its position.
fn positions_digest(image: &Image, attr: &Attr, node: &Node) -> [u8; 32] {
    const STEP: u64 = 4096;
    let mut hasher = Digest::parse("sha256").unwrap().hasher();
    hasher.update(&node.size.to_le_bytes());
    let mut done = 0;
    for range in &node.data {
        let mut offset = done.max(range.start / STEP * STEP);
        let end = range.end.div_ceil(STEP).saturating_mul(STEP).min(node.size);
        while offset < end {
            let piece = read(image, attr, offset, STEP.min(end - offset));
            if piece.iter().any(|byte| *byte != 0) {
                hasher.update(&offset.to_le_bytes());
                hasher.update(&piece);
            }
            offset += piece.len() as u64;
        }
        done = offset;
    }
    hasher.finish().try_into().unwrap()
}
