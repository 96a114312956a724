//! What kernel and driver agree on with the first request.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use durin_format::{Error, ErrorKind};

use super::{Access, Adapter, Opening};
use crate::device::WRITE_MAX;
use crate::protocol::{Init, InitFlags, MINOR_MIN, Reply, Request, VERSION, opcode};

/// Requests that the kernel may have under way without a process waiting, read-ahead above all.
/// The default of 12 stalls two sequential readers of large files.
const BACKGROUND_MAX: u16 = 64;

/// Pages of the largest read, 1 MiB: what the kernel allows unless `fs.fuse.max_pages_limit` says otherwise.
const PAGES_MAX: u16 = 256;

/// Bytes of the largest answer.
pub(crate) const ANSWER_LEN_MAX: usize = PAGES_MAX as usize * 4096;

/// What the kernel may do on its own; each is asked for if it is on offer.
const WANTED: [InitFlags; 10] = [
    InitFlags::ASYNC_READ,
    InitFlags::EXPORT_SUPPORT,
    // Without READDIRPLUS_AUTO: `walkers` knows better who wants attributes.
    InitFlags::DO_READDIRPLUS,
    InitFlags::ASYNC_DIO,
    InitFlags::PARALLEL_DIROPS,
    InitFlags::ABORT_ERROR,
    InitFlags::MAX_PAGES,
    InitFlags::EXPLICIT_INVAL_DATA,
    InitFlags::INIT_EXT,
    InitFlags::DIRECT_IO_ALLOW_MMAP,
];

/// What kernel and driver have agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    /// The protocol's minor number.
    pub(super) minor: u32,
    pub(super) flags: InitFlags,
    /// The largest read, in pages.
    pub(super) pages_max: u16,
}

impl Adapter {
    /// What kernel and driver have agreed on, what the kernel has asked since, and what the cache of blocks has done, as
    /// JSON.
    pub(super) fn session(&self) -> String {
        let counts = self.counts.iter().enumerate();
        let counts: serde_json::Map<String, serde_json::Value> = counts
            .map(|(code, count)| (code, count.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .map(|(code, count)| (opcode::name(code), count.into()))
            .collect();
        let cache = self.fs.image().cache().stats();
        let session = serde_json::json!({
            "cache": {
                "hits": cache.hits,
                "misses": cache.misses,
                "decoded_bytes": cache.decoded_bytes,
                "held_bytes": cache.held_bytes,
                "packed_bytes": cache.packed_bytes,
                "evictions": cache.evictions,
            },
            "io_uring": *self.io_uring.lock().unwrap_or_else(PoisonError::into_inner),
            "passthrough": "not used",
            "capabilities": self.agreed.flags.to_string(),
            "protocol": format!("{}.{}", VERSION.0, self.agreed.minor),
            "read_bytes_max": u32::from(self.agreed.pages_max) * 4096,
            "requests": counts,
            "beside_clients": {
                "begun": self.beside.begun.load(Ordering::Relaxed),
                "disturbed": self.beside.disturbed.load(Ordering::Relaxed),
            },
            "transport": self.transport,
        });
        session.to_string()
    }

    /// Answers the first request. If the kernel offers io_uring, `make_rings` says whether it will be used, or why not.
    ///
    /// # Errors
    /// `Unsupported` for a kernel too old, `Corrupt` for what is no first request.
    pub(crate) fn init(
        &mut self,
        request: &Request<'_>,
        reply: &mut Reply,
        make_rings: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), Error> {
        let offer = Offer::parse(request).ok_or_else(|| {
            let text = "the kernel does not begin with the FUSE protocol's first request";
            Error::new(ErrorKind::Corrupt, text)
        })?;
        if offer.major != VERSION.0 || offer.minor < MINOR_MIN {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the kernel's FUSE protocol {}.{} is not supported: {}.{MINOR_MIN} is needed",
                    offer.major, offer.minor, VERSION.0
                ),
            ));
        }
        let mut wanted = self.wanted();
        let io_uring = if offer.flags.contains(InitFlags::OVER_IO_URING) {
            match make_rings() {
                Ok(()) => {
                    wanted = wanted | InitFlags::OVER_IO_URING;
                    "in use".to_owned()
                }
                Err(why) => format!("on offer, not used: {why}"),
            }
        } else {
            "not on offer".to_owned()
        };
        self.tell_io_uring(io_uring);
        let init = Init {
            flags: wanted & offer.flags,
            read_ahead_max: offer.read_ahead_max,
            background_max: BACKGROUND_MAX,
            write_max: WRITE_MAX,
            pages_max: PAGES_MAX,
        };
        self.agreed = Agreed {
            minor: offer.minor.min(VERSION.1),
            flags: init.flags,
            pages_max: PAGES_MAX,
        };
        reply.clear();
        reply.init(&init);
        Ok(())
    }

    /// Keeps what is to be told about io_uring.
    pub(crate) fn tell_io_uring(&self, text: String) {
        *self.io_uring.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn wanted(&self) -> InitFlags {
        let mut wanted = WANTED
            .into_iter()
            .fold(InitFlags::default(), |all, one| all | one);
        if self.rules.opening == Opening::Free && self.fs.caches_everything() {
            wanted = wanted | InitFlags::NO_OPEN_SUPPORT;
        }
        // What is kept is shown to everybody; see `Self::validity`.
        if self.rules.access == Access::All {
            wanted = wanted | InitFlags::CACHE_SYMLINKS;
        }
        if self.rules.opening != Opening::Guarded {
            wanted = wanted | InitFlags::NO_OPENDIR_SUPPORT;
        }
        // The kernel breaks the connection if this comes without its own checks; and ours go by owner.
        if self.rules.default_permissions && self.rules.access == Access::All {
            wanted = wanted | InitFlags::ALLOW_IDMAP;
        }
        wanted
    }
}

/// What the kernel offers with its first request.
struct Offer {
    major: u32,
    minor: u32,
    read_ahead_max: u32,
    flags: InitFlags,
}

impl Offer {
    fn parse(request: &Request<'_>) -> Option<Self> {
        if request.opcode != opcode::INIT {
            return None;
        }
        let mut fields = request.fields();
        let (major, minor) = (fields.u32()?, fields.u32()?);
        let read_ahead_max = fields.u32()?;
        let low = InitFlags(fields.u32()?.into());
        let high = if low.contains(InitFlags::INIT_EXT) {
            InitFlags(u64::from(fields.u32()?) << 32)
        } else {
            InitFlags::default()
        };
        Some(Self {
            major,
            minor,
            read_ahead_max,
            flags: low | high,
        })
    }
}
