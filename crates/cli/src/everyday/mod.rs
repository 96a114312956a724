//! The everyday commands of `durin`: looking into images without mounting them.
//!
//! Each is a program of its own as [`crate::common::program`] runs it. They share how an image and paths in it are named
//! ([`target`]), how an entry is written for scripts ([`record`]), and that a path that is not there is reported, counted
//! and makes the exit status 1, while the rest is done.

pub(crate) mod cat;
pub(crate) mod diff;
pub(crate) mod du;
pub(crate) mod find;
mod find_arguments;
pub(crate) mod grep;
mod grep_lines;
pub(crate) mod info;
pub(crate) mod ls;
mod mount_table;
pub(crate) mod mounts;
pub(crate) mod record;
pub(crate) mod stat;
mod target;
pub(crate) mod tree;
pub(crate) mod unmount;
pub(crate) mod verify;
