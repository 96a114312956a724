//! dwarfs: the FUSE driver as a program.
//!
//! In the background mode, which is the default, the process forks before it does anything else: the child opens and
//! mounts the image, and the parent returns with the child's verdict as soon as the mount is usable.

mod auto_mountpoint;
mod cache_options;
mod daemon;
mod memory_lock;
mod mount_options;
mod options;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ArgMatches;
use durin_format::Error;
use durin_fuse::{AccessLog, Session, Unmounted, Unmounter};
use durin_reader::{Image, ImageOptions, Preload, PreloadBlocks};
use signal_hook::iterator::Signals;

use crate::common::exit::{self, Failure};
use crate::common::logger::{Level, Logger};
use crate::common::measuring::Measuring;
use crate::common::program::{self, Program};
use crate::common::{arguments, banner, duration, escape, image, output, signals, system};

use auto_mountpoint::AutoMountpoint;
use daemon::Readiness;
use mount_options::Plan;
use options::Options;

/// The exit codes of the driver. Source: CLI reference, "dwarfs (FUSE driver)".
mod code {
    pub(super) const NO_MOUNTPOINT: u8 = 2;
    pub(super) const MOUNT_FAILED: u8 = 4;
    pub(super) const NO_DAEMON: u8 = 5;
    pub(super) const NO_SIGNAL_HANDLERS: u8 = 6;
    pub(super) const LOOP_FAILED: u8 = 7;
    pub(super) const INTERRUPTED: u8 = 8;
}

/// Runs dwarfs with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    // Not for `durin`, of whose file this program is a part.
    system::read_program_ahead();
    main_with(&arguments::of_process())
}

/// Runs dwarfs; the first of `arguments` is the name it was called by.
pub(crate) fn main_with(arguments: &[OsString]) -> ExitCode {
    let name = arguments
        .first()
        .and_then(|name| Path::new(name).file_name());
    if name.is_some_and(|name| name == "mount.dwarfs") {
        return main_of_helper(arguments);
    }
    program::main::<Dwarfs>(arguments)
}

/// As the helper of mount(8), whose `-f` asks for everything but the mount, and whose `-s` for patience with options.
fn main_of_helper(arguments: &[OsString]) -> ExitCode {
    if arguments.iter().any(|argument| argument == "-f") {
        return ExitCode::SUCCESS;
    }
    let arguments = arguments.iter().filter(|argument| *argument != "-s");
    program::main::<Dwarfs>(&arguments.cloned().collect::<Vec<_>>())
}

/// The program as [`crate::common::program`] runs it.
pub(crate) struct Dwarfs;

impl Program for Dwarfs {
    type Options = Options;

    const NAME: &'static str = "dwarfs";

    fn logger(options: &Options) -> Logger {
        Logger::new(default_level(options), None)
    }

    fn run(options: &Options, _matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure> {
        let plan = Plan::parse(&options.mount_options, options.single_thread)?;
        let own_logger = plan.log_level.map(|level| logger.at(level));
        let logger = own_logger.as_ref().unwrap_or(logger);
        for warning in &plan.warnings {
            logger.warn(warning);
        }
        if options.foreground || options.debug || plan.foreground {
            return serve(options, plan, logger, None);
        }
        let no_daemon = |error| {
            Failure::Code(
                code::NO_DAEMON,
                format!("cannot start in the background: {error}"),
            )
        };
        match daemon::split().map_err(no_daemon)? {
            daemon::Side::Parent(waiting) => Ok(waiting.verdict()),
            daemon::Side::Child(readiness) => serve(options, plan, logger, Some(readiness)),
        }
    }
}

fn default_level(options: &Options) -> Level {
    match (options.debug, options.foreground) {
        (true, _) => Level::Debug,
        (false, true) => Level::Info,
        (false, false) => Level::Warn,
    }
}

/// Opens, mounts and serves until the file system is unmounted. The exit code of a background process is lost once
/// `readiness` has been told.
fn serve(
    options: &Options,
    mut plan: Plan,
    logger: &Logger,
    readiness: Option<Readiness>,
) -> Result<u8, Failure> {
    let started = Instant::now();
    logger.info(format!("dwarfs ({})", banner::release()));
    let image_path = std::path::absolute(&options.image).unwrap_or_else(|_| options.image.clone());
    let targets = [&plan.perfmon_trace, &plan.analysis_file];
    let targets = targets.into_iter().flatten().map(PathBuf::as_path);
    output::refuse_own_input(&image_path, targets)?;
    let mountpoint = Mountpoint::choose(options, &image_path)?;
    let image_options = ImageOptions {
        metadata_copy_max: u64::MAX,

        ..plan.image.clone()
    };
    let image = Arc::new(image::open(&image_path, &image_options, logger)?);
    memory_lock::apply(plan.memory_lock, &image, logger)?;
    let perfmon = plan.image.cache.perfmon.as_ref();
    let measuring = Measuring::start(perfmon, plan.perfmon_trace.as_deref())?;
    plan.file_system.access_log = analysis(plan.analysis_file.as_deref())?;
    let preload = plan.preload.take();
    let preload = preload.filter(|blocks| can_preload(&image, blocks, logger));
    let workers = plan.image.cache.workers;
    let session = mount(
        Arc::clone(&image),
        &image_path,
        mountpoint.path(),
        plan,
        logger,
    )?;
    let interrupted = unmount_on_signal(session.unmounter()).map_err(|error| {
        Failure::Code(
            code::NO_SIGNAL_HANDLERS,
            format!("cannot watch for signals: {error}"),
        )
    })?;
    logger.info(format!(
        "file system initialized [{}]",
        duration::display(started.elapsed())
    ));
    if let Some(readiness) = readiness {
        readiness.enter_background().map_err(|error| {
            Failure::Code(
                code::NO_DAEMON,
                format!("cannot enter the background: {error}"),
            )
        })?;
        logger.enter_background(Dwarfs::NAME);
    }
    let preloading = preload.and_then(|blocks| start_preload(&image, &blocks, workers, logger));
    let served = session.run();
    drop(preloading);
    drop(mountpoint);
    if let Some(measuring) = measuring {
        measuring.report(logger);
    }
    match served {
        Err(error) => Err(Failure::Code(code::LOOP_FAILED, error.to_string())),
        Ok(()) if interrupted.load(Ordering::Relaxed) => Ok(code::INTERRUPTED),
        Ok(()) => Ok(exit::SUCCESS),
    }
}

/// Makes the file that lists what is used.
fn analysis(path: Option<&Path>) -> Result<Option<AccessLog>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let log = AccessLog::create(path).map_err(|error| {
        Error::io(
            format!("cannot make the analysis file '{}'", escape::path(path)),
            error,
        )
    })?;
    Ok(Some(log))
}

/// Whether the image has what is to be preloaded. That is looked up while warnings are still seen; an image without the
/// category is no reason not to mount it.
fn can_preload(image: &Image, blocks: &PreloadBlocks, logger: &Logger) -> bool {
    let PreloadBlocks::Category(name) = blocks else {
        return true;
    };
    let found = image.blocks_of_category(name);
    if let Err(error) = &found {
        logger.warn(format!("nothing is preloaded: {error}"));
    }
    found.is_ok()
}

/// Fills the cache beside serving.
fn start_preload(
    image: &Arc<Image>,
    blocks: &PreloadBlocks,
    threads: usize,
    logger: &Logger,
) -> Option<Preload> {
    match image.preload(blocks, threads) {
        Ok(preload) => Some(preload),
        Err(error) => {
            logger.warn(format!("nothing is preloaded: {error}"));
            None
        }
    }
}

/// Where the image gets mounted.
enum Mountpoint {
    Given(PathBuf),
    Automatic(AutoMountpoint),
}

impl Mountpoint {
    fn choose(options: &Options, image: &Path) -> Result<Self, Failure> {
        let unusable = |message| Failure::Code(code::NO_MOUNTPOINT, message);
        let Some(path) = &options.mountpoint else {
            if !options.auto_mountpoint {
                return Err(unusable(
                    "no mount point: give a directory, or --auto-mountpoint".to_owned(),
                ));
            }
            return AutoMountpoint::beside(image)
                .map(Self::Automatic)
                .map_err(unusable);
        };
        let shown = escape::path(path);
        match path.metadata() {
            Ok(found) if found.is_dir() => Ok(Self::Given(path.clone())),
            Ok(_) => Err(unusable(format!(
                "mount point '{shown}' is not a directory"
            ))),
            // Also that of a mount whose driver has died.
            Err(error) => Err(unusable(format!(
                "cannot use mount point '{shown}': {error}"
            ))),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Automatic(auto) => auto.path(),
        }
    }
}

fn mount(
    image: Arc<Image>,
    image_path: &Path,
    mountpoint: &Path,
    plan: Plan,
    logger: &Logger,
) -> Result<Session, Failure> {
    let Plan {
        file_system,
        mut mount,
        fsname_given,
        ..
    } = plan;
    if !fsname_given {
        mount.fsname = image_path.to_string_lossy().into_owned();
    }
    durin_fuse::mount(
        image,
        mountpoint,
        &file_system,
        &mount,
        Arc::new(logger.duplicate()),
    )
    .map_err(|error| {
        let hint = "mounting needs /dev/fuse, and fusermount3 for users other than root";
        Failure::Code(
            code::MOUNT_FAILED,
            format!(
                "cannot mount on '{}': {error}\n({hint})",
                escape::path(mountpoint)
            ),
        )
    })
}

/// Signals within this time are one: a terminal that closes sends two, and an orderly end takes some milliseconds.
const SIGNALS_APART: Duration = Duration::from_secs(1);

/// Starts a thread that unmounts at each signal, until the process ends; the result tells later whether one came.
///
/// What this process cannot see any more it cannot unmount: another signal ends the process then.
fn unmount_on_signal(unmounter: Unmounter) -> std::io::Result<Arc<AtomicBool>> {
    let mut arriving = Signals::new(signals::ending())?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut first = None;
            for _ in arriving.forever() {
                flag.store(true, Ordering::Relaxed);
                let first = *first.get_or_insert_with(Instant::now);
                // Covered or failed: the next signal tries again, and `Session` itself does when it ends.
                let is_nowhere = matches!(unmounter.unmount(), Ok(Unmounted::NotFound));
                if is_nowhere && first.elapsed() >= SIGNALS_APART {
                    std::process::exit(i32::from(code::INTERRUPTED));
                }
            }
        })?;
    Ok(interrupted)
}
