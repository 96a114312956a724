//! Looking at one entry of a directory.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::readlinkat;

use super::listing::{Found, FoundDir, Listing};
use crate::context::Context;
use crate::options::Input;
use crate::stats::Counter;
use crate::status::{Kind, Status};
use crate::tree::Detail;

/// The longest target of a symbolic link that readers accept.
const TARGET_LEN_MAX: usize = 4096;

/// The longest name that readers accept. Most file systems have names of at most 255 bytes; some count characters, and
/// those of FUSE may have 1024 bytes.
const NAME_LEN_MAX: usize = 512;

/// What became of an entry.
pub(crate) enum Examined<'a> {
    /// It is not wanted, or it could not be read and has been reported.
    Left,
    /// It is the last of the listing; a directory has no number yet.
    Pushed(&'a mut Found),
}

/// Looks at entries and puts those that are wanted into listings.
#[derive(Clone, Copy)]
pub(crate) struct Examiner<'a> {
    context: Context<'a>,
    with_devices: bool,
    with_specials: bool,
}

impl<'a> Examiner<'a> {
    pub(crate) fn new(context: Context<'a>) -> Self {
        let options = context.options;
        let is_list = matches!(options.input, Input::List { .. });
        Self {
            context,
            with_devices: options.with_devices || is_list,
            with_specials: options.with_specials || is_list,
        }
    }

    /// Looks at the entry `name` of `dir`; `display` makes the path for a message.
    pub(crate) fn examine<'l>(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        listing: &'l mut Listing,
        display: impl Fn() -> String,
    ) -> Examined<'l> {
        match self.try_examine(dir, name, listing, &display) {
            Ok(Some((status, detail))) => {
                self.count(&status, detail);
                let options = self.context.options;
                let keep_times = options.keep_all_times || options.script.is_some();
                Examined::Pushed(listing.push(name.to_bytes(), &status, detail, keep_times))
            }
            Ok(None) => Examined::Left,
            Err(error) => {
                self.context
                    .problem(&format!("cannot read '{}': {error}", display()));
                Examined::Left
            }
        }
    }

    fn try_examine(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        listing: &mut Listing,
        display: impl Fn() -> String,
    ) -> io::Result<Option<(Status, Detail)>> {
        // Lists name whole paths.
        let last = name.to_bytes().rsplit(|byte| *byte == b'/').next();
        let len = last.map_or(0, <[u8]>::len);
        if len > NAME_LEN_MAX {
            return Err(io::Error::other(format!(
                "a name of {len} bytes, of which an image takes {NAME_LEN_MAX}"
            )));
        }
        let status = Status::of_entry(dir, name)?;
        let Some(kind) = Kind::of(status.mode) else {
            return Err(io::Error::other(format!(
                "unknown file type, mode {:o}",
                status.mode
            )));
        };
        let detail = match kind {
            Kind::Directory => Detail::Directory {
                number: FoundDir::MAX,
            },
            Kind::Symlink => match read_target(dir, name, listing)? {
                Some(detail) => detail,
                None => {
                    self.context.problem(&format!(
                        "target of symbolic link '{}' is not between 1 and {TARGET_LEN_MAX} bytes long",
                        display()
                    ));
                    return Ok(None);
                }
            },
            Kind::Regular if self.context.options.exclude_ids.contains(&status.id) => {
                return Ok(None);
            }
            Kind::Regular => Detail::Regular {
                size: status.size,
                maybe_sparse: status.maybe_sparse,
            },
            Kind::Device if self.with_devices => Detail::Device { rdev: status.rdev },
            Kind::Special if self.with_specials => Detail::Special,
            Kind::Device | Kind::Special => return Ok(None),
        };
        Ok(Some((status, detail)))
    }

    fn count(&self, status: &Status, detail: Detail) {
        self.counter(detail).add(1);
        if detail.kind() == Kind::Regular {
            // Other names of the file are taken off again once they are known.
            self.context.stats.original_bytes.add(status.size);
        }
    }

    /// Takes back what was counted of an entry that is left out after all.
    pub(crate) fn uncount(&self, found: &Found) {
        self.counter(found.detail).sub(1);
        if let Detail::Regular { size, .. } = found.detail {
            self.context.stats.original_bytes.sub(size);
        }
    }

    fn counter(&self, detail: Detail) -> &'a Counter {
        let stats = self.context.stats;
        match detail.kind() {
            Kind::Directory => &stats.dirs,
            Kind::Symlink => &stats.symlinks,
            Kind::Regular => &stats.files,
            Kind::Device => &stats.devices,
            Kind::Special => &stats.specials,
        }
    }
}

/// Appends the target to the listing; returns nothing if its length does not fit.
fn read_target(
    dir: BorrowedFd<'_>,
    name: &CStr,
    listing: &mut Listing,
) -> io::Result<Option<Detail>> {
    let target = readlinkat(dir, name, Vec::new())?;
    let target = target.as_bytes();
    if target.is_empty() || target.len() > TARGET_LEN_MAX {
        return Ok(None);
    }
    let offset = listing.targets.len() as u64;
    listing.targets.extend_from_slice(target);
    Ok(u16::try_from(target.len())
        .ok()
        .map(|len| Detail::Symlink { offset, len }))
}
