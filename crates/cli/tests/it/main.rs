//! The programs from the outside: options are wired, outputs, messages and exit codes are right.
//!
//! That images hold what they should is tested elsewhere; here a small tree is enough.

#![allow(clippy::unwrap_used, reason = "tests")]

mod closed_output;
mod compat;
mod driver_options;
mod durin;
mod dwarfs;
mod dwarfsck;
mod dwarfsck_json;
mod dwarfsextract;
mod dying_disk;
mod everyday;
mod extract_over;
mod help;
mod linking;
mod long_names;
mod mkdwarfs;
mod mkdwarfs_outputs;
mod mkdwarfs_selection;
mod mounted;
mod mounts;
mod own_input;
mod page;
mod progress;
mod reference_options;
mod rewrite;
mod script;
mod section_rules;
mod shells;
mod signals;
mod space;
mod support;
mod terminal;
mod vanishing;
