//! What a request says.

use super::IN_HEADER_LEN;

/// The numbers of the operations.
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const SETXATTR: u32 = 21;
    pub(crate) const GETXATTR: u32 = 22;
    pub(crate) const LISTXATTR: u32 = 23;
    pub(crate) const REMOVEXATTR: u32 = 24;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const NOTIFY_REPLY: u32 = 41;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
    pub(crate) const READDIRPLUS: u32 = 44;
    pub(crate) const RENAME2: u32 = 45;
    pub(crate) const LSEEK: u32 = 46;
    pub(crate) const COPY_FILE_RANGE: u32 = 47;
    pub(crate) const TMPFILE: u32 = 51;

    /// The name of an operation, of those that reading brings about.
    pub(crate) fn name(code: usize) -> String {
        let known = match u32::try_from(code).unwrap_or(0) {
            LOOKUP => "lookup",
            FORGET => "forget",
            GETATTR => "getattr",
            READLINK => "readlink",
            OPEN => "open",
            READ => "read",
            STATFS => "statfs",
            RELEASE => "release",
            GETXATTR => "getxattr",
            LISTXATTR => "listxattr",
            OPENDIR => "opendir",
            READDIR => "readdir",
            RELEASEDIR => "releasedir",
            INTERRUPT => "interrupt",
            BATCH_FORGET => "batch_forget",
            READDIRPLUS => "readdirplus",
            LSEEK => "lseek",
            _ => return format!("operation_{code}"),
        };
        known.to_owned()
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) opcode: u32,
    /// What the answer must carry.
    pub(crate) unique: u64,
    pub(crate) node: u64,
    pub(crate) uid: u32,
    /// The thread that asks; 0 for the kernel itself.
    pub(crate) pid: u32,
    pub(crate) body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Takes apart what was read from the device; `None` if it is no request.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, body) = bytes.split_at_checked(IN_HEADER_LEN)?;
        let mut fields = Fields(header);
        let len = usize::try_from(fields.u32()?).ok()?;
        let opcode = fields.u32()?;
        let unique = fields.u64()?;
        let node = fields.u64()?;
        let uid = fields.u32()?;
        let _gid = fields.u32()?;
        let pid = fields.u32()?;
        let body = body.get(..len.checked_sub(IN_HEADER_LEN)?)?;
        Some(Self {
            opcode,
            unique,
            node,
            uid,
            pid,
            body,
        })
    }

    /// The fields of the body.
    pub(crate) fn fields(&self) -> Fields<'a> {
        Fields(self.body)
    }
}

/// Reads fields one after the other, in the byte order of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    /// The bytes up to the NUL that ends them.
    pub(crate) fn name(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (name, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.get(1..)?;
        Some(name)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::host_endian_bytes, reason = "tests")]
mod tests {
    use super::*;

    fn request(len: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(len.to_ne_bytes());
        bytes.extend(opcode::LOOKUP.to_ne_bytes());
        bytes.extend(77_u64.to_ne_bytes());
        bytes.extend(1_u64.to_ne_bytes());
        for field in [1000_u32, 1001, 4711, 0] {
            bytes.extend(field.to_ne_bytes());
        }
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_request_is_taken_apart() {
        let bytes = request(44, b"abc\0");
        let parsed = Request::parse(&bytes).unwrap();
        assert_eq!((parsed.opcode, parsed.unique, parsed.node), (1, 77, 1));
        assert_eq!((parsed.uid, parsed.pid), (1000, 4711));
        assert_eq!(parsed.fields().name(), Some(&b"abc"[..]));
    }

    #[test]
    fn what_is_too_short_is_no_request() {
        let bytes = request(44, b"abc\0");
        for len in 0..bytes.len() {
            assert!(Request::parse(bytes.get(..len).unwrap()).is_none(), "{len}");
        }
        for len in [0, 39, u32::MAX] {
            assert!(Request::parse(&request(len, b"")).is_none(), "{len}");
        }
        let mut fields = Fields(b"abc");
        assert_eq!(
            (fields.u32(), fields.u64(), fields.name()),
            (None, None, None)
        );
    }
}
