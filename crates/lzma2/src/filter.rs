//! What is done to data before they are compressed.
//!
//! Filters for machine code turn relative addresses of calls and branches into absolute ones, so that calls of one function
//! are alike wherever they stand. The Delta filter turns values that change little into small numbers.
//! Each is the encoder of the filter that ".xz File Format" 1.2.1 numbers, for data that start at address 0.

use std::num::NonZeroU8;

/// A kind of data: of machine code, but for the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Values that come again each so many bytes, and change little: pixels, samples, measurements.
    Delta(NonZeroU8),
    /// 32 and 64 bit x86.
    X86,
    /// Big endian PowerPC.
    PowerPc,
    /// 32 bit ARM, little endian.
    Arm,
    /// Thumb code of ARM, little endian.
    ArmThumb,
    /// SPARC.
    Sparc,
    /// 64 bit ARM. Decoders know it since release 5.4 of XZ Utils, of December 2022.
    Arm64,
}

impl Filter {
    /// The number that the format has for the filter.
    #[must_use]
    pub fn id(self) -> u8 {
        match self {
            Self::Delta(_) => 3,
            Self::X86 => 4,
            Self::PowerPc => 5,
            Self::Arm => 7,
            Self::ArmThumb => 8,
            Self::Sparc => 9,
            Self::Arm64 => 10,
        }
    }

    /// What a decoder has to know besides, if anything.
    pub(crate) fn property(self) -> Option<u8> {
        match self {
            Self::Delta(distance) => Some(distance.get() - 1),
            _ => None,
        }
    }

    /// Replaces addresses in machine code, or values by how much they change.
    pub fn apply(self, data: &mut [u8]) {
        match self {
            Self::Delta(distance) => delta(distance, data),
            Self::X86 => x86(data),
            Self::PowerPc => power_pc(data),
            Self::Arm => arm(data),
            Self::ArmThumb => arm_thumb(data),
            Self::Sparc => sparc(data),
            Self::Arm64 => arm64(data),
        }
    }
}

fn delta(distance: NonZeroU8, data: &mut [u8]) {
    /// Bytes that stay in the fastest cache.
    const PIECE_LEN: usize = 4096;
    let distance = usize::from(distance.get());
    let mut before = [0; PIECE_LEN + u8::MAX as usize];
    for piece in data.chunks_mut(PIECE_LEN) {
        let len = piece.len();
        before[distance..distance + len].copy_from_slice(piece);
        for (byte, earlier) in piece.iter_mut().zip(&before) {
            *byte = byte.wrapping_sub(*earlier);
        }
        before.copy_within(len..len + distance, 0);
    }
}

/// The high byte of an address that looks like one: within 16 MiB of here.
fn is_high_byte(byte: u8) -> bool {
    byte == 0 || byte == 0xFF
}

/// Calls and jumps (`E8`, `E9`) with a target within 16 MiB.
///
/// What follows one opcode closely may only look like another: `mask` remembers which of the last bytes were opcodes,
/// and the rules below, which are the format's, leave out what cannot be told apart when decoding.
fn x86(code: &mut [u8]) {
    const MASK_ALLOWED: [bool; 8] = [true, true, true, false, true, false, false, false];
    const MASK_SHIFT: [u32; 8] = [0, 1, 2, 2, 3, 3, 3, 3];
    const LEN: usize = 5;
    let mut mask = 0_u32;
    // Five bytes before the start, as no opcode was seen.
    let mut last = usize::MAX - LEN + 1;
    let mut at = 0;
    while at + LEN <= code.len() {
        if code[at] & 0xFE != 0xE8 {
            at += 1;
            continue;
        }
        let since = at.wrapping_sub(last);
        last = at;
        if since > LEN {
            mask = 0;
        } else {
            for _ in 0..since {
                mask = (mask & 0x77) << 1;
            }
        }
        let high = code[at + 4];
        if is_high_byte(high) && MASK_ALLOWED[(mask >> 1 & 7) as usize] && mask >> 1 < 0x10 {
            let bytes = [code[at + 1], code[at + 2], code[at + 3], high];
            let mut source = u32::from_le_bytes(bytes);
            let here = (at + LEN) as u32;
            let mut target;
            loop {
                target = source.wrapping_add(here);
                if mask == 0 {
                    break;
                }
                let shift = MASK_SHIFT[(mask >> 1 & 7) as usize] * 8;
                let byte = (target >> (24 - shift)) as u8;
                if !is_high_byte(byte) {
                    break;
                }
                source = target ^ ((1 << (32 - shift)) - 1);
            }
            // Bit 24 stands for all above it.
            let sign = if target >> 24 & 1 == 0 {
                0
            } else {
                0xFF00_0000
            };
            let target = target & 0x01FF_FFFF | sign;
            code[at + 1..at + LEN].copy_from_slice(&target.to_le_bytes());
            at += LEN;
            mask = 0;
        } else {
            at += 1;
            mask |= 1;
            if is_high_byte(high) {
                mask |= 0x10;
            }
        }
    }
}

fn power_pc(code: &mut [u8]) {
    each_word(code, |word, here| {
        // `bl` with a relative target.
        (word & 0xFC00_0003 == 0x4800_0001)
            .then(|| 0x4800_0001 | (word & 0x03FF_FFFC).wrapping_add(here) & 0x03FF_FFFC)
    });
}

fn sparc(code: &mut [u8]) {
    each_word(code, |word, here| {
        // `call` with a target within 22 bits.
        if !matches!(word >> 22, 0x100 | 0x1FF) {
            return None;
        }
        let target = (word << 2).wrapping_add(here) >> 2;
        let sign = 0_u32.wrapping_sub(target >> 22 & 1) << 22 & 0x3FFF_FFFF;
        Some(0x4000_0000 | sign | target & 0x003F_FFFF)
    });
}

/// Replaces big endian words by what `change` makes of them and of their address.
fn each_word(code: &mut [u8], change: impl Fn(u32, u32) -> Option<u32>) {
    let (words, _) = code.as_chunks_mut::<4>();
    for (index, bytes) in (0_u32..).zip(words) {
        let word = u32::from_le_bytes(*bytes).swap_bytes();
        if let Some(word) = change(word, index.wrapping_mul(4)) {
            *bytes = word.swap_bytes().to_le_bytes();
        }
    }
}

fn arm(code: &mut [u8]) {
    let (words, _) = code.as_chunks_mut::<4>();
    for (index, bytes) in (0_u32..).zip(words) {
        // `bl`, always.
        if let [a, b, c, 0xEB] = *bytes {
            let distance = u32::from_le_bytes([a, b, c, 0]) << 2;
            let here = index.wrapping_mul(4).wrapping_add(8);
            let [a, b, c, _] = (distance.wrapping_add(here) >> 2).to_le_bytes();
            *bytes = [a, b, c, 0xEB];
        }
    }
}

fn arm_thumb(code: &mut [u8]) {
    let mut at = 0;
    while let Some([a, b, c, d]) = code.get(at..at + 4) {
        // `bl`, in two halves with 11 bits each.
        if b & 0xF8 != 0xF0 || d & 0xF8 != 0xF8 {
            at += 2;
            continue;
        }
        let part = |low: u8, high: u8| u32::from(high & 7) << 8 | u32::from(low);
        let distance = (part(*a, *b) << 11 | part(*c, *d)) << 1;
        let target = distance.wrapping_add(at as u32 + 4) >> 1;
        let bytes = [
            (target >> 11) as u8,
            0xF0 | (target >> 19 & 7) as u8,
            target as u8,
            0xF8 | (target >> 8 & 7) as u8,
        ];
        code[at..at + 4].copy_from_slice(&bytes);
        at += 4;
    }
}

fn arm64(code: &mut [u8]) {
    let (words, _) = code.as_chunks_mut::<4>();
    for (index, bytes) in (0_u32..).zip(words) {
        let word = u32::from_le_bytes(*bytes);
        let here = index.wrapping_mul(4);
        let word = if word >> 26 == 0x25 {
            // `bl`, with a distance in instructions.
            0x9400_0000 | word.wrapping_add(here >> 2) & 0x03FF_FFFF
        } else if word & 0x9F00_0000 == 0x9000_0000 {
            // `adrp`, with a distance in pages of 4 KiB of which the lowest two bits stand apart; within 512 MiB only.
            let distance = word >> 29 & 3 | word >> 3 & 0x001F_FFFC;
            if distance.wrapping_add(1 << 17) & 0x001C_0000 != 0 {
                continue;
            }
            let page = distance.wrapping_add(here >> 12);
            let sign = 0_u32.wrapping_sub(page & 1 << 17) & 0x00E0_0000;
            word & 0x9000_001F | (page & 3) << 29 | (page & 0x0003_FFFC) << 3 | sign
        } else {
            continue;
        };
        *bytes = word.to_le_bytes();
    }
}
