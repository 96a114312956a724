//! Data of several kinds, the same on every run, and the specifications that all tests go through.

use durin_codec::Spec;
use durin_format::section::CompressionType;

/// A small generator, good enough to look random to a compressor.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

pub(crate) fn random(len: usize) -> Vec<u8> {
    let mut random = Random::new(len as u64 + 1);
    (0..len).map(|_| random.next() as u8).collect()
}

/// Words of a small vocabulary with a rare typing error.
pub(crate) fn text(len: usize) -> Vec<u8> {
    const WORDS: [&str; 12] = [
        "block ",
        "chunk ",
        "inode ",
        "the ",
        "of ",
        "directory ",
        "entry\n",
        "is ",
        "stored ",
        "as ",
        "offset ",
        "a ",
    ];
    let mut random = Random::new(7);
    let mut out = Vec::with_capacity(len + 16);
    while out.len() < len {
        out.extend_from_slice(WORDS[random.below(12) as usize].as_bytes());
        if random.below(50) == 0 {
            out.push(random.next() as u8);
        }
    }
    out.truncate(len);
    out
}

/// Little-endian stereo sound of 16 bits.
pub(crate) fn sound(len: usize) -> Vec<u8> {
    let mut random = Random::new(3);
    let mut level = 0_i32;
    let mut out = Vec::with_capacity(len + 4);
    let mut step = 0;
    while out.len() < len {
        level += step;
        step += (random.below(41) as i32 - 20) - level / 256 - step / 16;
        let left = (level + random.below(9) as i32).clamp(-32768, 32767) as i16;
        let right = (level * 3 / 4 + random.below(9) as i32).clamp(-32768, 32767) as i16;
        out.extend(left.to_le_bytes());
        out.extend(right.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// Little x86 code: calls of a few functions from many places.
pub(crate) fn code(len: usize) -> Vec<u8> {
    let mut random = Random::new(11);
    let mut out = Vec::with_capacity(len + 16);
    while out.len() < len {
        let target = random.below(16) as usize * 0x1000;
        let next = out.len() + 5;
        out.push(0xE8);
        out.extend((target as u32).wrapping_sub(next as u32).to_le_bytes());
        out.extend([0x48, 0x89, 0xC7][..random.below(4) as usize % 4].iter());
    }
    out.truncate(len);
    out
}

pub(crate) const PCM: &str = r#"{"bits_per_sample":16,"bytes_per_sample":2,"endianness":"little","number_of_channels":2,"padding":"msb","signedness":"signed"}"#;
pub(crate) const IMAGE: &str =
    r#"{"bytes_per_sample":2,"component_count":2,"endianness":"little","unused_lsb_count":0}"#;

/// Gives the bytes of a payload as they are asked for, once.
pub(crate) fn handing_out(payload: &[u8]) -> impl FnMut(&mut [u8]) -> durin_format::Result<()> {
    let mut rest = payload;
    move |buf| {
        let (here, behind) = rest.split_at(buf.len());
        buf.copy_from_slice(here);
        rest = behind;
        Ok(())
    }
}

/// Specifications of every algorithm with, where one needs them, the metadata that suit any data of whole samples.
pub(crate) const SPECS: &[(&str, Option<&str>)] = &[
    ("null", None),
    ("lz4", None),
    ("lz4hc", None),
    ("lz4hc:level=0", None),
    ("lz4hc:level=12", None),
    ("zstd:level=-7", None),
    ("zstd:level=0", None),
    ("zstd:level=3", None),
    ("zstd:level=19:long", None),
    ("zstd", None),
    (
        "zstd:level=5:wlog=15:hlog=12:clog=12:slog=3:mml=4:tlen=32:strat=7",
        None,
    ),
    ("zstd:level=1:long:lhlog=12:lmml=32:lblog=2:lhrlog=4", None),
    ("lzma:level=0", None),
    ("lzma", None),
    (
        "lzma:level=6:extreme:dict_size=14:mode=normal:mf=bt2:nice=10:depth=5",
        None,
    ),
    ("lzma:level=3:mode=fast:mf=hc4:nice=0:depth=0", None),
    ("lzma:level=2:mf=hc3:nice=1", None),
    ("lzma:level=5:binary=x86", None),
    ("lzma:level=1:binary=powerpc", None),
    ("lzma:level=1:binary=ia64", None),
    ("lzma:level=1:binary=arm", None),
    ("lzma:level=1:binary=armthumb", None),
    ("lzma:level=1:binary=arm64", None),
    ("lzma:level=1:binary=sparc", None),
    ("lzma:level=1:delta=3", None),
    ("lzma:level=6:binary=x86:delta=1", None),
    ("lzma:level=6:mf=bt4:delta=255", None),
    ("lzma:level=1:lc=0:lp=4:pb=4", None),
    ("lzma:level=1:lc=4:pb=0", None),
    ("lzma:level=2:tune", None),
    ("lzma:level=2:lp=1:binary=x86:tune", None),
    ("zstd:level=3:tune", None),
    ("brotli:quality=0", None),
    ("brotli:quality=1:lgwin=10", None),
    ("brotli:quality=5:lgwin=16", None),
    ("brotli:quality=9:lgwin=30", None),
    ("brotli", None),
    ("flac:level=0", Some(PCM)),
    ("flac:level=1", Some(PCM)),
    ("flac:level=4", Some(PCM)),
    ("flac", Some(PCM)),
    ("flac:level=8", Some(PCM)),
    ("flac:level=8:exhaustive", Some(PCM)),
    ("ricepp", Some(IMAGE)),
    ("ricepp:block_size=16", Some(IMAGE)),
    ("ricepp:block_size=512", Some(IMAGE)),
];

/// Compresses `data` without the rule that stores what does not shrink.
pub(crate) fn encode(
    spec: &str,
    metadata: Option<&str>,
    data: &[u8],
) -> (CompressionType, Vec<u8>) {
    let spec = Spec::parse(spec).unwrap();
    let mut encoder = spec.encoder(data.len(), metadata).unwrap();
    let mut payload = Vec::new();
    encoder.encode(data, &mut payload).unwrap();
    (spec.compression_type(), payload)
}
