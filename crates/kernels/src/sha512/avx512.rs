//! With the vectors of AVX-512: a word of each message in every vector.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_ror_epi64, _mm512_set1_epi64, _mm512_set4_epi32,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_shuffle_i64x2, _mm512_srli_epi64,
    _mm512_ternarylogic_epi64, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

use super::{Block, LANES, ROUNDS, State};

/// The truth tables of three bits: an odd number of ones, the choice by the first, the majority.
const PARITY: i32 = 0x96;
const CHOICE: i32 = 0xca;
const MAJORITY: i32 = 0xe8;

/// Rounds with the same words, and words of a block.
const WORDS: usize = 16;

/// As [`super::compress`].
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn compress(states: &mut [State; LANES], messages: [&[Block]; LANES]) -> usize {
    let count = messages.map(<[Block]>::len).into_iter().min().unwrap_or(0);
    let messages = messages.map(|blocks| &blocks[..count]);
    let mut state = transpose(states.map(vector));
    for at in 0..count {
        let blocks = messages.map(|blocks| &blocks[at]);
        let result = rounds(state, words_of(blocks));
        for (to, from) in state.iter_mut().zip(result) {
            *to = _mm512_add_epi64(*to, from);
        }
    }
    *states = transpose(state).map(words);
    count
}

/// All rounds of a block of each message.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn rounds(state: [__m512i; 8], mut words: [__m512i; WORDS]) -> [__m512i; 8] {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    // What each step calls a is b in the next one.
    macro_rules! eight {
        ($($at:literal: $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident,)*) => {
            |keys: &[u64; 8], words: &[__m512i]| {
                $(
                    let sum = _mm512_add_epi64($h, _mm512_add_epi64(splat(keys[$at]), words[$at]));
                    let sum = _mm512_add_epi64(sum, rotations::<14, 18, 41>($e));
                    let sum = _mm512_add_epi64(sum, _mm512_ternarylogic_epi64::<CHOICE>($e, $f, $g));
                    $d = _mm512_add_epi64($d, sum);
                    let majority = _mm512_ternarylogic_epi64::<MAJORITY>($a, $b, $c);
                    $h = _mm512_add_epi64(sum, _mm512_add_epi64(rotations::<28, 34, 39>($a), majority));
                )*
            }
        };
    }
    let mut eight = eight! {
        0: a b c d e f g h,
        1: h a b c d e f g,
        2: g h a b c d e f,
        3: f g h a b c d e,
        4: e f g h a b c d,
        5: d e f g h a b c,
        6: c d e f g h a b,
        7: b c d e f g h a,
    };
    let (sixteens, _) = ROUNDS.as_chunks::<WORDS>();
    for (number, keys) in sixteens.iter().enumerate() {
        if number > 0 {
            expand(&mut words);
        }
        for (keys, words) in keys.as_chunks().0.iter().zip(words.chunks_exact(8)) {
            eight(keys, words);
        }
    }
    [a, b, c, d, e, f, g, h]
}

/// Makes the words of the next sixteen rounds.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn expand(words: &mut [__m512i; WORDS]) {
    for at in 0..WORDS {
        let (near, far) = (words[(at + 1) % WORDS], words[(at + 14) % WORDS]);
        let near = _mm512_ternarylogic_epi64::<PARITY>(
            _mm512_ror_epi64::<1>(near),
            _mm512_ror_epi64::<8>(near),
            _mm512_srli_epi64::<7>(near),
        );
        let far = _mm512_ternarylogic_epi64::<PARITY>(
            _mm512_ror_epi64::<19>(far),
            _mm512_ror_epi64::<61>(far),
            _mm512_srli_epi64::<6>(far),
        );
        let sum = _mm512_add_epi64(words[at], words[(at + 9) % WORDS]);
        words[at] = _mm512_add_epi64(sum, _mm512_add_epi64(near, far));
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn rotations<const A: i32, const B: i32, const C: i32>(value: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<PARITY>(
        _mm512_ror_epi64::<A>(value),
        _mm512_ror_epi64::<B>(value),
        _mm512_ror_epi64::<C>(value),
    )
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn splat(value: u64) -> __m512i {
    _mm512_set1_epi64(value.cast_signed())
}

/// The words of a block of each message, which has them with the high byte first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn words_of(blocks: [&Block; LANES]) -> [__m512i; WORDS] {
    let swap = _mm512_set4_epi32(0x0809_0a0b, 0x0c0d_0e0f, 0x0001_0203, 0x0405_0607);
    let half = |number: usize| {
        transpose(blocks.map(|block| {
            let (words, _) = block.as_chunks::<8>();
            let half = &words[number * 8..][..8];
            let half = std::array::from_fn(|at| u64::from_le_bytes(half[at]));
            _mm512_shuffle_epi8(vector(half), swap)
        }))
    };
    let halves = [half(0), half(1)];
    let mut words = [_mm512_setzero_si512(); WORDS];
    for (to, from) in words.iter_mut().zip(halves.as_flattened()) {
        *to = *from;
    }
    words
}

/// Makes rows columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn transpose(rows: [__m512i; 8]) -> [__m512i; 8] {
    let [a, b, c, d, e, f, g, h] = rows;
    let pairs = |a, b| [_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)];
    let [pair_0, pair_1, pair_2, pair_3] = [pairs(a, b), pairs(c, d), pairs(e, f), pairs(g, h)];
    // Every second pair of words of either.
    let even = |a, b| _mm512_shuffle_i64x2::<0x88>(a, b);
    let odd = |a, b| _mm512_shuffle_i64x2::<0xdd>(a, b);
    let fours = |a: [_; 2], b: [_; 2]| {
        [
            even(a[0], b[0]),
            even(a[1], b[1]),
            odd(a[0], b[0]),
            odd(a[1], b[1]),
        ]
    };
    let (low, high) = (fours(pair_0, pair_1), fours(pair_2, pair_3));
    [
        even(low[0], high[0]),
        even(low[1], high[1]),
        even(low[2], high[2]),
        even(low[3], high[3]),
        odd(low[0], high[0]),
        odd(low[1], high[1]),
        odd(low[2], high[2]),
        odd(low[3], high[3]),
    ]
}

#[inline]
#[expect(unsafe_code, reason = "no safe function makes a vector of an array")]
fn vector(words: [u64; 8]) -> __m512i {
    // SAFETY: both have 64 bytes, all values of which are allowed.
    unsafe { std::mem::transmute(words) }
}

#[inline]
#[expect(unsafe_code, reason = "no safe function makes an array of a vector")]
fn words(vector: __m512i) -> [u64; 8] {
    // SAFETY: both have 64 bytes, all values of which are allowed.
    unsafe { std::mem::transmute(vector) }
}
