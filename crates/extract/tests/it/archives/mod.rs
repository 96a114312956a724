//! Every image with a manifest as an archive of each format, unpacked by programs that are not ours.

mod cpio;
mod filters;
mod others;
mod tar;

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use durin_extract::{
    ArchiveFormat, ArchiveOptions, ExtractOptions, Report, Stats, extract_to_archive,
};
use durin_reader::Image;
use durin_testkit::compare::{self, Seen};
use durin_testkit::manifest::{Manifest, ManifestEntry};
use durin_testkit::run::Run;
use durin_testkit::tree::{Digest, Kind, TreeOptions, snapshot};
use durin_testkit::vectors::Vectors;

use crate::{Messages, Outcome, open};

/// Gigabytes may take as long on a busy disk.
const LARGE_MAX: Duration = Duration::from_mins(30);

/// What a format and the program that unpacks it keep.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    /// Modification times in multiples of this.
    pub(crate) mtime_ns: u32,
    /// Sockets.
    pub(crate) sockets: bool,
    /// Hard links.
    pub(crate) links: bool,
    /// Holes.
    pub(crate) holes: bool,
    /// Devices and fifos.
    pub(crate) nodes: bool,
    /// Times of symlinks, and of directories: programs that set them at once lose them to the files that follow.
    pub(crate) dir_times: bool,
    /// Device numbers of 32 bits.
    pub(crate) devices: bool,
    /// Paths and targets of any length.
    pub(crate) names: bool,
}

pub(crate) fn write(
    image: &Image,
    format: ArchiveFormat,
    target: &mut dyn Write,
    options: &ExtractOptions,
) -> Outcome {
    write_as(image, &ArchiveOptions::new(format), target, options)
}

pub(crate) fn write_as(
    image: &Image,
    archive: &ArchiveOptions,
    target: &mut dyn Write,
    options: &ExtractOptions,
) -> Outcome {
    let messages = Messages::default();
    let (stats, cancel) = (Stats::default(), AtomicBool::new(false));
    let result = extract_to_archive(image, archive, target, options, &stats, &messages, &cancel);
    if let Ok(Report { errors: 0, .. }) = result {
        let load = |counter: &std::sync::atomic::AtomicU64| {
            counter.load(std::sync::atomic::Ordering::Relaxed)
        };
        assert_eq!(load(&stats.files_done), load(&stats.files_total));
    }
    Outcome {
        result,
        messages: messages.0.into_inner().unwrap(),
    }
}

/// Writes every image with a manifest, lets `unpack` make a tree of each archive in a directory, and compares.
pub(crate) fn every_image(
    format: ArchiveFormat,
    extension: &str,
    kept: Kept,
    unpack: impl Fn(&Path, &Path) -> Run + Sync,
) {
    let vectors = durin_testkit::require!(Vectors::find());
    if !durin_testkit::skip::is_root() {
        durin_testkit::skip::skipped("only root can make devices and give files away");
        return;
    }
    let images = vectors.with_manifest();
    let images = Mutex::new(images.into_iter());
    let work = || {
        loop {
            // The lock is given back before the work begins.
            let next = images.lock().unwrap().next();
            match next {
                Some(path) => one_image(&path, format, extension, kept, &unpack),
                None => return,
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
}

/// Does it for one image.
fn one_image(
    path: &Path,
    format: ArchiveFormat,
    extension: &str,
    kept: Kept,
    unpack: &impl Fn(&Path, &Path) -> Run,
) {
    let mut manifest = expected(Vectors::manifest(path), kept);
    // Unpacking holes of gigabytes takes a minute.
    let is_quick = kept.holes && format == ArchiveFormat::Pax && extension == "tar";
    let is_large = content_bytes(&manifest) > 1 << 30;
    if is_large && !is_quick && !is_all_wanted() {
        return;
    }
    // Nor can this format hold a file of 5 GiB.
    let is_too_large = is_large && format == ArchiveFormat::CpioNewc;
    // Info-ZIP calls an archive of nothing broken.
    if extension == "zip" && manifest.entries.len() == 1 {
        return;
    }
    let image = open(path).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join(format!("a.{extension}"));
    let mut file = Sparse(File::create(&archive).unwrap());
    let name = path.display();
    let options = ExtractOptions {
        continue_on_error: !kept.names || is_too_large,
        ..ExtractOptions::default()
    };
    let outcome = write(&image, format, &mut file, &options);
    let report = outcome
        .result
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    for message in outcome
        .messages
        .iter()
        .filter(|m| m.contains("too long") || m.contains("longer") || m.contains("more than the"))
    {
        let path = message.split(": ").next().unwrap().as_bytes().to_vec();
        drop_entries(&mut manifest, |entry| entry.path == path);
        assert!(report.errors > 0);
    }
    assert!(
        kept.names || report.errors <= 3,
        "{name}: {:?}",
        outcome.messages
    );
    assert!(
        report.errors == u64::from(is_too_large) || !kept.names,
        "{name}"
    );
    file.finish();
    let target = dir.path().join("out");
    fs::create_dir(&target).unwrap();
    let run = unpack(&archive, &target);
    let run = run.env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
    let run = if is_large {
        run.time_max(LARGE_MAX)
    } else {
        run
    };
    let outcome = run.succeed();
    assert_eq!(outcome.stderr, "", "{name}");
    let tree = snapshot(
        &target,
        &TreeOptions {
            digest: Digest::Full,
        },
    )
    .unwrap();
    let mut differences = compare::manifest(&manifest, &tree, Seen::Extracted);
    differences.retain(|line| is_kept(line, kept));
    if !kept.dir_times {
        let files: std::collections::BTreeSet<String> = manifest
            .entries
            .iter()
            .filter(|entry| entry.kind == Kind::File)
            .map(|entry| entry.path.escape_ascii().to_string())
            .collect();
        differences.retain(|line| {
            let path = line.split(": mtime: ").next().unwrap();
            path == line || files.contains(path)
        });
    }
    compare::assert_same(&format!("{name} as {format:?}"), &differences);
}

/// A file in which zeros take no room: some archives are gigabytes of them.
struct Sparse(File);

impl Sparse {
    fn finish(mut self) {
        let len = self.0.stream_position().unwrap();
        self.0.set_len(len).unwrap();
    }
}

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let page = bytes.get(..bytes.len().min(64 << 10)).unwrap_or_default();
        if page.iter().all(|byte| *byte == 0) {
            self.0
                .seek(SeekFrom::Current(i64::try_from(page.len()).unwrap()))?;
            return Ok(page.len());
        }
        self.0.write(page)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether this is `cargo xtask archives`, which leaves nothing out.
fn is_all_wanted() -> bool {
    std::env::args().any(|argument| argument == "--include-ignored")
}

/// Bytes of all files, holes included.
pub(crate) fn content_bytes(manifest: &Manifest) -> u64 {
    manifest.entries.iter().filter_map(|entry| entry.size).sum()
}

/// What can be expected of a manifest's tree.
fn expected(mut manifest: Manifest, kept: Kept) -> Manifest {
    let is_kept = |kind: Kind| match kind {
        Kind::Socket => kept.sockets,
        Kind::Fifo | Kind::CharDevice | Kind::BlockDevice => kept.nodes,
        _ => true,
    };
    drop_entries(&mut manifest, |entry| !is_kept(entry.kind));
    if kept.mtime_ns > 1_000_000_000 {
        for entry in &mut manifest.entries {
            let resolution = i64::from(kept.mtime_ns / 1_000_000_000);
            entry.mtime.0 -= entry.mtime.0.rem_euclid(resolution);
        }
    }
    manifest
}

fn drop_entries(manifest: &mut Manifest, is_dropped: impl Fn(&ManifestEntry) -> bool) {
    let (dropped, kept) = std::mem::take(&mut manifest.entries)
        .into_iter()
        .partition::<Vec<_>, _>(is_dropped);
    manifest.entries = kept;
    for ManifestEntry { path, .. } in dropped {
        let slash = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let parent = manifest
            .entries
            .iter_mut()
            .find(|entry| entry.path == path[..slash])
            .unwrap();
        parent.dir_len = parent.dir_len.map(|len| len - 1);
    }
}

/// Whether a difference counts.
fn is_kept(line: &str, kept: Kept) -> bool {
    let is_about = |what: &str| line.contains(&format!(": {what}: expected"));
    // The root is a directory of the test, and reading a file to digest it is an access.
    !(line.starts_with("(top): ") && !is_about("entries")
        || is_about("atime")
        || kept.mtime_ns >= 1_000_000_000 && is_about("mtime") && has_equal_seconds(line)
        || !kept.links && (is_about("link count") || is_about("link to"))
        || !kept.devices && is_about("device number")
        // bsdtar makes a file of a socket.
        || is_about("type") && line.contains("\"socket\"")
        || is_about("mode") && line.contains("expected \"140")
        || !kept.holes && is_about("bytes outside holes"))
}

/// Whether only fractions of a second make the difference.
fn has_equal_seconds(line: &str) -> bool {
    let seconds = |after: &str| line.split(after).nth(1)?.split(',').next();
    seconds("expected (") == seconds("found (")
}
