//! Scripts in all languages, and entries and inodes to ask them about.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use durin_format::Result;
use durin_format::events::{Events, Message};
use durin_script::{Host, Loaded, Spec, load};
use durin_writer::script::{Attributes, EntryKind, ScriptEntry, ScriptInodes, Time};
use tempfile::TempDir;

/// The same script in each language.
pub(crate) struct Texts {
    pub(crate) lua: &'static str,
    pub(crate) python: &'static str,
}

/// A script in one language, on disk.
pub(crate) struct OnDisk {
    _dir: TempDir,
    pub(crate) path: PathBuf,
    pub(crate) events: Arc<Recorder>,
    pub(crate) host: Host,
}

/// Keeps messages.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    fn push(&self, level: &str, message: &str) {
        self.0.lock().unwrap().push(format!("{level}: {message}"));
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Events for Recorder {
    fn message(&self, message: &Message<'_>) {
        let severity = format!("{:?}", message.severity).to_lowercase();
        self.push(&severity, message.text);
    }
}

impl Texts {
    /// The script on disk in each language that is built in.
    pub(crate) fn each(&self) -> Vec<OnDisk> {
        let mut all = vec![OnDisk::new("script.lua", self.lua)];
        if cfg!(feature = "python") {
            all.push(OnDisk::new("script.py", self.python));
        }
        all
    }
}

impl OnDisk {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        let events = Arc::new(Recorder::default());
        let host = Host::new(Arc::clone(&events) as Arc<dyn Events>);
        Self {
            _dir: dir,
            path,
            events,
            host,
        }
    }

    pub(crate) fn is_lua(&self) -> bool {
        self.path.extension().unwrap().as_bytes() == b"lua"
    }

    pub(crate) fn load_with(&self, arguments: &str) -> Result<Loaded> {
        let mut spec = self.path.clone().into_os_string();
        spec.push(":");
        spec.push(arguments);
        load(&Spec::parse(&spec)?, self.host.clone())
    }

    #[track_caller]
    pub(crate) fn load(&self) -> Loaded {
        self.load_with("").unwrap()
    }
}

pub(crate) const ATTRIBUTES: Attributes = Attributes {
    permissions: 0o640,
    uid: 1000,
    gid: 4_294_967_295,
    mtime: Time {
        sec: 1_577_836_800,
        nsec: 123_456_789,
    },
    atime: Time { sec: -1, nsec: 1 },
    ctime: Time { sec: 0, nsec: 0 },
};

/// A regular file of 7 bytes.
pub(crate) fn file(path: &[u8]) -> ScriptEntry<'_> {
    ScriptEntry {
        path,
        kind: EntryKind::File,
        size: 7,
        nlink: 2,
        target: b"",
        attributes: ATTRIBUTES,
    }
}

/// Contents by their paths; sizes are the lengths of the first path.
pub(crate) struct Inodes(pub(crate) Vec<Vec<&'static [u8]>>);

impl ScriptInodes for Inodes {
    fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap()
    }

    fn paths(&self, number: u32) -> Vec<Vec<u8>> {
        let paths = self.0[number as usize].iter();
        paths.map(|path| path.to_vec()).collect()
    }

    fn path(&self, number: u32) -> Vec<u8> {
        self.0[number as usize][0].to_vec()
    }

    fn size(&self, number: u32) -> u64 {
        self.0[number as usize][0].len() as u64
    }

    fn mtime(&self, number: u32) -> Time {
        Time {
            sec: i64::from(number),
            nsec: 5,
        }
    }

    fn category(&self, number: u32) -> Option<&str> {
        (number > 0).then_some("some/category")
    }

    fn similarity(&self, number: u32) -> Option<Vec<u32>> {
        (number != 1).then(|| vec![number, 4_294_967_295])
    }
}
