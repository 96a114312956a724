//! The table of algorithms and their options: the one list that help texts and the parser share.

/// One algorithm as a help text shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmHelp {
    /// The name that a specification starts with.
    pub name: &'static str,
    /// Each option's key and what may follow it.
    pub options: &'static [(&'static str, &'static str)],
    /// What else a user should know; empty when nothing.
    pub note: &'static str,
}

/// Returns every algorithm with its options, in the order in which help shows them.
#[must_use]
pub fn algorithms() -> &'static [AlgorithmHelp] {
    ALGORITHMS
}

const ALGORITHMS: &[AlgorithmHelp] = &[
    AlgorithmHelp {
        name: "null",
        options: &[],
        note: "stored as it is",
    },
    AlgorithmHelp {
        name: "lz4",
        options: &[],
        note: "",
    },
    AlgorithmHelp {
        name: "lz4hc",
        options: &[("level", "0..12, default 9")],
        note: "",
    },
    AlgorithmHelp {
        name: "zstd",
        options: &[
            ("level", "-131072..22, default 22"),
            (
                "long",
                "flag: find matches at a long distance, with a window as large as the block",
            ),
            ("wlog", "10..31: log2 of the window"),
            ("hlog", "6..30: log2 of the hash table"),
            ("clog", "6..30: log2 of the chain table"),
            ("slog", "1..30: log2 of the search attempts"),
            ("mml", "3..7: least match length"),
            ("tlen", "0..131072: match length that ends a search"),
            ("strat", "1..9: strategy, from fast to btultra2"),
            ("lhlog", "6..30: log2 of the hash table of `long`"),
            ("lmml", "4..4096: least match length of `long`"),
            ("lblog", "1..8: log2 of the bucket size of `long`"),
            ("lhrlog", "0..25: log2 of the hash rate of `long`"),
            (
                "tune",
                "flag: store blocks that shrink by less than a 256th at a fast look",
            ),
        ],
        note: "",
    },
    AlgorithmHelp {
        name: "lzma",
        options: &[
            ("level", "0..9, default 9"),
            (
                "dict_size",
                "12..30: log2 of the dictionary, default by level",
            ),
            ("extreme", "flag: slower and a little smaller"),
            (
                "binary",
                "x86, powerpc, ia64, arm, armthumb, arm64, sparc: also try this filter for machine code; \
                 arm64 needs xz 5.4 to be read",
            ),
            (
                "delta",
                "1..255: also try a filter for values that come again each so many bytes and change little",
            ),
            ("mode", "fast, normal"),
            ("mf", "hc3, hc4, bt2, bt3, bt4: match finder"),
            (
                "nice",
                "0..273: match length that ends a search, 0 = by level",
            ),
            ("depth", "0..4294967295: search depth, 0 = automatic"),
            (
                "lc",
                "0..4: bits of the byte before a literal that choose its statistics, default 3; lc + lp is at most 4",
            ),
            (
                "lp",
                "0..4: bits of the position that choose the statistics of literals, default 0",
            ),
            (
                "pb",
                "0..4: bits of the position that choose the statistics of matches, default 2",
            ),
            (
                "tune",
                "flag: choose by trials on samples, unless given: lc, lp, pb for each part of a block, and the filter for machine code for all of it; from level 6 up, unless extreme, nice: 48 with such a filter and 128 without; store a block that shrinks by less than a 256th",
            ),
        ],
        note: "makes .xz streams",
    },
    AlgorithmHelp {
        name: "brotli",
        options: &[
            ("quality", "0..11, default 11"),
            ("lgwin", "10..30: log2 of the window, default 22"),
        ],
        note: "",
    },
    AlgorithmHelp {
        name: "flac",
        options: &[
            ("level", "0..8, default 5"),
            ("exhaustive", "flag: try every prediction order"),
        ],
        note: "needs category metadata of PCM audio: 8..32 bits, 1..4 bytes a sample, 1..8 channels",
    },
    AlgorithmHelp {
        name: "ricepp",
        options: &[("block_size", "16..512, default 128")],
        note: "needs category metadata of FITS images: 2 bytes a sample, 1..2 components, 0..8 unused low bits",
    },
];
