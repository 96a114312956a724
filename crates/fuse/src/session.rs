//! One mounted image from mounting to the end of its server threads.

use std::path::Path;
use std::sync::Arc;

use durin_format::{Error, Result};
use durin_reader::Image;

use crate::adapter::{Access, Adapter, Opening, Rules};
use crate::device::{Device, End, REQUEST_LEN_MAX, Received};
use crate::fs::Fs;
use crate::kernel_mount::{self, Mounted, Unmounted};
use crate::options::{FsOptions, MountOptions};
use crate::protocol::{Reply, Request};
use crate::server::beside::Beside;
use crate::server::rings::Rings;
use crate::server::{Server, Threads};
use durin_format::events::Events;

/// A mounted image whose requests wait to be served by [`Session::run`].
///
/// Dropped without having run, it unmounts.
pub struct Session {
    server: Server,
    events: Arc<dyn Events>,
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
    /// Unmounts, wherever the file system stands now; [`Session::run`] returns when the last user has gone.
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
    let mut adapter = Adapter::new(
        Fs::new(image, fs.clone(), Arc::clone(&events)),
        rules(mount),
    );
    let threads = Threads::choose(mount);
    let mut rings = Rings::default();
    let device = Device::new(device);
    shake_hands(&device, &mut adapter, |device| {
        if !mount.io_uring {
            return Err("noio_uring".to_owned());
        }
        rings = Rings::make(device, threads)?;
        Ok(())
    })?;
    let clones = mount.clone_fd && kernel_mount::can_clone();
    adapter.describe_transport(serde_json::json!({
        "cloned_descriptors": clones,
        "threads": threads.waiting,
        "threads_max": threads.max,
        "queues": rings.queue_count(),
    }));
    let beside = Beside::new(mount.beside_clients, adapter.beside());
    let server = Server::new(adapter, device, rings, threads, clones, beside);
    // An ordinary user may not; reading ahead is then as far as the kernel's default.
    mounted.0.read_ahead().ok();
    Ok(Session {
        server,
        events,
        mounted,
    })
}

impl Session {
    /// Serves requests until the file system is unmounted and its last user has gone.
    ///
    /// # Errors
    /// `Io` if the connection to the kernel breaks; the file system is unmounted then.
    pub fn run(self) -> Result<()> {
        let Self {
            server,
            events,
            mounted,
        } = self;
        let served = server
            .run()
            .map_err(|error| Error::io("serving the kernel's requests", error));
        match served {
            // The kernel has said that the file system is gone. What stands there now may have its numbers.
            Ok(End::Unmounted) if !mounted.0.stands() => mounted.0.set_gone(),
            // It still stands, and would give an error to everybody who looks: `mounted` takes it out.
            Ok(_) => events.warn("the connection to the kernel was aborted: unmounting"),
            Err(_) => {}
        }
        drop(mounted);
        served.map(drop)
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

/// Agrees with the kernel on what both can do; `make_rings` prepares for io_uring, or says why that is not to be used.
fn shake_hands(
    device: &Device,
    adapter: &mut Adapter,
    make_rings: impl FnOnce(&Device) -> std::result::Result<(), String>,
) -> Result<()> {
    let failed = |error| Error::io("the kernel does not agree on a FUSE protocol", error);
    let mut buf = vec![0; REQUEST_LEN_MAX];
    let Received::Request(len) = device.receive(&mut buf).map_err(failed)? else {
        return Err(failed(std::io::ErrorKind::NotConnected.into()));
    };
    let request = buf
        .get(..len)
        .and_then(Request::parse)
        .ok_or_else(|| failed(std::io::ErrorKind::InvalidData.into()))?;
    let mut reply = Reply::default();
    adapter.init(&request, &mut reply, || make_rings(device))?;
    reply.finish(request.unique, Ok(()));
    device.send(&reply).map_err(failed)
}

fn rules(options: &MountOptions) -> Rules {
    let access = access(options);
    let opening = if options.auto_unmount || access != Access::All {
        Opening::Guarded
    } else if options.ro {
        Opening::Free
    } else {
        Opening::ForReading
    };
    Rules {
        opening,
        access,
        default_permissions: options.default_permissions,
    }
}

/// Whom we let in. The kernel sees to it except where it has been told to let in more than it should:
/// it has no notion of "root, too", and `auto_unmount` needs the way in for `fusermount3`.
fn access(options: &MountOptions) -> Access {
    let uid = rustix::process::geteuid().as_raw();
    if options.allow_other {
        Access::All
    } else if options.allow_root {
        Access::User { uid, root: true }
    } else if options.auto_unmount {
        Access::User { uid, root: false }
    } else {
        Access::All
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::sync::atomic::{AtomicU32, Ordering};

    use durin_format::events::Message;
    use durin_reader::ImageOptions;
    use durin_source::OpenMode;
    use durin_testkit::io_uring::Offer;
    use durin_testkit::require;
    use durin_testkit::vectors::Vectors;

    use super::*;

    struct Silent;

    impl Events for Silent {
        fn message(&self, _: &Message<'_>) {}
    }

    /// The image to mount, if this machine can mount.
    fn ready() -> std::result::Result<Vectors, String> {
        durin_testkit::mount::available()?;
        Vectors::find()
    }

    fn mounted(vectors: &Vectors, point: &Path, options: &MountOptions) -> Session {
        let path = vectors.image("good", "compat-v0.4.1");
        let source = durin_source::open(&path, OpenMode::Mmap).unwrap();
        let image = Arc::new(Image::open(source, &ImageOptions::default()).unwrap());
        mount(
            image,
            point,
            &FsOptions::default(),
            options,
            Arc::new(Silent),
        )
        .unwrap()
    }

    /// The kernel has taken some entries by then, and refuses another: all requests must come through the device.
    #[test]
    fn an_entry_that_is_refused_leads_back_to_the_device() {
        let vectors = require!(ready());
        let offer = Offer::new();
        let point = tempfile::tempdir().unwrap();
        let session = mounted(&vectors, point.path(), &MountOptions::default());
        let is_used = session.server.rings().queue_count() > 0;
        assert!(is_used || !offer.is_there);
        session.server.rings().spoil();
        let unmounter = session.unmounter();
        std::thread::scope(|scope| {
            let served = scope.spawn(|| session.run());
            let content = fs::read(point.path().join("bench.sh")).unwrap();
            assert_eq!(content.len(), 1517);
            let told = told(point.path());
            assert_eq!(told.contains("on offer, not used: "), is_used, "{told}");
            unmounter.unmount().unwrap();
            served.join().unwrap().unwrap();
        });
    }

    /// What the mount tells of itself.
    fn told(point: &Path) -> String {
        let mut told = vec![0; 4096];
        let len = rustix::fs::getxattr(point, "user.dwarfs.driver.session", &mut told[..]).unwrap();
        String::from_utf8_lossy(&told[..len]).into_owned()
    }

    /// Names that are not there, each once, or the kernel would know. Whatever goes wrong, they come to an end.
    fn look_up(point: &Path, number: &AtomicU32) -> bool {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let found = fs::symlink_metadata(point.join(number.to_string()));
        number < 1_000_000 && found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// The policies of all threads of this process that decode ahead.
    fn policies_of_workers() -> Vec<String> {
        let threads = fs::read_dir("/proc/self/task").unwrap();
        let stats = threads
            .filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("stat")).ok());
        let fields = stats.filter_map(|stat| {
            let (name, fields) = stat.rsplit_once(')')?;
            // The field `policy` of proc_pid_stat(5).
            let policy = fields.split_ascii_whitespace().nth(38)?;
            name.contains("readahead-").then(|| policy.to_owned())
        });
        fields.collect()
    }

    #[test]
    fn one_client_is_answered_on_its_processor_unless_nobody_may() {
        let vectors = require!(ready());
        let is_root = rustix::process::geteuid().is_root();
        require!(is_root.then_some(()).ok_or("not root"));
        let point = tempfile::tempdir().unwrap();
        for beside_clients in [true, false] {
            let options = MountOptions {
                beside_clients,
                ..MountOptions::default()
            };
            let session = mounted(&vectors, point.path(), &options);
            let unmounter = session.unmounter();
            let number = AtomicU32::new(0);
            let tries = if beside_clients { 1_000_000 } else { 10_000 };
            let nobody = r#""beside_clients":{"begun":0,"#;
            std::thread::scope(|scope| {
                let served = scope.spawn(|| session.run());
                let mut told_last = String::new();
                while number.load(Ordering::Relaxed) < tries {
                    (0..1000).for_each(|_| assert!(look_up(point.path(), &number)));
                    told_last = told(point.path());
                    if !told_last.contains(nobody) {
                        break;
                    }
                }
                let workers = policies_of_workers();
                assert!(!beside_clients || !workers.is_empty());
                assert!(workers.iter().all(|policy| policy == "0"), "{workers:?}");
                unmounter.unmount().unwrap();
                served.join().unwrap().unwrap();
                assert_eq!(told_last.contains(nobody), !beside_clients, "{told_last}");
            });
        }
    }

    #[test]
    fn many_clients_get_more_threads_than_one() {
        let vectors = require!(ready());
        let point = tempfile::tempdir().unwrap();
        let options = MountOptions {
            io_uring: false,
            ..MountOptions::default()
        };
        let mut session = mounted(&vectors, point.path(), &options);
        session.server.set_waiting_max(4);
        let unmounter = session.unmounter();
        let Session {
            server, mounted, ..
        } = session;
        let number = AtomicU32::new(0);
        let look_up = || look_up(point.path(), &number);
        std::thread::scope(|scope| {
            let served = scope.spawn(|| server.run());
            std::thread::scope(|clients| {
                for _ in 0..8 {
                    clients.spawn(|| while server.waiting_wanted() < 2 && look_up() {});
                }
            });
            let for_many = server.waiting_wanted();
            while server.waiting_wanted() > 1 && look_up() {}
            let for_one = server.waiting_wanted();
            unmounter.unmount().unwrap();
            served.join().unwrap().unwrap();
            assert!((2..=4).contains(&for_many), "{for_many}");
            assert_eq!(for_one, 1);
        });
        drop(mounted);
    }
}
