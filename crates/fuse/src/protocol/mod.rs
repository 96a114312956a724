//! The FUSE protocol as bytes: what a request says and how an answer looks, without I/O.
//!
//! It is spoken directly, because the things that pay need all of it: one buffer a thread for the whole life of a mount,
//! lines of directories with and without attributes in one answer, contents pushed into the page cache, and requests over
//! io_uring. Source: the kernel's `include/uapi/linux/fuse.h` (protocol 7.23 to 7.45) and fuse(4).
//!
//! Requests come from the kernel. They are parsed with bounds checks all the same, and what is too short is an error.

mod flags;
mod reply;
mod request;
mod ring;
mod shared;

pub(crate) use flags::{InitFlags, OpenReply};
pub(crate) use reply::{Attributes, Entry, Init, Reply, StatFs, Validity};
pub(crate) use request::{Request, opcode};
pub(crate) use ring::{HEAD_LEN, command, put_head, request_in};
pub(crate) use shared::Shared;

/// The protocol that we speak; the kernel leaves out what is younger.
pub(crate) const VERSION: (u32, u32) = (7, 42);

/// The oldest protocol whose answers have the sizes used here: Linux 3.15.
pub(crate) const MINOR_MIN: u32 = 23;

/// Bytes before the body of each request.
pub(crate) const IN_HEADER_LEN: usize = 40;

/// Bytes before the body of each answer.
pub(crate) const OUT_HEADER_LEN: usize = 16;
