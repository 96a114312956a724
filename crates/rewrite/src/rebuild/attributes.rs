//! The attributes of inodes, changed as the options ask for, and the tables of their values.

use durin_format::Result;
use durin_format::metadata::{FsOptions, InodeData, Inodes};
use durin_reader::{Attr, FileKind, Image};
use durin_writer::TimeResolution;
use durin_writer::mode;
use durin_writer::tables::{Time, Units, Values};

use super::fs_options;
use super::nodes::{Node, Nodes};
use crate::options::RebuildOptions;

/// What is stored of them.
pub(crate) struct Attributes {
    pub(crate) inodes: Inodes,
    pub(crate) uids: Vec<u32>,
    pub(crate) gids: Vec<u32>,
    pub(crate) modes: Vec<u32>,
    pub(crate) devices: Vec<u64>,
    /// What times are counted from; before 1970 in two's complement.
    pub(crate) timestamp_base: u64,
    pub(crate) options: FsOptions,
}

/// How times are stored.
#[derive(Clone, Copy)]
struct Times {
    resolution: TimeResolution,
    mtime_only: bool,
    set: Option<i64>,
}

impl Attributes {
    /// Asks the image twice: for the earliest time, and for all there is.
    ///
    /// # Errors
    /// `Corrupt` if a value of the metadata cannot be.
    pub(crate) fn of(
        image: &Image,
        nodes: &Nodes,
        options: &RebuildOptions,
        resolution: TimeResolution,
    ) -> Result<Self> {
        let old = image.tables().0.options.unwrap_or_default();
        let times = Times {
            resolution,
            mtime_only: old.mtime_only || !options.keep_all_times,
            set: options.set_time,
        };
        let mut base = None;
        for node in &nodes.list {
            let stored = times.stored(&image.attr(node.entry)?);
            base = stored.iter().map(|time| time.whole).chain(base).min();
        }
        let base = base.unwrap_or(0);
        let [mut uids, mut gids, mut modes] = [(); 3].map(|()| Values::default());
        let mut inodes = Inodes::default();
        let mut devices = Vec::new();
        for node in &nodes.list {
            let attr = image.attr(node.entry)?;
            if matches!(attr.kind, FileKind::CharDevice | FileKind::BlockDevice) {
                devices.push(attr.rdev);
            }
            let [mtime, atime, ctime] = times.stored(&attr);
            let changed = mode::apply(&options.chmod, attr.mode);
            let mode = attr.mode & !mode::ALL | changed & mode::ALL;
            let mut inode = InodeData {
                mode_index: modes.place(mode),
                owner_index: uids.place(options.set_owner.unwrap_or(attr.uid)),
                group_index: gids.place(options.set_group.unwrap_or(attr.gid)),
                mtime_offset: mtime.since(base),
                mtime_subsec: mtime.subsec,
                nlink_minus_one: links_minus_one(node, options),
                ..InodeData::default()
            };
            if !times.mtime_only {
                inode.atime_offset = atime.since(base);
                inode.atime_subsec = atime.subsec;
                inode.ctime_offset = ctime.since(base);
                inode.ctime_subsec = ctime.subsec;
            }
            inodes.push(&inode);
        }
        Ok(Self {
            inodes,
            uids: uids.values,
            gids: gids.values,
            modes: modes.values,
            devices,
            timestamp_base: base.cast_unsigned(),
            options: fs_options(options, resolution, times.mtime_only),
        })
    }
}

impl Times {
    /// Of modification, of access and of change; the first for all if only that is stored.
    fn stored(self, attr: &Attr) -> [Units; 3] {
        let [mtime, atime, ctime] = [attr.mtime, attr.atime, attr.ctime].map(|time| {
            let time = match self.set {
                Some(sec) => Time { sec, nsec: 0 },
                None => Time {
                    sec: time.sec,
                    nsec: time.nsec,
                },
            };
            Units::of(time, self.resolution)
        });
        if self.mtime_only {
            [mtime; 3]
        } else {
            [mtime, atime, ctime]
        }
    }
}

fn links_minus_one(node: &Node, options: &RebuildOptions) -> u32 {
    if options.hardlink_table && node.kind == FileKind::Regular {
        node.links.saturating_sub(1)
    } else {
        0
    }
}
