//! How an answer looks.

use std::io::IoSlice;

use durin_reader::{BlockBytes, Loan, ReadTarget};
use rustix::io::Errno;

use super::shared::Shared;
use super::{InitFlags, OUT_HEADER_LEN, OpenReply, VERSION};

/// How long the kernel may believe an answer: for good. (It counts in jiffies and clamps what is larger.)
const FOREVER_SECONDS: u64 = i32::MAX as u64;

/// Bytes of an entry with attributes.
const ENTRY_LEN: usize = 128;

/// Bytes of a line of a directory before its name.
const LINE_LEN: usize = 24;

/// Bytes that are sent from where they are. Shorter ones are copied sooner.
const LOAN_LEN_MIN: usize = 16 << 10;

/// Pieces of an answer that lie elsewhere: with those between them half as many as one call takes.
const LOANS_MAX: usize = 256;

/// An answer in the making, in a buffer that serves for many.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    buf: Buffer,
    /// Bytes of the answer in `buf`.
    len: usize,
    /// What lies elsewhere, each with the place in `buf` that it goes before.
    loans: Vec<(usize, BlockBytes)>,
    /// Takes what has no room in a buffer that does not grow; such an answer is not sent.
    too_long: Option<Vec<u8>>,
}

/// Where an answer lies.
#[derive(Debug)]
enum Buffer {
    /// Never gets shorter; everything in it has been written at some time.
    Growing(Vec<u8>),
    /// Where the kernel takes it from.
    Shared(Shared),
}

impl Default for Buffer {
    fn default() -> Self {
        Self::Growing(Vec::new())
    }
}

/// How long the kernel may believe attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Validity {
    #[default]
    Forever,
    /// Not at all: the next one who asks may get another.
    Once,
}

impl Validity {
    fn seconds(self) -> u64 {
        match self {
            Self::Forever => FOREVER_SECONDS,
            Self::Once => 0,
        }
    }
}

/// Attributes as the protocol has them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) validity: Validity,
    pub(crate) node: u64,
    pub(crate) size: u64,
    /// Units of 512 bytes.
    pub(crate) blocks: u64,
    /// Access, modification and change time: seconds and nanoseconds.
    pub(crate) times: [(i64, u32); 3],
    pub(crate) mode: u32,
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    pub(crate) block_size: u32,
}

/// A line of a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) node: u64,
    pub(crate) next_offset: u64,
    /// Bits 12 to 15 of the mode.
    pub(crate) kind: u32,
    pub(crate) name: &'a [u8],
}

/// The answer to the first request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Init {
    pub(crate) flags: InitFlags,
    pub(crate) read_ahead_max: u32,
    pub(crate) background_max: u16,
    pub(crate) write_max: u32,
    pub(crate) pages_max: u16,
}

/// What `statvfs` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatFs {
    pub(crate) blocks: u64,
    pub(crate) files: u64,
    pub(crate) name_max: u32,
}

#[expect(
    clippy::host_endian_bytes,
    reason = "kernel and server run on one machine, and the protocol is in its byte order"
)]
impl Reply {
    /// One that lies where the kernel takes it from.
    pub(crate) fn in_shared(shared: Shared) -> Self {
        Self {
            buf: Buffer::Shared(shared),
            ..Self::default()
        }
    }

    /// The memory that it shares with the kernel, if it does.
    pub(crate) fn shared(&mut self) -> Option<&mut Shared> {
        match &mut self.buf {
            Buffer::Growing(_) => None,
            Buffer::Shared(shared) => Some(shared),
        }
    }

    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        self.len = OUT_HEADER_LEN;
        self.too_long = None;
        self.give_back();
        self.reserve(0);
    }

    /// Lets go of what lies elsewhere: the answer is sent.
    pub(crate) fn give_back(&mut self) {
        self.loans.clear();
    }

    /// Completes the answer to request `unique`, and gives its length.
    pub(crate) fn finish(&mut self, unique: u64, result: Result<(), Errno>) -> usize {
        let result = match &self.too_long {
            Some(_) => Err(Errno::IO),
            None => result,
        };
        let error = match result {
            Ok(()) => 0,
            Err(errno) => {
                self.len = OUT_HEADER_LEN;
                self.give_back();
                -errno.raw_os_error()
            }
        };
        let lent: usize = self.loans.iter().map(|(_, bytes)| bytes.len()).sum();
        let len = self.len + lent;
        self.head(len, error, unique);
        len
    }

    /// The answer, where nothing of it lies elsewhere.
    pub(crate) fn in_one_piece(&self) -> Option<&[u8]> {
        self.loans.is_empty().then(|| self.bytes())
    }

    /// The answer piece by piece.
    pub(crate) fn pieces(&self) -> Vec<IoSlice<'_>> {
        let mut pieces = Vec::with_capacity(2 * self.loans.len() + 1);
        let mut rest = self.bytes();
        let mut start = 0;
        for (at, bytes) in &self.loans {
            let (before, after) = rest.split_at(at.saturating_sub(start).min(rest.len()));
            pieces.extend((!before.is_empty()).then(|| IoSlice::new(before)));
            pieces.push(IoSlice::new(bytes));
            (rest, start) = (after, *at);
        }
        pieces.extend((!rest.is_empty()).then(|| IoSlice::new(rest)));
        pieces
    }

    /// Everything behind the header of an answer that lies in one piece.
    pub(crate) fn body(&self) -> &[u8] {
        self.bytes().get(OUT_HEADER_LEN..).unwrap_or_default()
    }

    pub(crate) fn data(&mut self, bytes: &[u8]) {
        self.space(bytes.len()).copy_from_slice(bytes);
    }

    /// Room for `len` bytes, with any contents.
    pub(crate) fn space(&mut self, len: usize) -> &mut [u8] {
        if !self.reserve(len) {
            let outside = self.too_long.get_or_insert_default();
            outside.resize(len, 0);
            return outside;
        }
        let start = self.len;
        self.len += len;
        let buf = self.buf_mut();
        buf.get_mut(start..start + len).unwrap_or_default()
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.data(&value.to_ne_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.data(&value.to_ne_bytes());
    }

    pub(crate) fn init(&mut self, init: &Init) {
        let [low, high] = init.flags.words();
        for value in [VERSION.0, VERSION.1, init.read_ahead_max, low] {
            self.u32(value);
        }
        self.data(&init.background_max.to_ne_bytes());
        // From here on the kernel tells others that the file system is busy: at three quarters, as libfuse has it.
        self.data(&(init.background_max / 4 * 3).to_ne_bytes());
        self.u32(init.write_max);
        // Times are in nanoseconds.
        self.u32(1);
        self.data(&init.pages_max.to_ne_bytes());
        self.data(&0_u16.to_ne_bytes());
        self.u32(high);
        self.space(28).fill(0);
    }

    pub(crate) fn entry(&mut self, attr: &Attributes) {
        self.u64(attr.node);
        self.u64(0);
        // Names stay in any case: the kernel would drop one that somebody may not look up, with all that is mounted there.
        self.u64(FOREVER_SECONDS);
        self.u64(attr.validity.seconds());
        self.u64(0);
        self.attr(attr);
    }

    /// "No such name", which the kernel remembers; an error it would ask for again.
    pub(crate) fn absent(&mut self) {
        self.entry(&Attributes::default());
    }

    pub(crate) fn attributes(&mut self, attr: &Attributes) {
        self.u64(attr.validity.seconds());
        self.u64(0);
        self.attr(attr);
    }

    pub(crate) fn opened(&mut self, how: OpenReply) {
        self.u64(0);
        self.u32(how.bits());
        self.u32(0);
    }

    pub(crate) fn stat_fs(&mut self, stat: &StatFs) {
        for value in [stat.blocks, 0, 0, stat.files, 0] {
            self.u64(value);
        }
        for value in [1, stat.name_max, 1, 0, 0, 0, 0, 0, 0, 0] {
            self.u32(value);
        }
    }

    /// Adds a line of a directory; false if it would make the body longer than `len_max`.
    pub(crate) fn line(&mut self, line: &Entry<'_>, len_max: usize) -> bool {
        if self.body().len() + line_len(line.name) > len_max {
            return false;
        }
        self.put_line(line);
        true
    }

    /// As [`Self::line`], for a reader who also takes attributes. Without them the kernel asks when somebody wants them.
    pub(crate) fn line_plus(
        &mut self,
        line: &Entry<'_>,
        attr: Option<&Attributes>,
        len_max: usize,
    ) -> bool {
        if self.body().len() + ENTRY_LEN + line_len(line.name) > len_max {
            return false;
        }
        match attr {
            Some(attr) => self.entry(attr),
            // Node 0 means here that nothing is said about the node.
            None => self.space(ENTRY_LEN).fill(0),
        }
        self.put_line(line);
        true
    }

    fn put_line(&mut self, line: &Entry<'_>) {
        self.u64(line.node);
        self.u64(line.next_offset);
        self.u32(u32::try_from(line.name.len()).unwrap_or(0));
        self.u32(line.kind);
        self.data(line.name);
        self.space(line.name.len().next_multiple_of(8) - line.name.len())
            .fill(0);
    }

    fn attr(&mut self, attr: &Attributes) {
        for value in [attr.node, attr.size, attr.blocks] {
            self.u64(value);
        }
        for (seconds, _) in attr.times {
            self.u64(seconds.cast_unsigned());
        }
        for (_, nanoseconds) in attr.times {
            self.u32(nanoseconds);
        }
        let Attributes {
            mode,
            nlink,
            uid,
            gid,
            ..
        } = *attr;
        for value in [mode, nlink, uid, gid, attr.rdev, attr.block_size, 0] {
            self.u32(value);
        }
    }

    fn head(&mut self, len: usize, error: i32, unique: u64) {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        if let Some(header) = self.buf_mut().first_chunk_mut::<OUT_HEADER_LEN>() {
            let (start, end) = header.split_at_mut(8);
            let (first, second) = start.split_at_mut(4);
            first.copy_from_slice(&len.to_ne_bytes());
            second.copy_from_slice(&error.to_ne_bytes());
            end.copy_from_slice(&unique.to_ne_bytes());
        }
    }

    fn bytes(&self) -> &[u8] {
        let buf = match &self.buf {
            Buffer::Growing(buf) => buf,
            Buffer::Shared(shared) => shared.answer(),
        };
        buf.get(..self.len).unwrap_or_default()
    }

    fn buf_mut(&mut self) -> &mut [u8] {
        match &mut self.buf {
            Buffer::Growing(buf) => buf,
            Buffer::Shared(shared) => shared.answer_mut(),
        }
    }

    /// Makes room for `len` more bytes; false if that cannot be.
    fn reserve(&mut self, len: usize) -> bool {
        let needed = self.len + len;
        match &mut self.buf {
            Buffer::Shared(shared) => needed <= shared.answer().len(),
            Buffer::Growing(buf) => {
                if buf.len() < needed {
                    // Pages, so that small answers do not grow it again and again.
                    buf.resize(needed.next_multiple_of(4096), 0);
                }
                true
            }
        }
    }
}

impl ReadTarget for Reply {
    fn room(&mut self, len: usize) -> &mut [u8] {
        self.space(len)
    }

    fn lend(&mut self, loan: &Loan<'_>) -> bool {
        let is_taken = matches!(self.buf, Buffer::Growing(_))
            && loan.len() >= LOAN_LEN_MIN
            && self.loans.len() < LOANS_MAX;
        if is_taken {
            self.loans.push((self.len, loan.take()));
        }
        is_taken
    }
}

fn line_len(name: &[u8]) -> usize {
    LINE_LEN + name.len().next_multiple_of(8)
}

#[cfg(test)]
#[expect(clippy::host_endian_bytes, clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// An answer as the kernel gets it.
    fn finished(reply: &mut Reply, unique: u64, result: Result<(), Errno>) -> Vec<u8> {
        let len = reply.finish(unique, result);
        let pieces = reply.pieces();
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
        assert_eq!(bytes.len(), len);
        assert!(reply.in_one_piece().is_none_or(|whole| whole == bytes));
        bytes
    }

    fn len_of(fill: impl FnOnce(&mut Reply)) -> usize {
        let mut reply = Reply::default();
        reply.clear();
        fill(&mut reply);
        reply.body().len()
    }

    /// The sizes of the structures in fuse.h.
    #[test]
    fn structures_have_their_sizes() {
        let attr = Attributes::default();
        let init = Init {
            flags: InitFlags::default(),
            read_ahead_max: 0,
            background_max: 0,
            write_max: 0,
            pages_max: 0,
        };
        let stat = StatFs {
            blocks: 0,
            files: 0,
            name_max: 0,
        };
        assert_eq!(len_of(|reply| reply.entry(&attr)), 128);
        assert_eq!(len_of(|reply| reply.attributes(&attr)), 104);
        assert_eq!(len_of(|reply| reply.init(&init)), 64);
        assert_eq!(len_of(|reply| reply.opened(OpenReply::Direct)), 16);
        assert_eq!(len_of(|reply| reply.stat_fs(&stat)), 80);
    }

    #[test]
    fn lines_are_aligned_and_end_where_there_is_no_room() {
        let line = |name| Entry {
            node: 5,
            next_offset: 3,
            kind: 8,
            name,
        };
        let mut reply = Reply::default();
        reply.clear();
        assert!(reply.line(&line(b"123456789"), 40));
        assert_eq!(reply.body().len(), 40);
        assert!(!reply.line(&line(b"a"), 71));
        assert!(!reply.line_plus(&line(b"a"), None, 199));
        assert!(reply.line_plus(&line(b"a"), None, 200));
        assert_eq!(reply.body().len(), 200);
    }

    #[test]
    fn an_error_has_no_body() {
        let mut reply = Reply::default();
        reply.clear();
        reply.data(b"something");
        let bytes = finished(&mut reply, 7, Err(Errno::IO));
        let mut expected = 16_u32.to_ne_bytes().to_vec();
        expected.extend((-5_i32).to_ne_bytes());
        expected.extend(7_u64.to_ne_bytes());
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_is_lent_is_sent_where_it_belongs() {
        let mut reply = Reply::default();
        reply.clear();
        let lend = |reply: &mut Reply, byte, len| {
            let bytes = BlockBytes::from(vec![byte; len]);
            reply.loans.push((reply.len, bytes));
        };
        lend(&mut reply, 1, 3);
        lend(&mut reply, 2, 2);
        reply.data(b"ab");
        lend(&mut reply, 3, 1);
        reply.data(b"c");
        assert!(reply.in_one_piece().is_none());
        let bytes = finished(&mut reply, 9, Ok(()));
        assert_eq!(bytes.first_chunk(), Some(&25_u32.to_ne_bytes()));
        assert_eq!(
            bytes.get(OUT_HEADER_LEN..),
            Some(&[1, 1, 1, 2, 2, b'a', b'b', 3, b'c'][..])
        );
        assert_eq!(finished(&mut reply, 9, Err(Errno::IO)).len(), 16);
        lend(&mut reply, 4, 1);
        reply.clear();
        assert_eq!(finished(&mut reply, 9, Ok(())).len(), 16);
    }

    #[test]
    fn what_has_no_room_in_shared_memory_is_an_error() {
        let mut reply = Reply::in_shared(Shared::new(4096).unwrap());
        reply.clear();
        reply.space(4096).fill(1);
        assert_eq!(reply.finish(1, Ok(())), 16 + 4096);
        reply.clear();
        reply.data(&[2; 4000]);
        assert_eq!(reply.space(97).len(), 97);
        assert_eq!(
            finished(&mut reply, 1, Ok(())).get(4..8),
            Some(&(-5_i32).to_ne_bytes()[..])
        );
        reply.clear();
        reply.data(b"ab");
        assert_eq!(finished(&mut reply, 2, Ok(())).get(16..), Some(&b"ab"[..]));
    }

    #[test]
    fn a_buffer_serves_again() {
        let mut reply = Reply::default();
        reply.clear();
        reply.space(10_000).fill(1);
        assert_eq!(reply.finish(1, Ok(())), 10_016);
        reply.clear();
        reply.data(b"ab");
        assert_eq!(finished(&mut reply, 2, Ok(())).get(16..), Some(&b"ab"[..]));
    }
}
