//! Packing names and symbolic link targets into a string table.
//!
//! Source: docs/format.md, "Strings".

use crate::error::{Error, Result};
use crate::fsst::SymbolTable;
use crate::metadata::StringTable;

/// How strings are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringPacking {
    /// The longest string in bytes as it is stored that readers accept.
    pub len_max: u64,
    /// Compress the strings with FSST where that makes them, with the symbol table, smaller.
    pub compress: bool,
    /// Compress them even if it does not.
    pub force: bool,
    /// Store lengths and not offsets, which are narrower.
    pub packed_index: bool,
}

/// Packs `strings`, in their order, into a table.
///
/// The strings stay uncompressed, even by force, if there is nothing to compress or if one of them would become longer
/// than readers accept; where one of them is too long as it is, they are compressed unasked.
///
/// # Errors
/// `Limit` when the strings are too long together for 32-bit offsets, or one is in either form.
pub fn build<'a>(
    strings: impl Iterator<Item = &'a [u8]> + Clone,
    packing: StringPacking,
) -> Result<StringTable> {
    let plain_len: usize = strings.clone().map(<[u8]>::len).sum();
    if u32::try_from(plain_len).is_err() {
        return Err(Error::limit(
            "the strings of a table are longer together than 2^32 - 1 bytes",
        ));
    }
    let len_max = packing.len_max;
    let too_long = first_too_long(strings.clone(), len_max);
    let wants_compression = packing.compress || packing.force || too_long.is_some();
    let compressed = (wants_compression && plain_len > 0)
        .then(|| compress(strings.clone(), len_max))
        .flatten();
    let is_forced = packing.force || too_long.is_some();
    let (symtab, packed) = match (compressed, too_long) {
        (Some((symtab, codes)), _)
            if is_forced || symtab.len() + codes.buffer.len() < plain_len =>
        {
            (Some(symtab), codes)
        }
        (_, None) => (None, concat(strings, plain_len)),
        (_, Some(error)) => return Err(error),
    };
    Ok(StringTable {
        index: packed.index(packing.packed_index),
        buffer: packed.buffer,
        symtab,
        packed_index: packing.packed_index,
    })
}

/// Returns what to say of the first string that is longer than `len_max` bytes.
pub fn first_too_long<'a>(
    mut strings: impl Iterator<Item = &'a [u8]>,
    len_max: u64,
) -> Option<Error> {
    let string = strings.find(|string| string.len() as u64 > len_max)?;
    Some(Error::limit(format!(
        "a string of {} bytes: at most {len_max} can be stored",
        string.len()
    )))
}

/// Strings one after the other, and where each ends.
#[derive(Default)]
struct Packed {
    buffer: Vec<u8>,
    ends: Vec<u32>,
}

impl Packed {
    fn index(&self, is_packed: bool) -> Vec<u32> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        if is_packed {
            self.ends
                .iter()
                .zip(starts)
                .map(|(end, start)| end - start)
                .collect()
        } else {
            starts.collect()
        }
    }
}

/// The caller has checked that lengths fit.
fn concat<'a>(strings: impl Iterator<Item = &'a [u8]>, plain_len: usize) -> Packed {
    let mut packed = Packed::default();
    packed.buffer.reserve_exact(plain_len);
    for text in strings {
        packed.buffer.extend_from_slice(text);
        let end = u32::try_from(packed.buffer.len());
        packed.ends.push(end.unwrap_or(u32::MAX));
    }
    packed
}

/// Returns the symbol table and codes, or `None` where a limit would be passed.
fn compress<'a>(
    strings: impl Iterator<Item = &'a [u8]> + Clone,
    len_max: u64,
) -> Option<(Vec<u8>, Packed)> {
    let table = SymbolTable::train(strings.clone());
    let mut encoder = table.encoder();
    let mut packed = Packed::default();
    for text in strings {
        let start = packed.buffer.len();
        encoder.encode(text, &mut packed.buffer);
        let len = packed.buffer.len() - start;
        if len as u64 > len_max {
            return None;
        }
        packed.ends.push(u32::try_from(packed.buffer.len()).ok()?);
    }
    Some((table.serialize(), packed))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use crate::limits::{NAME_BYTES_MAX, TARGET_BYTES_MAX};

    const PLAIN: StringPacking = StringPacking {
        len_max: TARGET_BYTES_MAX,
        compress: false,
        force: false,
        packed_index: false,
    };

    const COMPRESS: StringPacking = StringPacking {
        compress: true,
        ..PLAIN
    };

    fn build_all(strings: &[Vec<u8>], packing: StringPacking) -> Result<StringTable> {
        build(strings.iter().map(Vec::as_slice), packing)
    }

    fn unpack(table: &StringTable) -> Vec<Vec<u8>> {
        let mut ends: Vec<usize> = table.index.iter().map(|value| *value as usize).collect();
        if table.packed_index {
            ends.insert(0, 0);
            for index in 1..ends.len() {
                ends[index] += ends[index - 1];
            }
        }
        let symbols = table
            .symtab
            .as_ref()
            .map(|bytes| SymbolTable::parse(bytes).unwrap());
        let decode = |stored: &[u8]| match &symbols {
            Some(symbols) => {
                let mut text = Vec::new();
                symbols.decode(stored, &mut text).unwrap();
                text
            }
            None => stored.to_vec(),
        };
        ends.windows(2)
            .map(|edge| decode(&table.buffer[edge[0]..edge[1]]))
            .collect()
    }

    fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    #[test]
    fn plain_tables_have_offsets_or_lengths() {
        let strings = texts(&["bin", "etc", "usr-local"]);
        let table = build_all(&strings, PLAIN).unwrap();
        assert_eq!(
            (table.buffer.as_slice(), table.index.as_slice()),
            (&b"binetcusr-local"[..], &[0, 3, 6, 15][..])
        );
        let packing = StringPacking {
            packed_index: true,
            ..PLAIN
        };
        let table = build_all(&strings, packing).unwrap();
        assert_eq!(table.index, [3, 3, 9]);
        assert_eq!(unpack(&table), strings);
    }

    #[test]
    fn an_empty_table_has_one_offset() {
        let force = StringPacking {
            force: true,
            ..COMPRESS
        };
        let table = build_all(&[], force).unwrap();
        assert_eq!(table.index, [0]);
        assert_eq!(table.symtab, None);
    }

    #[test]
    fn compression_must_pay_unless_forced() {
        let strings = texts(&["one", "two"]);
        assert_eq!(build_all(&strings, COMPRESS).unwrap().symtab, None);
        let force = StringPacking {
            force: true,
            ..COMPRESS
        };
        let table = build_all(&strings, force).unwrap();
        assert!(table.symtab.is_some());
        assert_eq!(unpack(&table), strings);
    }

    #[test]
    fn many_names_come_back_smaller() {
        let strings: Vec<_> = (0..5000)
            .map(|n| format!("module_{n:04}.cpython-311.pyc").into_bytes())
            .collect();
        let packing = StringPacking {
            packed_index: true,
            ..COMPRESS
        };
        let table = build_all(&strings, packing).unwrap();
        assert_eq!(unpack(&table), strings);
        let plain_len: usize = strings.iter().map(Vec::len).sum();
        let stored_len = table.buffer.len() + table.symtab.unwrap().len();
        assert!(
            stored_len * 3 < plain_len,
            "{stored_len} of {plain_len} bytes"
        );
    }

    /// A long name of letters that no other has is longer in codes; one of letters that all have is shorter.
    #[test]
    fn names_are_stored_in_the_form_in_which_none_is_too_long() {
        let common = (0..30_000).map(|n| format!("name-{n:05}.txt").into_bytes());
        let mut strange: Vec<_> = common.clone().collect();
        strange.insert(1, (0..500_u32).map(|n| 128 + (n * n % 127) as u8).collect());
        let mut long: Vec<_> = common.collect();
        long.push(b"name-00000.txt".repeat(50));
        for strings in [&strange, &long] {
            for packing in [PLAIN, COMPRESS] {
                let packing = StringPacking {
                    len_max: NAME_BYTES_MAX,
                    ..packing
                };
                let table = build_all(strings, packing).unwrap();
                assert!(unpack(&table) == *strings);
                let edges = table.index.windows(2);
                assert!(edges.map(|edge| edge[1] - edge[0]).max().unwrap() <= 512);
            }
        }
        let neither: Vec<u8> = (0..600_u32).map(|n| (n * n % 251) as u8).collect();
        let packing = StringPacking {
            len_max: 100,
            ..COMPRESS
        };
        let error = build_all(&[neither], packing).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Limit);
    }

    #[test]
    fn no_target_grows_beyond_the_limit() {
        // 4095 bytes that no sample of the others prepares for: twice as long in codes.
        let mut strings: Vec<_> = (0..30_000)
            .map(|n| format!("path/{n}").into_bytes())
            .collect();
        strings.insert(
            1,
            (0..4095_u32).map(|n| 128 + (n * n % 127) as u8).collect(),
        );
        let force = StringPacking {
            force: true,
            ..COMPRESS
        };
        let table = build_all(&strings, force).unwrap();
        assert_eq!(unpack(&table), strings);
        let edges = table.index.windows(2);
        assert!(edges.map(|edge| edge[1] - edge[0]).max().unwrap() <= 4096);
    }
}
