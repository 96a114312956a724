//! Every ceiling for untrusted input, in one place.
//!
//! A ceiling bounds what a hostile image can make us allocate or compute before the damage is noticed.
//! None is so low that an image written by a real release comes near it.

/// Longest schema section after decompression: the root struct has 36 fields, real schemas are below 3 KiB.
pub const SCHEMA_BYTES_MAX: u64 = 1 << 20;

/// Longest history after decompression, all sections together: an entry is a few hundred bytes plus its command line,
/// which no system lets be longer than some MiB.
pub const HISTORY_BYTES_MAX: u64 = 8 << 20;

/// Most entries of a history, one for each time the image was rewritten. An entry of one byte takes 300 when parsed.
pub const HISTORY_ENTRY_COUNT_MAX: usize = 1 << 12;

/// Most arguments and names of libraries in a history: an empty one is a byte, and takes 24 when parsed.
pub const HISTORY_TEXT_COUNT_MAX: usize = 1 << 18;

/// Default for the longest metadata section after decompression: string tables have 32-bit offsets,
/// and everything else together stays below that in practice. A reader can be told a lower one.
pub const METADATA_BYTES_MAX: u64 = 4 << 30;

/// How long metadata may be after decompression whatever it was compressed to. See [`metadata_bytes_max`].
const METADATA_ANY_BYTES_MAX: u64 = 64 << 20;

/// How many times as long as its payload metadata above [`METADATA_ANY_BYTES_MAX`] may be. See [`metadata_bytes_max`].
const METADATA_EXPANSION_MAX: u64 = 1024;

/// Longest metadata that is believed of a payload of `payload_len` bytes; none longer is written, either.
///
/// A payload of 100 KiB can claim gigabytes. Honest metadata of that size names millions of inodes one after the other, and
/// such numbers do not compress a hundredfold, unless the tree holds hundreds of snapshots that share their files as hard
/// links: a thousand of them, some nine-hundredfold.
#[must_use]
pub fn metadata_bytes_max(payload_len: u64) -> u64 {
    payload_len
        .saturating_mul(METADATA_EXPANSION_MAX)
        .clamp(METADATA_ANY_BYTES_MAX, METADATA_BYTES_MAX)
}

/// Most sections of an image: 64 GiB in blocks of 4 KiB, 256 TiB in blocks of 16 MiB. A reader takes some 200 bytes for each,
/// 3 GiB for so many, which have at least 64 bytes each in the file.
pub const SECTION_COUNT_MAX: usize = 1 << 24;

/// Longest section index: so many entries of 8 bytes.
pub const INDEX_BYTES_MAX: u64 = 8 * SECTION_COUNT_MAX as u64;

/// Largest offset that fits into an entry of the section index.
pub const INDEX_OFFSET_MAX: u64 = (1 << 48) - 1;

/// Largest size of an uncompressed block, a power of two.
pub const BLOCK_SIZE_MAX: u64 = 1 << 31;

/// Longest stored name in bytes (255 bytes, twice that in the worst case of FSST, rounded up).
pub const NAME_BYTES_MAX: u64 = 512;

/// Longest stored symlink target in bytes.
pub const TARGET_BYTES_MAX: u64 = 4096;

/// Longest stored string of the lists that hold neither names nor targets (category metadata, features, creator).
pub const TEXT_BYTES_MAX: u64 = 1 << 20;

/// All strings of such a list together: they are unpacked at open.
pub const TEXT_LIST_BYTES_MAX: u64 = 16 << 20;

/// Most items of such a list.
pub const TEXT_LIST_COUNT_MAX: u64 = 1 << 16;

/// Most items of any list; items of zero bits cost nothing in the section, so its length bounds nothing.
pub const LIST_COUNT_MAX: u64 = 1 << 32;

/// Most layouts of a schema: their numbers are non-negative 16-bit integers.
pub const SCHEMA_LAYOUT_COUNT_MAX: usize = 1 << 15;

/// Longest serialized FSST symbol table: 17 bytes and 255 symbols of 8 bytes.
pub const FSST_TABLE_BYTES_MAX: u64 = 17 + 255 * 8;

/// How deep values inside a skipped Compact value may nest: our deepest structure nests four levels.
pub const THRIFT_DEPTH_MAX: u32 = 64;

/// How many items all lists of thawed metadata may have together: so many, and [`THAW_ITEMS_PER_BYTE_MAX`] for each
/// byte of data.
///
/// Items of no bits take no data: 100,000 empty files have 100,000 chunk table elements of that kind. But every entry
/// of a large tree has some 40 bits elsewhere, to find its name and inode, and stays far below the second number.
/// An item takes up to 88 bytes when thawed.
pub const THAW_ITEM_COUNT_MAX: u64 = 1 << 20;

/// See [`THAW_ITEM_COUNT_MAX`].
pub const THAW_ITEMS_PER_BYTE_MAX: u64 = 4;

/// How long all strings of thawed metadata may be together: so many bytes, and [`THAW_STRING_EXPANSION_MAX`] times the
/// data. Strings may overlap; no known writer lets them, but one that shares equal strings is imaginable.
pub const THAW_STRING_BYTES_MAX: u64 = 1 << 20;

/// See [`THAW_STRING_BYTES_MAX`].
pub const THAW_STRING_EXPANSION_MAX: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fourteen hundred snapshots of 12,500 files as hard links, with zstd.
    #[test]
    fn honest_metadata_is_believed() {
        assert!(metadata_bytes_max(80_605) >= 70_290_879);
        assert_eq!(metadata_bytes_max(0), METADATA_ANY_BYTES_MAX);
        assert_eq!(metadata_bytes_max(u64::MAX), METADATA_BYTES_MAX);
    }

    #[test]
    fn names_fit_into_targets_and_targets_into_text() {
        const {
            assert!(NAME_BYTES_MAX <= TARGET_BYTES_MAX && TARGET_BYTES_MAX <= TEXT_BYTES_MAX);
            assert!(BLOCK_SIZE_MAX.is_power_of_two() && INDEX_OFFSET_MAX < u64::MAX >> 15);
        }
    }
}
