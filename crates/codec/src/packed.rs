//! Data held in memory in less room, any part of which is had again quickly.
//!
//! The data is cut into pieces that are compressed on their own, with LZ4: packing takes about as long as decoding a
//! block of zstd does, and getting a part back takes no longer than unpacking the pieces it lies in.

use ::lz4::block::{compress_bound, compress_to_buffer, decompress_to_buffer};

use crate::output::reserve_total;

/// Bytes of a piece. Shorter ones would save less, and longer ones take more time for the few bytes that are wanted.
const PIECE_LEN: usize = 32 << 10;

/// Data in less room.
#[derive(Debug)]
pub struct Packed {
    len: usize,
    /// Where each piece ends in `data`. One that takes as many bytes as it stands for is not compressed.
    ends: Vec<usize>,
    data: Vec<u8>,
}

impl Packed {
    /// Packs `data` into at most `bytes_max` bytes. `None` if it does not fit or there is no memory.
    #[must_use]
    pub fn new(data: &[u8], bytes_max: usize) -> Option<Self> {
        let mut packed = Self {
            len: data.len(),
            ends: Vec::new(),
            data: Vec::new(),
        };
        let pieces = data.len().div_ceil(PIECE_LEN);
        packed.ends.try_reserve_exact(pieces).ok()?;
        let data_max = bytes_max.checked_sub(pieces * size_of::<usize>())?;
        reserve_total(&mut packed.data, data_max).ok()?;
        let mut room = vec![0; compress_bound(PIECE_LEN).ok()?];
        for piece in data.chunks(PIECE_LEN) {
            let compressed = compress_to_buffer(piece, None, false, &mut room).ok();
            let compressed = compressed.filter(|len| *len < piece.len());
            let bytes = compressed.map_or(piece, |len| room.get(..len).unwrap_or_default());
            if bytes.len() > data_max - packed.data.len() {
                return None;
            }
            packed.data.extend_from_slice(bytes);
            packed.ends.push(packed.data.len());
        }
        packed.data.shrink_to_fit();
        Some(packed)
    }

    /// Returns how many bytes there are, unpacked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of memory in use.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.data.len() + self.ends.len() * size_of::<usize>()) as u64
    }

    /// Copies the bytes from `offset` on; false if there are not so many.
    #[must_use]
    pub fn copy(&self, offset: usize, buf: &mut [u8]) -> bool {
        let is_inside = offset
            .checked_add(buf.len())
            .is_some_and(|end| end <= self.len);
        is_inside && self.copy_pieces(offset, buf).is_some()
    }

    fn copy_pieces(&self, mut offset: usize, mut buf: &mut [u8]) -> Option<()> {
        while !buf.is_empty() {
            let (piece, skip) = (offset / PIECE_LEN, offset % PIECE_LEN);
            let piece_len = PIECE_LEN.min(self.len - piece * PIECE_LEN);
            let len = buf.len().min(piece_len - skip);
            let (wanted, rest) = buf.split_at_mut(len);
            self.unpack(piece, piece_len, skip, wanted)?;
            (offset, buf) = (offset + len, rest);
        }
        Some(())
    }

    /// Copies what is behind `skip` bytes of a piece.
    fn unpack(&self, piece: usize, len: usize, skip: usize, wanted: &mut [u8]) -> Option<()> {
        let start = match piece.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        let bytes = self.data.get(start..*self.ends.get(piece)?)?;
        if bytes.len() == len {
            wanted.copy_from_slice(bytes.get(skip..)?.get(..wanted.len())?);
        } else if wanted.len() == len {
            unpack_all(bytes, wanted)?;
        } else {
            let mut room = [0; PIECE_LEN];
            let room = room.get_mut(..len)?;
            unpack_all(bytes, room)?;
            wanted.copy_from_slice(room.get(skip..)?.get(..wanted.len())?);
        }
        Some(())
    }
}

fn unpack_all(bytes: &[u8], out: &mut [u8]) -> Option<()> {
    let len = i32::try_from(out.len()).ok()?;
    let found = decompress_to_buffer(bytes, Some(len), out).ok()?;
    (found == out.len()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text with a piece in the middle that does not shrink.
    fn data(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33).to_le_bytes()[0]
        };
        let noise = PIECE_LEN..3 * PIECE_LEN;
        (0..len)
            .map(|at| {
                if noise.contains(&at) {
                    random()
                } else {
                    b"to and fro "[at / 7 % 11]
                }
            })
            .collect()
    }

    #[test]
    fn any_part_comes_back() {
        for len in [
            1,
            100,
            PIECE_LEN - 1,
            PIECE_LEN,
            PIECE_LEN + 1,
            5 * PIECE_LEN + 77,
        ] {
            let data = data(len);
            let packed = Packed::new(&data, 2 * len + 100).expect("there is room");
            assert_eq!(packed.len(), len);
            for (offset, part) in [
                (0, len),
                (len / 2, len - len / 2),
                (len / 3, len / 2),
                (len - 1, 1),
                (len, 0),
            ] {
                let mut found = vec![0; part];
                assert!(packed.copy(offset, &mut found), "{len} {offset} {part}");
                assert_eq!(found, data[offset..offset + part], "{len} {offset} {part}");
            }
            for (offset, part) in [(0, len + 1), (len, 1), (usize::MAX, 2)] {
                assert!(
                    !packed.copy(offset, &mut vec![0; part]),
                    "{len} {offset} {part}"
                );
            }
        }
    }

    #[test]
    fn no_more_memory_than_allowed() {
        let data = data(10 * PIECE_LEN);
        let packed = Packed::new(&data, data.len()).expect("most of it shrinks");
        let bytes = usize::try_from(packed.memory_bytes()).expect("it fits");
        assert!(bytes < data.len() / 3, "{bytes}");
        assert!(Packed::new(&data, bytes).is_some());
        assert!(Packed::new(&data, bytes - 1).is_none());
        assert!(Packed::new(&data, 0).is_none());
        assert!(Packed::new(&[], 0).is_some_and(|packed| packed.is_empty()));
    }
}
