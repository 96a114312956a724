//! What all programs share: value grammars, log lines, progress, help and exit codes.

pub(crate) mod arguments;
pub(crate) mod banner;
pub(crate) mod clock;
pub(crate) mod completion_values;
pub(crate) mod completions;
pub(crate) mod contents;
pub(crate) mod duration;
pub(crate) mod escape;
pub(crate) mod events;
pub(crate) mod exit;
pub(crate) mod image;
pub(crate) mod logger;
pub(crate) mod man;
pub(crate) mod man_text;
pub(crate) mod measuring;
pub(crate) mod mode;
pub(crate) mod output;
pub(crate) mod owner;
pub(crate) mod program;
pub(crate) mod progress;
pub(crate) mod ratio;
pub(crate) mod signals;
pub(crate) mod size;
pub(crate) mod system;
pub(crate) mod terminal;
pub(crate) mod timepoint;
