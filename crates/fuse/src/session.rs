//! One mounted image from mounting to the end of its server threads.

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use durin_format::{Error, Result};
use durin_reader::Image;
use fuser::{Config, SessionACL};

use crate::adapter::{Adapter, Opening};
use crate::fs::Fs;
use crate::kernel_mount::{self, Mounted, Unmounted};
use crate::options::{FsOptions, MountOptions};
use durin_format::events::Events;

/// Fewer threads than this let one slow block hold up every `ls`; measured on two cores, more than four of them gain
/// nothing, as each hit is answered by whichever thread is awake.
const THREADS_MIN: usize = 4;

/// Beyond this, threads of a machine with many cores only get into each other's way at the device.
const THREADS_DEFAULT_MAX: usize = 16;

/// A mounted image whose requests wait to be served by [`Session::run`].
///
/// Dropped without having run, it unmounts.
pub struct Session {
    inner: fuser::Session<Adapter>,
    mounted: MountGuard,
}

/// Unmounts when the session ends for whatever reason.
struct MountGuard(Arc<Mounted>);

impl Drop for MountGuard {
    fn drop(&mut self) {
        // Nothing is left to tell it to; after a clean end there is nothing to do.
        self.0.unmount().ok();
    }
}

/// Ends a running [`Session`] from another thread.
#[derive(Clone, Debug)]
pub struct Unmounter(Arc<Mounted>);

impl Unmounter {
    /// Unmounts; [`Session::run`] returns when the last user has gone.
    ///
    /// # Errors
    /// `Io` if the kernel or `fusermount3` refuse.
    pub fn unmount(&self) -> Result<Unmounted> {
        self.0.unmount()
    }
}

/// Mounts `image` at `mountpoint`; what uses it waits until [`Session::run`] is called.
///
/// # Errors
/// `InvalidInput` for an unusable mount point, `Io` if the kernel or `fusermount3` refuse.
pub fn mount(
    image: Arc<Image>,
    mountpoint: &Path,
    fs: &FsOptions,
    mount: &MountOptions,
    events: Arc<dyn Events>,
) -> Result<Session> {
    let (device, mounted) = kernel_mount::mount(mountpoint, mount, events.as_ref())?;
    let mounted = MountGuard(Arc::new(mounted));
    let adapter = Adapter::new(Fs::new(image, fs.clone(), events), opening(mount));
    let config = config(mount);
    let acl = acl(mount);
    let inner = fuser::Session::from_fd(adapter, device, acl, config)
        .map_err(|error| Error::io("the kernel does not agree on a FUSE protocol", error))?;
    // An ordinary user may not; reading ahead is then as far as the kernel's default.
    mounted.0.read_ahead().ok();
    Ok(Session { inner, mounted })
}

impl Session {
    /// Serves requests until the file system is unmounted and its last user has gone.
    ///
    /// # Errors
    /// `Io` if the connection to the kernel breaks; the file system is unmounted then.
    pub fn run(self) -> Result<()> {
        let Self { inner, mounted } = self;
        let served = inner
            .run()
            .map_err(|error| Error::io("serving the kernel's requests", error));
        if served.is_ok() {
            // The kernel has said that the file system is gone. What stands there now may have its device number.
            mounted.0.set_gone();
        }
        drop(mounted);
        served
    }

    /// Returns the means to end the session from another thread, such as one that waits for signals.
    #[must_use]
    pub fn unmounter(&self) -> Unmounter {
        Unmounter(Arc::clone(&self.mounted.0))
    }

    /// Where the image is mounted; absolute.
    #[must_use]
    pub fn mountpoint(&self) -> &Path {
        self.mounted.0.path()
    }
}

/// Who fuser shall let in. The kernel sees to it except where it has been told to let in more than it should:
/// it has no notion of "root, too", and `auto_unmount` needs the way in for `fusermount3`.
fn acl(options: &MountOptions) -> SessionACL {
    if options.allow_other {
        SessionACL::All
    } else if options.allow_root {
        SessionACL::RootAndOwner
    } else if options.auto_unmount {
        SessionACL::Owner
    } else {
        SessionACL::All
    }
}

fn opening(options: &MountOptions) -> Opening {
    if options.auto_unmount || acl(options) != SessionACL::All {
        Opening::Guarded
    } else if options.ro {
        Opening::Free
    } else {
        Opening::ForReading
    }
}

fn config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    config.n_threads = Some(threads(options.threads));
    config.clone_fd = options.clone_fd && kernel_mount::can_clone();
    config
}

fn threads(wanted: usize) -> usize {
    if wanted > 0 {
        return wanted;
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    cores.clamp(THREADS_MIN, THREADS_DEFAULT_MAX)
}
