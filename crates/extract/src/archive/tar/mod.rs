//! The tar family: version 7, ustar, GNU's, and pax.
//!
//! Source: POSIX.1-2017, `pax`; the manual of GNU tar, "Tar Internals"; tar(5) of libarchive.

mod header;
mod pax;

use durin_format::{Error, Result};
use durin_reader::{Attr, FileKind, Time};

use super::layout::{Layout, Region};
use super::member::{Body, Format, Links, Losses, Member};
use super::output::Output;
use super::prepare::Prepared;
use header::{
    BLOCK_LEN, DEVICE_MAJOR, DEVICE_MINOR, Field, GID, GNU_IS_EXTENDED, GNU_REAL_SIZE, GNU_SPARSE,
    Header, MODE, MTIME, Magic, NAME, PREFIX, SIZE, TARGET, TypeFlag, UID, octal_max,
    sparse_number,
};
use pax::Records;

/// Archives end at a multiple of this: tapes were written 20 blocks at a time, and some readers complain otherwise.
const RECORD_LEN: u64 = 20 * BLOCK_LEN as u64;

/// Regions that fit into a header of GNU tar, and into each block that continues it.
const GNU_HEADER_REGIONS: usize = 4;
const GNU_BLOCK_REGIONS: usize = 21;

/// Bytes of a name that version 7 and ustar can hold in one field.
const NAME_MAX: usize = 100;
const PREFIX_MAX: usize = 155;

/// A member of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V7,
    Ustar,
    Gnu,
    Pax,
    PaxRestricted,
}

/// A tar archive in the making.
pub(super) struct Tar {
    dialect: Dialect,
    losses: Losses,
}

impl Tar {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            losses: Losses::default(),
        }
    }

    fn is_pax(&self) -> bool {
        matches!(self.dialect, Dialect::Pax | Dialect::PaxRestricted)
    }

    fn magic(&self) -> Magic {
        match self.dialect {
            Dialect::V7 => Magic::None,
            Dialect::Gnu => Magic::Gnu,
            Dialect::Ustar | Dialect::Pax | Dialect::PaxRestricted => Magic::Ustar,
        }
    }

    fn type_flag(&self, member: &Member<'_>) -> TypeFlag {
        match member.body {
            Body::LinkTo(_) => TypeFlag::Link,
            Body::Data(layout) if layout.is_sparse && self.dialect == Dialect::Gnu => {
                TypeFlag::GnuSparse
            }
            _ if self.dialect == Dialect::V7 && member.attr.kind != FileKind::Symlink => {
                TypeFlag::OldFile
            }
            _ => TypeFlag::of(member.attr.kind),
        }
    }

    /// Sets a number that must be exact where there is a way to have it so: in base 256, or as a record.
    /// Otherwise the largest possible stands for it, and false is returned.
    fn number(
        &self,
        header: &mut Header,
        records: &mut Records,
        field: Field,
        key: &str,
        value: u64,
    ) -> bool {
        if header.octal(field, value) {
            return true;
        }
        match self.dialect {
            Dialect::Gnu => header.number(field, i64::try_from(value).unwrap_or(i64::MAX)),
            Dialect::Pax | Dialect::PaxRestricted => {
                header.octal_or_most(field, value);
                records.set(key, value.to_string());
            }
            Dialect::V7 | Dialect::Ustar => {
                header.octal_or_most(field, value);
                return false;
            }
        }
        true
    }

    fn owner(&mut self, header: &mut Header, records: &mut Records, attr: &Attr) {
        let uid = self.number(header, records, UID, "uid", attr.uid.into());
        let gid = self.number(header, records, GID, "gid", attr.gid.into());
        if !uid || !gid {
            self.losses.owners += 1;
        }
    }

    fn device(&mut self, header: &mut Header, records: &mut Records, attr: &Attr) {
        let is_device = matches!(attr.kind, FileKind::CharDevice | FileKind::BlockDevice);
        if self.dialect == Dialect::V7 {
            return;
        }
        let (major, minor) = if is_device {
            (
                rustix::fs::major(attr.rdev).into(),
                rustix::fs::minor(attr.rdev).into(),
            )
        } else {
            (0, 0)
        };
        let major = self.number(header, records, DEVICE_MAJOR, "SCHILY.devmajor", major);
        let minor = self.number(header, records, DEVICE_MINOR, "SCHILY.devminor", minor);
        if !major || !minor {
            self.losses.devices += 1;
        }
    }

    fn times(&mut self, header: &mut Header, records: &mut Records, attr: &Attr) {
        let Time { sec, nsec } = attr.mtime;
        let is_in_range = u64::try_from(sec).is_ok_and(|sec| header.octal(MTIME, sec));
        match self.dialect {
            Dialect::Gnu => header.number(MTIME, sec),
            Dialect::Pax | Dialect::PaxRestricted => {
                if !is_in_range {
                    header.octal(MTIME, clamped(sec));
                }
                if !is_in_range || (nsec > 0 && self.dialect == Dialect::Pax) {
                    records.set_time("mtime", attr.mtime);
                }
                // An image that keeps only modification times says that the others are the same.
                let has_others = attr.atime != attr.mtime || attr.ctime != attr.mtime;
                if has_others && self.dialect == Dialect::Pax {
                    records.set_time("atime", attr.atime);
                    records.set_time("ctime", attr.ctime);
                }
            }
            Dialect::V7 | Dialect::Ustar if !is_in_range => {
                header.octal(MTIME, clamped(sec));
                self.losses.times += 1;
            }
            Dialect::V7 | Dialect::Ustar => {}
        }
    }

    /// Sets the name of a member, in whatever way the dialect has for long ones.
    fn name(
        &self,
        header: &mut Header,
        records: &mut Records,
        extra: &mut Vec<u8>,
        path: &[u8],
    ) -> Result<()> {
        let prefix = split(path);
        match (self.dialect, prefix) {
            (Dialect::V7 | Dialect::Gnu, _) if path.len() < NAME_MAX => header.text(NAME, path),
            (Dialect::Gnu, _) => {
                extra.extend(gnu_long(TypeFlag::GnuLongName, path));
                header.text(NAME, path);
            }
            (Dialect::V7, _) => {
                return Err(Error::invalid_input(
                    "the path is longer than the 99 bytes that tar of version 7 can hold",
                ));
            }
            (_, Some((prefix, name))) => {
                header.text(NAME, name);
                header.text(PREFIX, prefix);
                if self.is_pax() && !path.is_ascii() {
                    records.set_name("path", path);
                }
            }
            (Dialect::Ustar, None) => {
                return Err(Error::invalid_input(
                    "the path is too long for ustar; pax and gnutar can hold it",
                ));
            }
            (Dialect::Pax | Dialect::PaxRestricted, None) => {
                header.text(NAME, path);
                records.set_name("path", path);
            }
        }
        Ok(())
    }

    fn target(
        &self,
        header: &mut Header,
        records: &mut Records,
        extra: &mut Vec<u8>,
        target: &[u8],
    ) -> Result<()> {
        let fits = target.len() <= NAME_MAX;
        match self.dialect {
            Dialect::V7 | Dialect::Ustar if !fits => {
                return Err(Error::invalid_input(
                    "the target of the link is longer than the 100 bytes that the format can hold; \
                     pax and gnutar can hold it",
                ));
            }
            Dialect::Gnu if target.len() >= NAME_MAX => {
                extra.extend(gnu_long(TypeFlag::GnuLongTarget, target));
            }
            Dialect::Pax | Dialect::PaxRestricted if !fits || !target.is_ascii() => {
                records.set_name("linkpath", target);
            }
            _ => {}
        }
        header.text(TARGET, target);
        Ok(())
    }
}

impl Format for Tar {
    fn links(&self) -> Links {
        Links::Named
    }

    fn keeps_holes(&self) -> bool {
        self.is_pax() || self.dialect == Dialect::Gnu
    }

    fn holds(&self, kind: FileKind) -> bool {
        match kind {
            FileKind::Socket => false,
            FileKind::CharDevice | FileKind::BlockDevice | FileKind::Fifo => {
                self.dialect != Dialect::V7
            }
            FileKind::Directory | FileKind::Regular | FileKind::Symlink => true,
        }
    }

    fn begin(&mut self, member: &Member<'_>, out: &mut Output<'_>) -> Result<()> {
        let losses = self.losses;
        let attr = member.attr;
        let (mut header, mut records, mut extra) = (Header::new(), Records::default(), Vec::new());
        header.octal(MODE, (attr.mode & 0o7777).into());
        self.owner(&mut header, &mut records, attr);
        self.times(&mut header, &mut records, attr);
        self.device(&mut header, &mut records, attr);

        let mut path = member.path.to_vec();
        if attr.kind == FileKind::Directory {
            path.push(b'/');
        }
        let mut map = Vec::new();
        let mut size = member.body.stored_len();
        match member.body {
            Body::Target(target) | Body::LinkTo(target) => {
                self.target(&mut header, &mut records, &mut extra, target)?;
            }
            Body::Data(layout) if layout.is_sparse && self.is_pax() => {
                map = pax_sparse(layout, &mut records, &path);
                size += map.len() as u64;
                path = pax_sparse_name(&path);
            }
            Body::Data(layout) if layout.is_sparse => map = gnu_sparse(layout, &mut header),
            _ => {}
        }
        self.name(&mut header, &mut records, &mut extra, &path)?;
        if !self.number(&mut header, &mut records, SIZE, "size", size) {
            self.losses = losses;
            return Err(Error::invalid_input(format!(
                "{size} bytes are more than the {} that the format can hold; pax and gnutar can hold them",
                octal_max(SIZE)
            )));
        }
        if !records.is_empty() {
            if self.dialect == Dialect::PaxRestricted && attr.mtime.nsec > 0 {
                records.set_time("mtime", attr.mtime);
            }
            out.write(&pax_header(member, &records))?;
            out.write(records.bytes())?;
            out.pad(BLOCK_LEN as u64)?;
        }
        out.write(&extra)?;
        out.write(&header.finish(self.type_flag(member), self.magic()))?;
        out.write(&map)
    }

    fn data(&mut self, piece: Prepared, out: &mut Output<'_>) -> Result<()> {
        out.write(&piece.data)
    }

    fn end(&mut self, _member: &Member<'_>, out: &mut Output<'_>) -> Result<()> {
        out.pad(BLOCK_LEN as u64)
    }

    fn finish(&mut self, out: &mut Output<'_>) -> Result<()> {
        out.zeros(2 * BLOCK_LEN as u64)?;
        out.pad(RECORD_LEN)
    }

    fn losses(&self) -> Losses {
        self.losses
    }
}

/// The nearest time that a field holds.
fn clamped(sec: i64) -> u64 {
    u64::try_from(sec).unwrap_or(0).min(octal_max(MTIME))
}

/// Divides a path into what goes into the fields for prefix and name; `None` if that is not possible.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    if path.len() <= NAME_MAX {
        return Some((&[], path));
    }
    // The slash between the two is stored in neither; the closing one of a directory is part of the name.
    let last = path.len().checked_sub(2)?.min(PREFIX_MAX);
    let first = path.len() - NAME_MAX - 1;
    let at = path
        .get(first..=last)?
        .iter()
        .rposition(|byte| *byte == b'/')?
        + first;
    Some((path.get(..at)?, path.get(at + 1..)?)).filter(|(prefix, _)| !prefix.is_empty())
}

/// A member that holds the long name or target of the next one.
fn gnu_long(kind: TypeFlag, text: &[u8]) -> Vec<u8> {
    let mut header = Header::new();
    header.text(NAME, b"././@LongLink");
    header.octal(MODE, 0);
    header.octal(UID, 0);
    header.octal(GID, 0);
    header.octal(SIZE, text.len() as u64 + 1);
    header.octal(MTIME, 0);
    let mut bytes = header.finish(kind, Magic::Gnu).to_vec();
    bytes.extend_from_slice(text);
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(BLOCK_LEN), 0);
    bytes
}

/// Puts the regions of a sparse file into its header; returns the blocks for those that do not fit.
fn gnu_sparse(layout: &Layout, header: &mut Header) -> Vec<u8> {
    let map = layout.sparse_map();
    let list = |regions: &[Region]| -> Vec<u8> {
        let numbers = regions
            .iter()
            .flat_map(|region| [region.offset, region.len]);
        numbers.flat_map(sparse_number).collect()
    };
    let (first, mut rest) = map.split_at(map.len().min(GNU_HEADER_REGIONS));
    header.text(GNU_SPARSE, &list(first));
    header.text(GNU_REAL_SIZE, &sparse_number(layout.size));
    header.text(GNU_IS_EXTENDED, &[u8::from(!rest.is_empty())]);
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        let (here, later) = rest.split_at(rest.len().min(GNU_BLOCK_REGIONS));
        let start = blocks.len();
        blocks.extend(list(here));
        blocks.resize(start + GNU_BLOCK_REGIONS * 24, 0);
        blocks.push(u8::from(!later.is_empty()));
        blocks.resize(start + BLOCK_LEN, 0);
        rest = later;
    }
    blocks
}

/// Sets the records of a sparse file, version 1.0; returns the list of regions that comes before the content.
fn pax_sparse(layout: &Layout, records: &mut Records, path: &[u8]) -> Vec<u8> {
    records.set("GNU.sparse.major", "1");
    records.set("GNU.sparse.minor", "0");
    records.set_name("GNU.sparse.name", path);
    records.set("GNU.sparse.realsize", layout.size.to_string());
    let map = layout.sparse_map();
    let mut text = format!("{}\n", map.len());
    for region in &map {
        text.push_str(&format!("{}\n{}\n", region.offset, region.len));
    }
    let mut bytes = text.into_bytes();
    bytes.resize(bytes.len().next_multiple_of(BLOCK_LEN), 0);
    bytes
}

/// The name under which a reader that knows nothing of sparse files unpacks one.
fn pax_sparse_name(path: &[u8]) -> Vec<u8> {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    let (dir, name) = path.split_at(slash.map_or(0, |slash| slash + 1));
    [dir, b"GNUSparseFile.0/", name].concat()
}

/// The header of the records that precede a member.
fn pax_header(member: &Member<'_>, records: &Records) -> [u8; BLOCK_LEN] {
    let mut header = Header::new();
    // Only seen by readers that do not know such records.
    let slash = member.path.iter().rposition(|byte| *byte == b'/');
    let name = member.path.get(slash.map_or(0, |slash| slash + 1)..);
    header.text(NAME, &[b"PaxHeaders/", name.unwrap_or_default()].concat());
    header.octal(MODE, 0o644);
    header.octal(UID, 0);
    header.octal(GID, 0);
    header.octal(SIZE, records.bytes().len() as u64);
    header.octal(MTIME, clamped(member.attr.mtime.sec));
    header.finish(TypeFlag::PaxRecords, Magic::Ustar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_at_a_slash() {
        let check = |path: &str, expected: Option<(usize, usize)>| {
            let found = split(path.as_bytes()).map(|(prefix, name)| (prefix.len(), name.len()));
            assert_eq!(found, expected, "{path}");
        };
        let (a, b) = ("a".repeat(100), "b".repeat(100));
        check("x", Some((0, 1)));
        check(&a, Some((0, 100)));
        check(&format!("{a}/{b}"), Some((100, 100)));
        check(&format!("{a}/{b}/"), None);
        check(&format!("{a}/{}/", "b".repeat(99)), Some((100, 100)));
        check(&format!("/{a}"), None);
        check(&format!("{a}{b}"), None);
        check(&format!("{}/{b}", "c".repeat(155)), Some((155, 100)));
        check(&format!("{}/{b}", "c".repeat(156)), None);
    }
}
