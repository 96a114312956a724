//! Every ceiling for untrusted input, in one place.
//!
//! A ceiling bounds what a hostile image can make us allocate or compute before the damage is noticed.
//! None is so low that an image written by a real release comes near it.

/// Longest schema section after decompression: the root struct has 36 fields, real schemas are below 3 KiB.
pub const SCHEMA_BYTES_MAX: u64 = 1 << 20;

/// Longest history section after decompression: an entry is a few hundred bytes plus its command line.
pub const HISTORY_BYTES_MAX: u64 = 64 << 20;

/// Default for the longest metadata section after decompression: string tables have 32-bit offsets,
/// and everything else together stays below that in practice. A reader can be told a lower one.
pub const METADATA_BYTES_MAX: u64 = 4 << 30;

/// Longest section index: 2^22 sections of 8 bytes, which is 4 TiB in blocks of 1 MiB.
pub const INDEX_BYTES_MAX: u64 = 32 << 20;

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

/// How much longer than its codes an FSST string can be: a code is a byte, a symbol 8.
pub const FSST_EXPANSION_MAX: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_into_targets_and_targets_into_text() {
        const {
            assert!(NAME_BYTES_MAX <= TARGET_BYTES_MAX && TARGET_BYTES_MAX <= TEXT_BYTES_MAX);
            assert!(BLOCK_SIZE_MAX.is_power_of_two() && INDEX_OFFSET_MAX < u64::MAX >> 15);
        }
    }
}
