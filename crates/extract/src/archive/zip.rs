//! zip, with 64-bit sizes where they are needed, and with the extra fields that Unix programs have.
//!
//! Nothing is written twice, so that the archive can go to a pipe: a file that comes in several pieces has its sizes behind
//! its content. Source: APPNOTE.TXT of PKWARE; `proginfo/extrafld.txt` of Info-ZIP.

use durin_format::{Error, Result};
use durin_reader::{Attr, FileKind, Time};

use super::member::{Body, Format, Links, Losses, Member};
use super::output::Output;
use super::prepare::{Prepare, Prepared};

const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const END: u32 = 0x0605_4b50;

/// Version 4.5 of the format has 64-bit sizes.
const VERSION_64: u16 = 45;
const VERSION: u16 = 20;
/// Made on Unix: the upper half of the attributes is a mode.
const UNIX: u16 = 3 << 8;

const HAS_DESCRIPTOR: u16 = 1 << 3;
const IS_UTF8: u16 = 1 << 11;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Files from here on have 64-bit sizes: what is stored for one can be a little longer than the file.
const BIG: u64 = 0xff00_0000;

/// A zip archive in the making.
pub(super) struct Zip {
    /// `None` stores.
    level: Option<u32>,
    central: Vec<u8>,
    count: u64,
    current: Option<Current>,
    losses: Losses,
}

/// The member being written.
struct Current {
    path: Vec<u8>,
    attr: Attr,
    offset: u64,
    method: u16,
    flags: u16,
    is_big: bool,
    is_header_written: bool,
    len: u64,
    stored_len: u64,
    checksum: crc32fast::Hasher,
}

impl Zip {
    pub(super) fn new(level: Option<u32>) -> Self {
        Self {
            level,
            central: Vec::new(),
            count: 0,
            current: None,
            losses: Losses::default(),
        }
    }
}

impl Format for Zip {
    fn links(&self) -> Links {
        Links::AllHaveContent
    }

    fn holds(&self, kind: FileKind) -> bool {
        matches!(
            kind,
            FileKind::Directory | FileKind::Regular | FileKind::Symlink
        )
    }

    fn prepare(&self) -> Prepare {
        self.level.map_or(Prepare::Checksum, Prepare::Deflate)
    }

    fn begin(&mut self, member: &Member<'_>, out: &mut Output<'_>) -> Result<()> {
        let mut path = member.path.to_vec();
        if member.attr.kind == FileKind::Directory {
            path.push(b'/');
        }
        if u16::try_from(path.len()).is_err() {
            return Err(Error::invalid_input("the path is too long for zip"));
        }
        if i32::try_from(member.attr.mtime.sec).is_err() {
            self.losses.times += 1;
        }
        let is_utf8 = !path.is_ascii() && std::str::from_utf8(&path).is_ok();
        let mut current = Current {
            path,
            attr: *member.attr,
            offset: out.position(),
            method: STORED,
            flags: if is_utf8 { IS_UTF8 } else { 0 },
            is_big: member.body.stored_len() >= BIG,
            is_header_written: false,
            len: 0,
            stored_len: 0,
            checksum: crc32fast::Hasher::new(),
        };
        if let Body::Target(target) = member.body {
            current.checksum.update(target);
            current.len = target.len() as u64;
            current.stored_len = current.len;
            out.write(&current.local())?;
            out.write(target)?;
            current.is_header_written = true;
        }
        self.current = Some(current);
        Ok(())
    }

    fn data(&mut self, piece: Prepared, out: &mut Output<'_>) -> Result<()> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        current.len += piece.len;
        current.stored_len += piece.data.len() as u64;
        current.checksum.combine(&piece.checksum);
        if !std::mem::replace(&mut current.is_header_written, true) {
            if piece.is_deflated {
                current.method = DEFLATED;
            }
            if !piece.position.is_whole() {
                current.flags |= HAS_DESCRIPTOR;
            }
            out.write(&current.local())?;
        }
        out.write(&piece.data)
    }

    fn end(&mut self, _member: &Member<'_>, out: &mut Output<'_>) -> Result<()> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        if !current.is_header_written {
            out.write(&current.local())?;
        }
        if current.flags & HAS_DESCRIPTOR != 0 {
            out.write(&current.descriptor())?;
        }
        self.central.extend(current.central());
        self.count += 1;
        Ok(())
    }

    fn finish(&mut self, out: &mut Output<'_>) -> Result<()> {
        let start = out.position();
        out.write(&self.central)?;
        let len = out.position() - start;
        let end_64 = out.position();
        let mut end = Vec::new();
        if self.count >= u16::MAX.into() || start >= u32::MAX.into() || len >= u32::MAX.into() {
            put32(&mut end, END_64);
            put64(&mut end, 44);
            put16(&mut end, UNIX | VERSION_64);
            put16(&mut end, VERSION_64);
            put32(&mut end, 0);
            put32(&mut end, 0);
            for value in [self.count, self.count, len, start] {
                put64(&mut end, value);
            }
            put32(&mut end, LOCATOR_64);
            put32(&mut end, 0);
            put64(&mut end, end_64);
            put32(&mut end, 1);
        }
        put32(&mut end, END);
        put32(&mut end, 0);
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        put16(&mut end, count);
        put16(&mut end, count);
        put32(&mut end, most32(len));
        put32(&mut end, most32(start));
        put16(&mut end, 0);
        out.write(&end)
    }

    fn losses(&self) -> Losses {
        self.losses
    }
}

impl Current {
    /// The header before the content.
    fn local(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put32(&mut bytes, LOCAL);
        put16(&mut bytes, self.version());
        self.put_common(&mut bytes);
        let is_known = self.flags & HAS_DESCRIPTOR == 0;
        let (len, stored_len) = if is_known {
            (self.len, self.stored_len)
        } else {
            (0, 0)
        };
        put32(&mut bytes, if is_known { self.crc() } else { 0 });
        let mut extra = Vec::new();
        if self.is_big {
            put32(&mut bytes, u32::MAX);
            put32(&mut bytes, u32::MAX);
            put16(&mut extra, 1);
            put16(&mut extra, 16);
            put64(&mut extra, len);
            put64(&mut extra, stored_len);
        } else {
            put32(&mut bytes, most32(stored_len));
            put32(&mut bytes, most32(len));
        }
        let times = [self.attr.mtime, self.attr.atime, self.attr.ctime];
        put_times(&mut extra, &times, 3);
        self.put_owner(&mut extra);
        put_len(&mut bytes, self.path.len());
        put_len(&mut bytes, extra.len());
        bytes.extend_from_slice(&self.path);
        bytes.extend(extra);
        bytes
    }

    /// Sizes behind the content.
    fn descriptor(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put32(&mut bytes, DESCRIPTOR);
        put32(&mut bytes, self.crc());
        for value in [self.stored_len, self.len] {
            if self.is_big {
                put64(&mut bytes, value);
            } else {
                put32(&mut bytes, most32(value));
            }
        }
        bytes
    }

    /// The entry in the directory at the end.
    fn central(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put32(&mut bytes, CENTRAL);
        put16(&mut bytes, UNIX | self.version());
        put16(&mut bytes, self.version());
        self.put_common(&mut bytes);
        put32(&mut bytes, self.crc());
        let mut extra = Vec::new();
        let mut big = Vec::new();
        // Only what does not fit is there, in this order.
        if self.is_big {
            put64(&mut big, self.len);
            put64(&mut big, self.stored_len);
            put32(&mut bytes, u32::MAX);
            put32(&mut bytes, u32::MAX);
        } else {
            put32(&mut bytes, most32(self.stored_len));
            put32(&mut bytes, most32(self.len));
        }
        if self.offset >= u32::MAX.into() {
            put64(&mut big, self.offset);
        }
        if !big.is_empty() {
            put16(&mut extra, 1);
            put_len(&mut extra, big.len());
            extra.extend(big);
        }
        put_times(&mut extra, &[self.attr.mtime], 3);
        self.put_owner(&mut extra);
        put_len(&mut bytes, self.path.len());
        put_len(&mut bytes, extra.len());
        put16(&mut bytes, 0);
        put16(&mut bytes, 0);
        put16(&mut bytes, 0);
        let is_dir = self.attr.kind == FileKind::Directory;
        put32(
            &mut bytes,
            self.attr.mode << 16 | if is_dir { 0x10 } else { 0 },
        );
        put32(&mut bytes, most32(self.offset));
        bytes.extend_from_slice(&self.path);
        bytes.extend(extra);
        bytes
    }

    /// What is the same in both headers, in the same order.
    fn put_common(&self, bytes: &mut Vec<u8>) {
        put16(bytes, self.flags);
        put16(bytes, self.method);
        let (time, date) = dos_time(self.attr.mtime.sec);
        put16(bytes, time);
        put16(bytes, date);
    }

    fn put_owner(&self, extra: &mut Vec<u8>) {
        extra.extend_from_slice(b"ux");
        put16(extra, 11);
        extra.push(1);
        for id in [self.attr.uid, self.attr.gid] {
            extra.push(4);
            put32(extra, id);
        }
    }

    fn version(&self) -> u16 {
        if self.is_big || self.offset >= u32::MAX.into() {
            VERSION_64
        } else {
            VERSION
        }
    }

    fn crc(&self) -> u32 {
        self.checksum.clone().finalize()
    }
}

/// The extended time stamp; `told` says which times there are somewhere in the archive, a bit each.
fn put_times(extra: &mut Vec<u8>, times: &[Time], told: u8) {
    let seconds: Vec<i32> = times
        .iter()
        .map_while(|time| i32::try_from(time.sec).ok())
        .collect();
    if seconds.is_empty() {
        return;
    }
    extra.extend_from_slice(b"UT");
    put_len(extra, 1 + 4 * seconds.len());
    let here = (1_u8 << seconds.len()) - 1;
    extra.push(if times.len() > 1 { here } else { told });
    for second in seconds {
        extra.extend_from_slice(&second.to_le_bytes());
    }
}

/// A time as DOS has it, in pairs of seconds since 1980; in UTC, as nothing may depend on where the archive is made.
fn dos_time(sec: i64) -> (u16, u16) {
    const FIRST: i64 = 315_532_800; // 1980-01-01
    const LAST: i64 = 4_354_819_198; // 2107-12-31 23:59:58
    let sec = sec.clamp(FIRST, LAST);
    let (days, rest) = (sec / 86_400, sec % 86_400);
    let (year, month, day) = date_of(days);
    let time = (rest / 3600) << 11 | (rest / 60 % 60) << 5 | (rest % 60 / 2);
    let date = (year - 1980) << 9 | month << 5 | day;
    (
        u16::try_from(time).unwrap_or(0),
        u16::try_from(date).unwrap_or(0),
    )
}

/// The date of a day after 1970-01-01: years are counted from March, so that the odd day comes last.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn put16(bytes: &mut Vec<u8>, value: u16) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn put32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn put64(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

/// A length that has been checked, or can only be small.
fn put_len(bytes: &mut Vec<u8>, len: usize) {
    put16(bytes, u16::try_from(len).unwrap_or(u16::MAX));
}

/// The value, or all ones, which say that it stands elsewhere.
fn most32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(date_of(11_016), (2000, 2, 29));
        assert_eq!(date_of(20_778), (2026, 11, 21));
        assert_eq!(dos_time(0), (0, 1 << 5 | 1), "the first there is");
        let last = (23 << 11 | 59 << 5 | 29, 127 << 9 | 12 << 5 | 31);
        assert_eq!(dos_time(i64::MAX), last);
    }
}
