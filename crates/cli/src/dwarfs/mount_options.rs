//! The driver's `-o` list: our own options here, those of the kernel and of libfuse in `durin_fuse`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use durin_fuse::options as fuse_options;
use durin_fuse::{FsOptions, MountOptions};
use durin_reader::perfmon::Perfmon;
use durin_reader::{ImageOptions, PreloadBlocks};

use super::cache_options::CacheChoice;
use super::memory_lock::MemoryLock;
use crate::common::arguments::{image_offset, processor_count};
use crate::common::exit::Failure;
use crate::common::logger::Level;
use crate::common::size;

/// The help for `-o`.
pub(super) const HELP: &str = "\
Options for -o:
  cachesize=SIZE       memory for decompressed blocks (512m, at most a quarter of the memory)
  workers=N            threads that decompress ahead, 0: one for each processor (2)
  seq_detector=N       after so many blocks in order the next are decompressed ahead, and after
                       some files in order those behind them; 0: never (1)
  readahead=SIZE       decompress this much of a file behind each read (0)
  decratio=X           part of a block of which all of it is decompressed (0.8)
  block_allocator=A    memory of blocks from the heap (malloc) or the system (mmap)
  tidy_strategy=S      throw out nothing (none), blocks not used for tidy_max_age (time, 10m),
                       those in swap (swap); looks every tidy_interval=SPAN (5m)
  offset=N|auto        where the image starts in the file (auto); imagesize=N: its size
  uid=N, gid=N         owner and group of everything
  readonly             show files without write permission
  blocksize=SIZE       preferred size of reads that programs are told (512k)
  [no]beside_clients   answer a client on the processor it is on, or on any (beside_clients)
  [no]io_uring         take requests through io_uring where the kernel offers it, or not (io_uring)
  mlock=none|try|must  keep the metadata in memory (none)
  [no_]cache_files     let the kernel cache file contents, or not; [no_]cache_sparse: with holes
  case_insensitive     find names in any case that are not there exactly
  preload_category=CAT decompress the blocks of a category after mounting; preload_all: all
  analysis_file=FILE   list the files that are used, for mkdwarfs --hotness-list
  perfmon=A+B          measure fuse, filesystem_v2, inode_reader_v2, block_cache, and print in
                       the end (-f); perfmon_trace=FILE: write a Chrome trace
  debuglevel=LEVEL     error, warn, info, verbose, debug, trace (info with -f, else warn)
and those of mount(8) and fuse(8): allow_other, default_permissions, auto_unmount, ro, ...
Unmount with 'fusermount3 -u MOUNTPOINT' or 'umount MOUNTPOINT'.

Exit status: 0 mounted (with -f: unmounted again); 1 bad options or image; 2 no mount point;
4 mounting failed; 5 no background process; 6 no signal handlers; 7 serving failed; 8 a signal.";

/// Options of old releases: accepted with a warning.
const WITHOUT_EFFECT: [&str; 3] = ["enable_nlink", "cache_image", "no_cache_image"];

/// What the options ask for.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) image: ImageOptions,
    cache: CacheChoice,
    pub(super) file_system: FsOptions,
    pub(super) mount: MountOptions,
    pub(super) fsname_given: bool,
    pub(super) memory_lock: MemoryLock,
    pub(super) log_level: Option<Level>,
    pub(super) foreground: bool,
    pub(super) preload: Option<PreloadBlocks>,
    pub(super) analysis_file: Option<PathBuf>,
    perfmon: String,
    pub(super) perfmon_trace: Option<PathBuf>,
    pub(super) warnings: Vec<String>,
}

impl Plan {
    /// Takes the lists of all `-o`, in order.
    pub(super) fn parse(lists: &[OsString], single_thread: bool) -> Result<Self, Failure> {
        let mut plan = Self::default();
        plan.mount.processors = processor_count();
        for list in lists {
            let list = list
                .to_str()
                .ok_or_else(|| Failure::Usage("mount options must be UTF-8".to_owned()))?;
            for option in fuse_options::split(list) {
                plan.take(&option)?;
            }
        }
        plan.measure()?;
        plan.cache
            .apply(&mut plan.image.cache, plan.preload.is_some());
        // What the kernel has it does not ask for again.
        plan.image.cache.lets_go = plan.file_system.cache_files;
        if single_thread {
            plan.mount.threads = 1;
        }
        Ok(plan)
    }

    /// Without measurements there is nothing to trace.
    fn measure(&mut self) -> Result<(), Failure> {
        if self.perfmon.is_empty() {
            if self.perfmon_trace.take().is_some() {
                let text = "mount option 'perfmon_trace' has no effect without 'perfmon'";
                self.warnings.push(text.to_owned());
            }
            return Ok(());
        }
        let components = Perfmon::components(&self.perfmon, '+')
            .map_err(|error| Failure::Usage(format!("mount option 'perfmon': {error}")))?;
        let perfmon = Perfmon::new(&components, self.perfmon_trace.is_some());
        self.image.cache.perfmon = Some(Arc::new(perfmon));
        Ok(())
    }

    fn take(&mut self, option: &str) -> Result<(), Failure> {
        let (key, value) = match option.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (option, None),
        };
        if WITHOUT_EFFECT.contains(&key) {
            self.warnings.push(format!(
                "mount option '{key}' has no effect in this release"
            ));
            return Ok(());
        }
        let taken = match value {
            Some(value) => self.take_value(key, value),
            None => Ok(self.take_flag(key)),
        };
        if taken.map_err(|reason| Failure::Usage(format!("mount option '{option}': {reason}")))? {
            return Ok(());
        }
        self.fsname_given |= key == "fsname";
        self.mount
            .set(option)
            .map_err(|error| Failure::Usage(error.to_string()))
    }

    /// False when the flag is none of ours.
    fn take_flag(&mut self, key: &str) -> bool {
        let file_system = &mut self.file_system;
        match key {
            // As `-d`.
            "debug" => {
                self.foreground = true;
                self.log_level.get_or_insert(Level::Debug);
            }
            "readonly" => file_system.readonly = true,
            "case_insensitive" => file_system.case_insensitive = true,
            "preload_all" => self.preload = Some(PreloadBlocks::All),
            "cache_files" => file_system.cache_files = true,
            "no_cache_files" => file_system.cache_files = false,
            "cache_sparse" => file_system.cache_sparse = true,
            "no_cache_sparse" => file_system.cache_sparse = false,
            _ => return false,
        }
        true
    }

    /// False when the key is none of ours.
    fn take_value(&mut self, key: &str, value: &str) -> Result<bool, String> {
        if self.cache.take(&mut self.image.cache, key, value)? {
            return Ok(true);
        }
        match key {
            // mount(8) takes the first one itself, and makes a loop device.
            "offset" | "image_offset" => self.image.offset = image_offset(value)?,
            "imagesize" => self.image.image_size = Some(size::parse(value)?),
            "uid" => self.file_system.uid = Some(id(value)?),
            "gid" => self.file_system.gid = Some(id(value)?),
            "blocksize" => self.file_system.blocksize = block_size(value)?,
            "preload_category" => {
                self.preload = Some(PreloadBlocks::Category(value.to_owned()));
            }
            "analysis_file" => self.analysis_file = Some(file(value)?),
            "perfmon" => value.clone_into(&mut self.perfmon),
            "perfmon_trace" => self.perfmon_trace = Some(file(value)?),
            "mlock" => self.memory_lock = memory_lock(value)?,
            "debuglevel" => {
                let level = <Level as clap::ValueEnum>::from_str(value, true);
                self.log_level = Some(level.map_err(|_| "no such level".to_owned())?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn file(value: &str) -> Result<PathBuf, String> {
    if value.is_empty() {
        return Err("the name of a file is needed".to_owned());
    }
    Ok(PathBuf::from(value))
}

fn id(value: &str) -> Result<u32, String> {
    value
        .parse()
        .map_err(|_| "a number below 2^32 is needed".to_owned())
}

fn block_size(value: &str) -> Result<u32, String> {
    let bytes = size::parse(value)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a size from 1 to below 4g is needed".to_owned())
}

fn memory_lock(value: &str) -> Result<MemoryLock, String> {
    match value {
        "none" => Ok(MemoryLock::None),
        "try" => Ok(MemoryLock::Try),
        "must" => Ok(MemoryLock::Must),
        _ => Err("none, try or must is needed".to_owned()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use durin_reader::ImageOffset;

    use super::*;

    fn parse(list: &str) -> Result<Plan, String> {
        Plan::parse(&[OsString::from(list)], false)
            .map_err(|failure| failure.message().unwrap_or_default())
    }

    #[test]
    fn takes_our_options() {
        let plan = parse(
            "cachesize=1g,workers=3,offset=512,imagesize=4096,uid=70000,gid=5,readonly,no_cache_files,mlock=try,\
             debuglevel=debug,blocksize=64k",
        )
        .unwrap();
        assert_eq!(
            (plan.image.cache.bytes_max, plan.image.cache.workers),
            (1 << 30, 3)
        );
        assert_eq!(
            (plan.image.offset, plan.image.image_size),
            (ImageOffset::At(512), Some(4096))
        );
        assert_eq!(
            (plan.file_system.uid, plan.file_system.gid),
            (Some(70_000), Some(5))
        );
        assert!(plan.file_system.readonly && !plan.file_system.cache_files);
        assert_eq!(plan.file_system.blocksize, 65_536);
        assert_eq!(
            (plan.memory_lock, plan.log_level),
            (MemoryLock::Try, Some(Level::Debug))
        );
        assert!(plan.warnings.is_empty());
    }

    #[test]
    fn passes_on_those_of_the_kernel() {
        let plan = parse("allow_other,ro,fsname=x,noauto,user").unwrap();
        assert!(plan.mount.allow_other && plan.fsname_given);
        assert_eq!(plan.mount.fsname, "x");
    }

    #[test]
    fn old_options_only_warn() {
        let plan = parse("enable_nlink,cache_image").unwrap();
        assert_eq!(plan.warnings.len(), 2);
    }

    #[test]
    fn bad_options_are_named() {
        for (list, part) in [
            ("frobnicate", "'frobnicate'"),
            ("perfmon=fuse+x", "no component 'x'"),
            ("analysis_file=", "the name of a file"),
            ("cachesize=1x", "'cachesize=1x': unsupported size suffix"),
            ("uid=-1", "'uid=-1'"),
            ("mlock=maybe", "none, try or must"),
            ("offset=x", "'auto' or a number"),
            ("workers=-1", "between 1 and"),
            ("debuglevel=loud", "no such level"),
        ] {
            let message = parse(list).err().unwrap_or_default();
            assert!(message.contains(part), "{list}: {message}");
        }
    }

    #[test]
    fn takes_what_prepares_and_measures() {
        let plan = parse(
            "case_insensitive,preload_category=hotness,analysis_file=a,perfmon=fuse+block_cache,perfmon_trace=t",
        );
        let plan = plan.unwrap();
        assert!(plan.file_system.case_insensitive);
        let hot = PreloadBlocks::Category("hotness".to_owned());
        assert_eq!(plan.preload, Some(hot));
        assert_eq!(plan.analysis_file, Some(PathBuf::from("a")));
        assert_eq!(plan.perfmon_trace, Some(PathBuf::from("t")));
        assert!(plan.image.cache.perfmon.is_some() && plan.warnings.is_empty());
        assert_eq!(parse("perfmon_trace=t").unwrap().warnings.len(), 1);
        assert_eq!(
            parse("preload_all").unwrap().preload,
            Some(PreloadBlocks::All)
        );
    }

    #[test]
    fn single_thread_wins() {
        let plan = Plan::parse(&[OsString::from("max_threads=8")], true).unwrap();
        assert_eq!(plan.mount.threads, 1);
    }
}
