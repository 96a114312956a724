//! Scripts that decide about a build, in Lua and, as a feature, in Python.
//!
//! [`load`] runs a script once and its `configure`, and returns what the writer asks from then on. What scripts see and
//! may do is described in docs/scripting.md; both languages have the same hooks and names.
//!
//! A script is code that the user trusts, and has the whole standard library of its language. It is kept from two
//! things only: from writing to standard output by the usual means, because an image may go there, and from running on
//! when the user wants to stop. What a script prints goes to the events that its [`Host`] has.
//!
//! ```
//! use std::sync::Arc;
//!
//! use durin_format::events::Quiet;
//! use durin_script::{Host, Spec, load};
//!
//! # fn main() -> durin_format::Result<()> {
//! let dir = tempfile::tempdir().unwrap();
//! let path = dir.path().join("rules.lua");
//! std::fs::write(&path, "function filter(entry) return entry.size < 100 end").unwrap();
//! let spec = Spec::parse(path.as_os_str())?;
//! let loaded = load(&spec, Host::new(Arc::new(Quiet)))?;
//! assert!(loaded.script.hooks().filter);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod lua;
#[cfg(feature = "python")]
mod python;
mod settings;
mod spec;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use durin_format::events::Events;
use durin_format::{Error, Result};
use durin_writer::script::Script;

pub use settings::{Setting, Value};
pub use spec::{Argument, Language, Spec};

/// What a script is run in.
#[derive(Clone)]
pub struct Host {
    /// Takes what the script prints and logs.
    pub events: Arc<dyn Events>,
    /// Ends the script soon after it is set.
    pub cancel: Arc<AtomicBool>,
    /// The most bytes that a script in Lua may use; 0 is no limit.
    pub memory_max: usize,
}

impl Host {
    /// A host that nobody stops, without a limit.
    #[must_use]
    pub fn new(events: Arc<dyn Events>) -> Self {
        Self {
            events,
            cancel: Arc::default(),
            memory_max: 0,
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

/// A script that has been run.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What the writer asks.
    pub script: Arc<dyn Script>,
    /// What its `configure` returned.
    pub settings: Vec<Setting>,
}

/// Runs a script and its `configure`.
///
/// # Errors
/// `Io` if it cannot be read; `InvalidInput` with the traceback if it fails, or if this program was built
/// without its language; `Cancelled`.
pub fn load(spec: &Spec, host: Host) -> Result<Loaded> {
    match spec.language {
        Language::Lua => lua::load(spec, host),
        #[cfg(feature = "python")]
        Language::Python => python::load(spec, host),
        #[cfg(not(feature = "python"))]
        Language::Python => Err(Error::invalid_input(
            "this program was built without Python; build it with the feature 'python' to run scripts in it",
        )),
    }
}

/// Says whose error it is, in which hook and about which entry.
fn failure(spec_name: &str, hook: &str, path: Option<&[u8]>, message: &str) -> Error {
    let of = match path {
        Some(path) => {
            let path = String::from_utf8_lossy(path);
            format!(" of '{}'", path.escape_debug())
        }
        None => String::new(),
    };
    Error::invalid_input(format!("script '{spec_name}', {hook}{of}: {message}"))
}
