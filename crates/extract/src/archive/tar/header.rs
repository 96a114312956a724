//! The 512 bytes that begin a member of a tar archive.

use durin_reader::FileKind;

/// Bytes of a header, and of the blocks that content is padded to.
pub(super) const BLOCK_LEN: usize = 512;

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeFlag {
    OldFile,
    File,
    Link,
    Symlink,
    CharDevice,
    BlockDevice,
    Directory,
    Fifo,
    GnuLongTarget,
    GnuLongName,
    GnuSparse,
    PaxRecords,
}

impl TypeFlag {
    pub(super) fn of(kind: FileKind) -> Self {
        match kind {
            FileKind::Directory => Self::Directory,
            FileKind::Symlink => Self::Symlink,
            FileKind::CharDevice => Self::CharDevice,
            FileKind::BlockDevice => Self::BlockDevice,
            FileKind::Fifo => Self::Fifo,
            FileKind::Regular | FileKind::Socket => Self::File,
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::OldFile => 0,
            Self::File => b'0',
            Self::Link => b'1',
            Self::Symlink => b'2',
            Self::CharDevice => b'3',
            Self::BlockDevice => b'4',
            Self::Directory => b'5',
            Self::Fifo => b'6',
            Self::GnuLongTarget => b'K',
            Self::GnuLongName => b'L',
            Self::GnuSparse => b'S',
            Self::PaxRecords => b'x',
        }
    }
}

/// Which fields a header has beyond those of version 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Magic {
    None,
    Ustar,
    Gnu,
}

/// A field: where it begins, and its bytes.
#[derive(Clone, Copy)]
pub(super) struct Field(usize, usize);

pub(super) const NAME: Field = Field(0, 100);
pub(super) const MODE: Field = Field(100, 8);
pub(super) const UID: Field = Field(108, 8);
pub(super) const GID: Field = Field(116, 8);
pub(super) const SIZE: Field = Field(124, 12);
pub(super) const MTIME: Field = Field(136, 12);
const CHECKSUM: Field = Field(148, 8);
const TYPE: Field = Field(156, 1);
pub(super) const TARGET: Field = Field(157, 100);
const MAGIC: Field = Field(257, 8);
pub(super) const DEVICE_MAJOR: Field = Field(329, 8);
pub(super) const DEVICE_MINOR: Field = Field(337, 8);
pub(super) const PREFIX: Field = Field(345, 155);
/// Regions of a sparse file: four pairs of offset and length, 12 bytes each.
pub(super) const GNU_SPARSE: Field = Field(386, 96);
pub(super) const GNU_IS_EXTENDED: Field = Field(482, 1);
pub(super) const GNU_REAL_SIZE: Field = Field(483, 12);

/// A header in the making.
pub(super) struct Header {
    bytes: [u8; BLOCK_LEN],
}

impl Header {
    pub(super) fn new() -> Self {
        Self {
            bytes: [0; BLOCK_LEN],
        }
    }

    /// Sets a field of bytes; what is longer is cut.
    pub(super) fn text(&mut self, field: Field, text: &[u8]) {
        for (to, from) in self.field(field).iter_mut().zip(text) {
            *to = *from;
        }
    }

    /// Sets a number in octal with a closing NUL; false if it has too many digits.
    pub(super) fn octal(&mut self, field: Field, value: u64) -> bool {
        let digits = format!("{value:o}");
        let width = field.1 - 1;
        if digits.len() > width {
            return false;
        }
        let text = format!("{digits:0>width$}");
        self.text(field, text.as_bytes());
        true
    }

    /// Sets a number in octal, or the largest that the field holds.
    pub(super) fn octal_or_most(&mut self, field: Field, value: u64) {
        if !self.octal(field, value) {
            self.octal(field, octal_max(field));
        }
    }

    /// Sets a number in octal or, as GNU tar does when that is too long, in base 256.
    pub(super) fn number(&mut self, field: Field, value: i64) {
        if u64::try_from(value).is_ok_and(|value| self.octal(field, value)) {
            return;
        }
        let target = self.field(field);
        let fill = if value < 0 { 0xff } else { 0 };
        target.fill(fill);
        // Most significant byte first, whatever the machine.
        let mut rest = value.cast_unsigned();
        for byte in target.iter_mut().rev().take(8) {
            *byte = u8::try_from(rest & 0xff).unwrap_or(0);
            rest >>= 8;
        }
        if let Some(first) = target.first_mut() {
            *first |= 0x80;
        }
    }

    /// The finished header.
    pub(super) fn finish(mut self, kind: TypeFlag, magic: Magic) -> [u8; BLOCK_LEN] {
        self.text(TYPE, &[kind.byte()]);
        match magic {
            Magic::None => {}
            Magic::Ustar => self.text(MAGIC, b"ustar\x0000"),
            Magic::Gnu => self.text(MAGIC, b"ustar  \0"),
        }
        // The sum is taken with blanks in its own place.
        self.text(CHECKSUM, b"        ");
        let sum: u32 = self.bytes.iter().map(|byte| u32::from(*byte)).sum();
        self.text(CHECKSUM, format!("{sum:06o}\0 ").as_bytes());
        self.bytes
    }

    fn field(&mut self, field: Field) -> &mut [u8] {
        self.bytes
            .get_mut(field.0..field.0 + field.1)
            .unwrap_or_default()
    }
}

/// The largest number that a field holds in octal.
pub(super) fn octal_max(field: Field) -> u64 {
    (1 << (3 * (field.1 - 1))) - 1
}

/// A number as [`Header::number`] writes it, for the lists of sparse files.
pub(super) fn sparse_number(value: u64) -> [u8; 12] {
    let mut header = Header::new();
    header.number(SIZE, i64::try_from(value).unwrap_or(i64::MAX));
    let mut bytes = [0; 12];
    bytes.copy_from_slice(header.field(SIZE));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(field: Field, value: i64) -> Vec<u8> {
        let mut header = Header::new();
        header.number(field, value);
        header.field(field).to_vec()
    }

    #[test]
    fn numbers() {
        assert_eq!(number(UID, 0o123), b"0000123\0");
        assert_eq!(number(UID, 0o7_777_777), b"7777777\0");
        assert_eq!(number(UID, 1 << 21), [0x80, 0, 0, 0, 0, 0x20, 0, 0]);
        assert_eq!(number(MTIME, -1), [0xff; 12]);
        let size = number(SIZE, 1 << 33);
        assert_eq!(size, [0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
    }

    #[test]
    fn too_long_for_octal() {
        let mut header = Header::new();
        assert!(!header.octal(UID, 1 << 21));
        header.octal_or_most(UID, 1 << 21);
        assert_eq!(header.field(UID), b"7777777\0");
        assert_eq!(octal_max(SIZE), (1 << 33) - 1);
    }

    #[test]
    fn checksum() {
        let bytes = Header::new().finish(TypeFlag::File, Magic::None);
        // Eight blanks and the digit of the type.
        assert_eq!(&bytes[148..156], b"000460\0 ");
    }
}
