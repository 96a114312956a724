//! Everything that can be asked of an image. Any answer will do; a panic, a hang or a heap of memory will not.

use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use durin_extract::salvage::{SalvageOptions, lost_files, salvage};
use durin_extract::{
    ArchiveFormat, ArchiveOptions, ExtractOptions, Stats, extract_to_archive, extract_to_directory,
};
use durin_format::events::Quiet;
use durin_format::{InodeNum, Result};
use durin_fuse::FsOptions;
use durin_fuse::fs::{Fs, Full, Seek};
use durin_reader::{
    CacheOptions, CheckLevel, CheckOptions, Filling, Image, ImageOptions, MetadataCheck,
};
use durin_rewrite::{Figures, RebuildOptions, Recompress, RewriteOptions, rewrite};
use durin_source::MemorySource;
use durin_testkit::programs::Programs;
use durin_testkit::random::Random;

/// What is looked at of an image that says it has 2^32 of them.
const INODES_MAX: u32 = 2000;
const NAMES_MAX: usize = 20;
const READS: u64 = 20;
const READ_LEN_MAX: u64 = 100_000;
/// Trees that come to more than this, holes included, are not written out: a hole may have any length.
const TREE_BYTES_MAX: u64 = 32 << 20;
const CACHE_BYTES: u64 = 32 << 20;
const ARCHIVES: [ArchiveFormat; 10] = [
    ArchiveFormat::V7,
    ArchiveFormat::Ustar,
    ArchiveFormat::Gnutar,
    ArchiveFormat::Pax,
    ArchiveFormat::PaxRestricted,
    ArchiveFormat::CpioOdc,
    ArchiveFormat::CpioNewc,
    ArchiveFormat::Zip,
    ArchiveFormat::Mtree,
    ArchiveFormat::Raw,
];
const COMMANDS: [&[&str]; 14] = [
    &["check", "--check-integrity"],
    &["check", "--detail=7"],
    &["check", "--json", "--detail=7"],
    &["check", "--checksum=md5"],
    &["check", "--list", "--verbose"],
    &["check", "--export-metadata=/dev/null"],
    &["check", "--space"],
    &["verify"],
    &["info"],
    &["ls", "--recursive"],
    &["tree"],
    &["find"],
    &["du"],
    &["grep", "e"],
];

/// What became of an image.
pub(super) struct Used {
    /// It could be opened.
    pub(super) is_open: bool,
    /// All its files can be read in a moment.
    pub(super) is_small: bool,
}

pub(super) fn use_all(what: &str, bytes: &[u8], random: &mut Random, work: &Path) -> Used {
    let options = options(random);
    let Ok(image) = open(bytes, &options) else {
        if random.below(8) == 0 {
            rescue(bytes, &options, random, work);
        }
        return Used {
            is_open: false,
            is_small: true,
        };
    };
    let tree_bytes = look(&image);
    read(&image, random);
    let is_small = tree_bytes < TREE_BYTES_MAX;
    match random.below(9) {
        0 | 1 => check(what, bytes),
        2 | 3 => write_anew(what, &image, random),
        4 if is_small => archive(&image, random),
        5 if is_small => extract(&image, random, work),
        6 if is_small => rescue(bytes, &options, random, work),
        7 => drop(lost_files(&image)),
        _ => serve(image, random),
    }
    Used {
        is_open: true,
        is_small,
    }
}

fn options(random: &mut Random) -> ImageOptions {
    let checks = [MetadataCheck::Quick, MetadataCheck::Full];
    ImageOptions {
        check: checks[usize::from(random.below(4) == 0)],
        cache: CacheOptions {
            bytes_max: CACHE_BYTES,
            workers: usize::try_from(random.below(2)).unwrap(),
            follows_walks: random.below(2) == 0,
            lets_go: random.below(2) == 0,
            verify_blocks: random.below(2) == 0,
            ..CacheOptions::default()
        },
        ..ImageOptions::default()
    }
}

fn open(bytes: &[u8], options: &ImageOptions) -> Result<Image> {
    Image::open(Arc::new(MemorySource::new(bytes.to_vec())), options)
}

/// Asks for names, attributes and tables; returns the sum of the sizes of all files.
fn look(image: &Image) -> u64 {
    let mut tree_bytes = 0_u64;
    for entry in image.walk().filter_map(Result::ok) {
        tree_bytes = tree_bytes.saturating_add(entry.attr.size);
        drop(image.read_link_raw(entry.entry.inode));
    }
    for inode in (0..image.inode_count().min(INODES_MAX)).map(InodeNum) {
        drop(image.inode_attr(inode));
        drop(image.parent(inode));
        drop(image.canonical_entry(inode));
        drop(image.read_link(inode));
        drop(image.lookup(inode, b"name"));
        drop(image.content_number(inode));
        drop(image.chunks(inode).map(|chunks| chunks.take(1000).count()));
        drop(
            image
                .dir(inode)
                .map(|entries| entries.filter(Result::is_ok).count()),
        );
    }
    drop(image.info().map(|info| info.to_json()));
    drop(image.files_in_data_order());
    drop(image.stored_sizes());
    drop(image.history());
    drop(image.thaw_metadata());
    black_box(image.statfs());
    drop(image.resolve(b"a/b/../c"));
    tree_bytes
}

/// Reads at random places, mostly such that exist.
fn read(image: &Image, random: &mut Random) {
    let count = u64::from(image.inode_count().clamp(1, INODES_MAX));
    for _ in 0..READS {
        let inode = InodeNum(u32::try_from(random.below(count)).unwrap());
        let Ok(attr) = image.inode_attr(inode) else {
            continue;
        };
        let offset = match random.below(4) {
            0 => 0,
            1 => random.next(),
            _ => random.below(attr.size.saturating_add(2).max(1)),
        };
        let mut buf = vec![0; usize::try_from(random.below(READ_LEN_MAX)).unwrap()];
        drop(image.read_at(inode, offset, &mut buf));
        drop(image.seek_data(inode, offset));
        drop(image.seek_hole(inode, offset));
        drop(image.hole_end(inode, offset));
    }
}

/// Answers as the driver does, to numbers of nodes that are there and that are not.
fn serve(image: Image, random: &mut Random) {
    let options = FsOptions {
        case_insensitive: random.below(2) == 0,
        ..FsOptions::default()
    };
    let fs = Fs::new(Arc::new(image), options, Arc::new(Quiet));
    for _ in 0..READS {
        let number = match random.below(8) {
            0 => random.next(),
            _ => random.below(200),
        };
        let mut names = Vec::new();
        let taken = fs.read_dir(number, random.below(4), &mut |item| {
            names.push(item.name.to_vec());
            Ok(if names.len() < NAMES_MAX {
                Full::No
            } else {
                Full::Yes
            })
        });
        black_box((taken.is_ok(), fs.node(number).is_ok()));
        for name in &names {
            black_box(fs.lookup(number, name).is_ok());
        }
        drop(fs.read_link(number));
        let mut room = [0; 5000];
        let read = fs.read(number, random.below(5000), 5000, &mut Filling(&mut room));
        black_box(read.is_ok());
        black_box(fs.seek(number, 1, Seek::Hole).is_ok());
        drop(fs.xattr(number, b"user.dwarfs.inodeinfo"));
        drop(fs.xattr(number, b"user.dwarfs.driver.version"));
    }
    black_box((fs.stat_fs(), fs.caches_everything()));
}

/// What the full check finds good can be walked.
fn check(what: &str, bytes: &[u8]) {
    let full = ImageOptions {
        check: MetadataCheck::Full,
        ..ImageOptions::default()
    };
    let Ok(image) = open(bytes, &full) else {
        return;
    };
    let options = CheckOptions {
        level: CheckLevel::Full,
        workers: 1,
    };
    if image.check(&options, &|_, _| ()).is_ok() {
        for entry in image.walk() {
            entry.unwrap_or_else(|error| panic!("{what}: passed the check, and then {error}"));
        }
    }
}

/// What is made of a checked image is one.
fn write_anew(what: &str, image: &Image, random: &mut Random) {
    let mut options = RewriteOptions::new(if random.below(2) == 0 {
        Recompress::ALL
    } else {
        Recompress::METADATA
    });
    options.compression = "zstd:level=1".parse::<durin_codec::Spec>().unwrap().into();
    options.rebuild = (random.below(2) == 0).then(RebuildOptions::default);
    let is_recut = options.rebuild.is_some() && options.recompress.blocks;
    options.block_size_bits = (is_recut && random.below(2) == 0).then_some(12);
    let (figures, cancel) = (Figures::default(), AtomicBool::new(false));
    let mut new = Vec::new();
    if rewrite(image, &options, &mut new, &figures, &Quiet, &cancel).is_ok() {
        let new = open(&new, &ImageOptions::default())
            .unwrap_or_else(|error| panic!("{what}: rewritten, and then {error}"));
        new.check_metadata()
            .unwrap_or_else(|error| panic!("{what}: rewritten, and then {error}"));
    }
}

/// Takes bytes up to a number.
struct Sink(u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.0.checked_sub(bytes.len() as u64);
        self.0 = left.ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn extract_options(random: &mut Random) -> ExtractOptions {
    ExtractOptions {
        // The machine is somebody's: its devices are not opened by what looks into the directory meanwhile.
        skip_devices: true,
        continue_on_error: random.below(2) == 0,
        ..ExtractOptions::default()
    }
}

fn archive(image: &Image, random: &mut Random) {
    let pick = usize::try_from(random.below(ARCHIVES.len() as u64)).unwrap();
    let archive = ArchiveOptions::new(ARCHIVES[pick]);
    let options = extract_options(random);
    let mut sink = Sink(2 * TREE_BYTES_MAX);
    let (stats, cancel) = (Stats::default(), AtomicBool::new(false));
    drop(extract_to_archive(
        image, &archive, &mut sink, &options, &stats, &Quiet, &cancel,
    ));
}

/// Calls `fill` with an empty directory, and sees to it that nothing was made beside that.
fn in_target(work: &Path, fill: impl FnOnce(&Path)) {
    let outer = tempfile::tempdir_in(work).unwrap();
    let target = outer.path().join("a/b");
    std::fs::create_dir_all(&target).unwrap();
    fill(&target);
    for (dir, only) in [(outer.path(), "a"), (&outer.path().join("a"), "b")] {
        let names = crate::support::names_in(dir);
        assert_eq!(names, [only], "something was made outside of the target");
    }
}

fn extract(image: &Image, random: &mut Random, work: &Path) {
    let options = extract_options(random);
    let (stats, cancel) = (Stats::default(), AtomicBool::new(false));
    in_target(work, |target| {
        drop(extract_to_directory(
            image, target, &options, &stats, &Quiet, &cancel,
        ));
    });
}

fn rescue(bytes: &[u8], image: &ImageOptions, random: &mut Random, work: &Path) {
    let options = SalvageOptions {
        image: image.clone(),
        extract: extract_options(random),
        with_partial: random.below(2) == 0,
    };
    let source: Arc<dyn durin_source::Source> = Arc::new(MemorySource::new(bytes.to_vec()));
    let (stats, cancel) = (Stats::default(), AtomicBool::new(false));
    in_target(work, |target| {
        drop(salvage(&source, target, &options, &stats, &Quiet, &cancel));
    });
}

/// Runs one of the programs, which ends by itself and says what it found.
pub(super) fn run_program(
    what: &str,
    bytes: &[u8],
    programs: &Programs,
    random: &mut Random,
    work: &Path,
) {
    let image = work.join("image");
    std::fs::write(&image, bytes).unwrap();
    let pick = usize::try_from(random.below(COMMANDS.len() as u64)).unwrap();
    let [subcommand, rest @ ..] = COMMANDS[pick] else {
        unreachable!("each has a name");
    };
    // A pattern stands before the image.
    let is_grep = *subcommand == "grep";
    let run = programs.run("durin").arg(subcommand);
    let run = if is_grep {
        run.args(rest).arg(&image)
    } else {
        run.arg(&image).args(rest)
    };
    let outcome = run
        .time_max(Duration::from_secs(20))
        .memory_max(super::RESIDENT_BYTES_MAX)
        .output();
    let has_ended = outcome.killed.is_none() && outcome.signal.is_none();
    let is_calm = has_ended && !outcome.stderr.contains("panicked");
    let command = COMMANDS[pick].join(" ");
    assert!(is_calm, "{what}: durin {command}: {outcome}");
    let is_understood = !outcome.stderr.contains("Usage:");
    assert!(is_understood, "durin {command}: {outcome}");
}
