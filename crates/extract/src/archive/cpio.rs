//! The cpio family: the portable one with numbers in octal (`odc`), and that of System V release 4 (`newc`).
//!
//! Source: cpio(5) of libarchive; POSIX.1-1997, "cpio Interchange Format".

use durin_format::{Error, Result};
use durin_reader::FileKind;

use super::member::{Body, Format, Links, Losses, Member};
use super::output::Output;
use super::prepare::Prepared;

/// The name that ends an archive.
const TRAILER: &[u8] = b"TRAILER!!!";

/// What archives are padded to, as GNU cpio does.
const RECORD_LEN: u64 = 512;

/// Bits of a field of `odc`, and of its longer ones for sizes and times.
const ODC_BITS: u32 = 18;
const ODC_LONG_BITS: u32 = 33;

/// A member of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Odc,
    Newc,
}

/// A cpio archive in the making.
pub(super) struct Cpio {
    dialect: Dialect,
    losses: Losses,
}

/// What a header says.
struct Fields<'a> {
    inode: u64,
    mode: u32,
    uid: u64,
    gid: u64,
    nlink: u32,
    mtime: u64,
    size: u64,
    rdev: u64,
    path: &'a [u8],
}

impl Cpio {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            losses: Losses::default(),
        }
    }

    fn size_max(&self) -> u64 {
        match self.dialect {
            Dialect::Odc => (1 << ODC_LONG_BITS) - 1,
            Dialect::Newc => u32::MAX.into(),
        }
    }

    fn time(&mut self, sec: i64) -> u64 {
        let most = self.size_max();
        match u64::try_from(sec).ok().filter(|sec| *sec <= most) {
            Some(sec) => sec,
            None => {
                self.losses.times += 1;
                if sec < 0 { 0 } else { most }
            }
        }
    }

    /// A number of `odc` and whether it is as it was.
    fn short(&self, value: u64) -> (u64, bool) {
        match self.dialect {
            Dialect::Odc => {
                let most = (1 << ODC_BITS) - 1;
                (value.min(most), value <= most)
            }
            Dialect::Newc => (value, true),
        }
    }

    fn write_header(&self, fields: &Fields<'_>, out: &mut Output<'_>) -> Result<()> {
        let name_len = fields.path.len() + 1;
        let header = match self.dialect {
            Dialect::Odc => format!(
                "070707{:06o}{:06o}{:06o}{:06o}{:06o}{:06o}{:06o}{:011o}{:06o}{:011o}",
                // Together they tell files apart, and one alone is too short for that.
                fields.inode >> ODC_BITS,
                fields.inode & ((1 << ODC_BITS) - 1),
                fields.mode,
                fields.uid,
                fields.gid,
                fields.nlink.min((1 << ODC_BITS) - 1),
                fields.rdev,
                fields.mtime,
                name_len,
                fields.size
            ),
            Dialect::Newc => {
                let (major, minor) = (
                    rustix::fs::major(fields.rdev),
                    rustix::fs::minor(fields.rdev),
                );
                format!(
                    "070701{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
                    fields.inode,
                    fields.mode,
                    fields.uid,
                    fields.gid,
                    fields.nlink,
                    fields.mtime,
                    fields.size,
                    0,
                    0,
                    major,
                    minor,
                    name_len,
                    0
                )
            }
        };
        out.write(header.as_bytes())?;
        out.write(fields.path)?;
        out.write(&[0])?;
        self.align(out)
    }

    fn align(&self, out: &mut Output<'_>) -> Result<()> {
        match self.dialect {
            Dialect::Odc => Ok(()),
            // Every header begins at such a place, too.
            Dialect::Newc => out.pad(4),
        }
    }
}

/// Bytes that follow the header.
fn size(body: &Body<'_>) -> u64 {
    match body {
        Body::Target(target) => target.len() as u64,
        body => body.stored_len(),
    }
}

impl Format for Cpio {
    fn links(&self) -> Links {
        match self.dialect {
            Dialect::Odc => Links::AllHaveContent,
            Dialect::Newc => Links::LastHasContent,
        }
    }

    fn holds(&self, _kind: FileKind) -> bool {
        true
    }

    fn accepts(&self, body: &Body<'_>) -> Result<()> {
        let (size, size_max) = (size(body), self.size_max());
        if size > size_max {
            return Err(Error::invalid_input(format!(
                "{size} bytes are more than the {size_max} that the format can hold; pax can hold them"
            )));
        }
        Ok(())
    }

    fn begin(&mut self, member: &Member<'_>, out: &mut Output<'_>) -> Result<()> {
        self.accepts(&member.body)?;
        let attr = member.attr;
        let path = if member.path == TRAILER {
            [b"./", member.path].concat()
        } else {
            member.path.to_vec()
        };
        let ((uid, has_uid), (gid, has_gid)) =
            (self.short(attr.uid.into()), self.short(attr.gid.into()));
        self.losses.owners += u64::from(!has_uid || !has_gid);
        let (rdev, has_rdev) = self.short(attr.rdev);
        self.losses.devices += u64::from(!has_rdev);
        let fields = Fields {
            inode: u64::from(attr.inode.0) + 1,
            mode: attr.mode,
            uid,
            gid,
            nlink: match attr.kind {
                FileKind::Directory => 2,
                _ => member.nlink,
            },
            mtime: self.time(attr.mtime.sec),
            size: size(&member.body),
            rdev,
            path: &path,
        };
        self.write_header(&fields, out)?;
        if let Body::Target(target) = member.body {
            out.write(target)?;
        }
        Ok(())
    }

    fn data(&mut self, piece: Prepared, out: &mut Output<'_>) -> Result<()> {
        out.write(&piece.data)
    }

    fn end(&mut self, _member: &Member<'_>, out: &mut Output<'_>) -> Result<()> {
        self.align(out)
    }

    fn finish(&mut self, out: &mut Output<'_>) -> Result<()> {
        let fields = Fields {
            inode: 0,
            mode: 0,
            uid: 0,
            gid: 0,
            nlink: 1,
            mtime: 0,
            size: 0,
            rdev: 0,
            path: TRAILER,
        };
        self.write_header(&fields, out)?;
        out.pad(RECORD_LEN)
    }

    fn losses(&self) -> Losses {
        self.losses
    }
}
