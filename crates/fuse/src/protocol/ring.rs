//! How requests and answers lie in memory that is shared with the kernel, when they come through io_uring.
//!
//! Each entry has a head of a fixed size and a payload. The head has room for the header of a request or an answer, for the
//! fixed part of a request's body, and for what io_uring itself needs to know; the rest of a request's body and all of
//! an answer's are the payload.
//! Source: the kernel's `include/uapi/linux/fuse.h`, `fuse_uring_req_header` and `fuse_uring_cmd_req`, and
//! `Documentation/filesystems/fuse/fuse-io-uring.rst`.

use super::{IN_HEADER_LEN, OUT_HEADER_LEN};

/// Bytes of a head.
pub(crate) const HEAD_LEN: usize = FRAME_AT + 32;

/// Where the fixed part of a request's body begins.
const FIXED_AT: usize = 128;

/// Where begins what is about the entry itself: flags, the number to commit with, the length of the payload.
const FRAME_AT: usize = 256;

/// Where the number to commit with is.
const COMMIT_AT: usize = FRAME_AT + 8;

/// Where the length of the payload is.
const PAYLOAD_LEN_AT: usize = FRAME_AT + 16;

/// What a command says beside its number: which request is answered, and in which queue.
#[expect(
    clippy::host_endian_bytes,
    reason = "kernel and server run on one machine, and the protocol is in its byte order"
)]
pub(crate) fn command(commit_id: u64, queue: u16) -> [u8; 80] {
    let mut bytes = [0; 80];
    let (front, _) = bytes.split_at_mut(18);
    let (_flags, rest) = front.split_at_mut(8);
    let (id, number) = rest.split_at_mut(8);
    id.copy_from_slice(&commit_id.to_ne_bytes());
    number.copy_from_slice(&queue.to_ne_bytes());
    bytes
}

/// Puts a request together in `buf`, as it would have been read from the device, and gives the number to commit with;
/// `None` if it is none or has no room there.
pub(crate) fn request_in(head: &[u8], payload: &[u8], buf: &mut [u8]) -> Option<(usize, u64)> {
    let len = usize::try_from(u32_at(head, 0)?).ok()?;
    let payload_len = payload_len_of(head)?;
    let fixed_len = len
        .checked_sub(IN_HEADER_LEN)?
        .checked_sub(payload_len)
        .filter(|len| *len <= FRAME_AT - FIXED_AT)?;
    let parts = [
        head.get(..IN_HEADER_LEN)?,
        head.get(FIXED_AT..FIXED_AT + fixed_len)?,
        payload.get(..payload_len)?,
    ];
    let mut rest = buf;
    for part in parts {
        let (target, behind) = rest.split_at_mut_checked(part.len())?;
        target.copy_from_slice(part);
        rest = behind;
    }
    Some((len, u64_at(head, COMMIT_AT)?))
}

/// The length of a request's payload.
fn payload_len_of(head: &[u8]) -> Option<usize> {
    usize::try_from(u32_at(head, PAYLOAD_LEN_AT)?).ok()
}

/// Puts the header of an answer and the length of its payload where the kernel looks for them.
#[expect(
    clippy::host_endian_bytes,
    reason = "kernel and server run on one machine, and the protocol is in its byte order"
)]
pub(crate) fn put_head(head: &mut [u8], header: [u8; OUT_HEADER_LEN], payload_len: usize) {
    let payload_len = u32::try_from(payload_len).unwrap_or(0);
    if let Some(target) = head.first_chunk_mut() {
        *target = header;
    }
    if let Some(target) = head.get_mut(PAYLOAD_LEN_AT..PAYLOAD_LEN_AT + 4) {
        target.copy_from_slice(&payload_len.to_ne_bytes());
    }
}

#[expect(
    clippy::host_endian_bytes,
    reason = "kernel and server run on one machine, and the protocol is in its byte order"
)]
fn u32_at(head: &[u8], at: usize) -> Option<u32> {
    let bytes = head.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[expect(
    clippy::host_endian_bytes,
    reason = "kernel and server run on one machine, and the protocol is in its byte order"
)]
fn u64_at(head: &[u8], at: usize) -> Option<u64> {
    let bytes = head.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::host_endian_bytes, reason = "tests")]
mod tests {
    use super::*;
    use crate::protocol::{Request, opcode};

    /// A head as the kernel makes it.
    fn head(len: u32, fixed: &[u8], payload_len: u32) -> Vec<u8> {
        let mut head = vec![0; HEAD_LEN];
        head[..4].copy_from_slice(&len.to_ne_bytes());
        head[4..8].copy_from_slice(&opcode::GETXATTR.to_ne_bytes());
        head[FIXED_AT..FIXED_AT + fixed.len()].copy_from_slice(fixed);
        head[COMMIT_AT..COMMIT_AT + 8].copy_from_slice(&77_u64.to_ne_bytes());
        head[PAYLOAD_LEN_AT..PAYLOAD_LEN_AT + 4].copy_from_slice(&payload_len.to_ne_bytes());
        head
    }

    #[test]
    fn a_request_is_put_together() {
        let head = head(40 + 8 + 4, &[1, 0, 0, 0, 2, 0, 0, 0], 4);
        let mut buf = [0; 100];
        let (len, commit_id) = request_in(&head, b"abc\0rest", &mut buf).unwrap();
        assert_eq!((len, commit_id), (52, 77));
        let request = Request::parse(&buf[..len]).unwrap();
        assert_eq!(request.opcode, opcode::GETXATTR);
        let mut fields = request.fields();
        assert_eq!(fields.u32(), Some(1));
        assert_eq!(fields.u32(), Some(2));
        assert_eq!(fields.name(), Some(&b"abc"[..]));
    }

    #[test]
    fn what_does_not_fit_is_no_request() {
        let payload = [0; 64];
        for (len, payload_len, room) in [
            (39, 0, 100),
            (43, 4, 100),
            (40 + 129, 0, 1000),
            (40 + 65, 65, 1000),
            (60, 20, 59),
        ] {
            let head = head(len, &[], payload_len);
            let found = request_in(&head, &payload, &mut vec![0; room]);
            assert_eq!(found, None, "{len} {payload_len} {room}");
        }
        assert_eq!(request_in(&[0; 100], &payload, &mut [0; 100]), None);
    }

    #[test]
    fn an_answer_and_a_command_lie_where_the_kernel_looks() {
        let mut head = vec![9; HEAD_LEN];
        put_head(&mut head, [1; OUT_HEADER_LEN], 513);
        assert_eq!(&head[..17], [&[1; 16][..], &[9]].concat());
        assert_eq!(payload_len_of(&head), Some(513));
        let bytes = command(0x0102, 3);
        assert_eq!(bytes[8..16], 0x0102_u64.to_ne_bytes());
        assert_eq!(bytes[16..18], 3_u16.to_ne_bytes());
        assert!(bytes[18..].iter().all(|byte| *byte == 0));
    }
}
