//! Choosing the symbols for a set of strings.
//!
//! As published by P. Boncz, T. Neumann and V. Leis, "FSST: Fast Random Access String Compression", VLDB 2020:
//! beginning with no symbols, encode a sample, count how often each symbol and each pair of neighbours is used, and
//! take as the next table the 255 symbols and joined pairs that would save most; a few rounds are enough.
//! The sample is taken at even distances, so that the same strings always give the same table.

use std::collections::BTreeMap;

use super::{ESCAPE, LENGTHS_IN_CODE_ORDER, SYMBOL_COUNT_MAX, SYMBOL_LEN_MAX, Symbol, SymbolTable};

/// How much text the symbols are chosen by, in bytes.
///
/// The paper has 16 KiB. Names differ more from directory to directory than the texts there: of all names of a Linux
/// system (259,568, 5.6 MB), four times that leaves 1.3 % fewer bytes, and sixteen times no fewer still.
const SAMPLE_LEN: usize = 64 << 10;

/// How often the table is improved.
///
/// The paper has 5 rounds. Symbols double their length in each of the first; more rounds settle which of them the
/// encoder really uses. 8 leave 2.9 % fewer bytes than 5, 12 another 0.2 %, or 8 % for 361 names; all take 60 ms.
const ROUND_COUNT: usize = 12;

/// A symbol that occurs less often in the sample is not worth its place in the table, which has its size, too.
const USE_COUNT_MIN: u32 = 3;

/// How much more a single byte counts than what it saves: without it, it would be written as two.
const SINGLE_BYTE_WEIGHT: u64 = 8;

/// What a code of the encoder stands for while counting: a symbol or, from 256 on, a literal byte.
type Unit = u16;

const UNIT_COUNT: usize = 512;

/// How often units and pairs of neighbours occur.
struct Counts {
    single: Vec<u32>,
    pair: Vec<u32>,
}

impl SymbolTable {
    /// Chooses a table for `strings`.
    #[must_use]
    pub fn train<'a>(strings: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let sample = sample(strings);
        let mut table = Self::default();
        for round in 1..=ROUND_COUNT {
            let counts = count(&table, &sample);
            // New pairs in the last round would be untried, and take the place of symbols that are not.
            table = improve(&table, &counts, round < ROUND_COUNT);
        }
        table.sort_by_code();
        table
    }

    /// Orders the symbols as their codes are given in the serialized form.
    fn sort_by_code(&mut self) {
        self.symbols.sort_by_key(|symbol| {
            let place = LENGTHS_IN_CODE_ORDER
                .iter()
                .position(|len| *len == symbol.len);
            (place, symbol.bytes)
        });
    }
}

/// Returns strings at even distances, [`SAMPLE_LEN`] bytes together or all of them.
fn sample<'a>(strings: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<&'a [u8]> {
    let total: usize = strings.clone().map(<[u8]>::len).sum();
    let stride = total.div_ceil(SAMPLE_LEN).max(1);
    strings
        .step_by(stride)
        // One string that is longer than a whole sample would make the choice take long.
        .map(|text| text.get(..SAMPLE_LEN).unwrap_or(text))
        .collect()
}

fn count(table: &SymbolTable, sample: &[&[u8]]) -> Counts {
    let mut counts = Counts {
        single: vec![0; UNIT_COUNT],
        pair: vec![0; UNIT_COUNT * UNIT_COUNT],
    };
    let mut encoder = table.encoder();
    for text in sample {
        let mut last = None;
        encoder.for_each_step(text, |code, bytes| {
            let first_byte = bytes.first().map_or(0, |byte| literal(*byte));
            let unit = if code == ESCAPE {
                first_byte
            } else {
                Unit::from(code)
            };
            counts.add(last, unit);
            if bytes.len() > 1 {
                // A chance for symbols that are one byte longer, and for single bytes.
                counts.add(last, first_byte);
            }
            last = Some(unit);
        });
    }
    counts
}

fn literal(byte: u8) -> Unit {
    256 + Unit::from(byte)
}

impl Counts {
    fn add(&mut self, last: Option<Unit>, unit: Unit) {
        if let Some(count) = self.single.get_mut(usize::from(unit)) {
            *count += 1;
        }
        let pair = last.and_then(|last| self.pair.get_mut(pair_index(last, unit)));
        if let Some(count) = pair {
            *count += 1;
        }
    }
}

fn pair_index(first: Unit, second: Unit) -> usize {
    usize::from(first) * UNIT_COUNT + usize::from(second)
}

/// Returns the table of the symbols and, if `join`, joined pairs that save most.
fn improve(table: &SymbolTable, counts: &Counts, join: bool) -> SymbolTable {
    let used: Vec<(Unit, Symbol, u32)> = (0..)
        .zip(&counts.single)
        .filter(|(_, count)| **count > 0)
        .map(|(unit, count)| (unit, symbol_of(table, unit), *count))
        .collect();

    // The same symbol can come from several pairs.
    let mut use_counts = BTreeMap::<(u64, u8), u32>::new();
    let mut add = |symbol: Symbol, count: u32| {
        *use_counts
            .entry((u64::from_le_bytes(symbol.bytes), symbol.len))
            .or_default() += count;
    };
    for &(first, symbol, count) in &used {
        add(symbol, count);
        if !join || usize::from(symbol.len) == SYMBOL_LEN_MAX {
            continue;
        }
        for &(second, next, _) in &used {
            match counts.pair.get(pair_index(first, second)) {
                Some(&count) if count > 0 => add(joined(symbol, next), count),
                _ => {}
            }
        }
    }

    let mut gains: Vec<(u64, Symbol)> = use_counts
        .into_iter()
        .filter(|(_, count)| *count >= USE_COUNT_MIN)
        .map(|((word, len), count)| {
            let weight = if len == 1 {
                SINGLE_BYTE_WEIGHT
            } else {
                u64::from(len)
            };
            let bytes = word.to_le_bytes();
            (u64::from(count) * weight, Symbol { bytes, len })
        })
        .collect();
    // Stable, so that equal gains keep the order of the map.
    gains.sort_by_key(|(gain, _)| std::cmp::Reverse(*gain));
    gains.truncate(SYMBOL_COUNT_MAX);
    SymbolTable {
        symbols: gains.into_iter().map(|(_, symbol)| symbol).collect(),
    }
}

fn symbol_of(table: &SymbolTable, unit: Unit) -> Symbol {
    match u8::try_from(unit) {
        Ok(code) => table
            .symbols
            .get(usize::from(code))
            .copied()
            .unwrap_or_default(),
        Err(_) => Symbol::new(&[unit.to_le_bytes()[0]]),
    }
}

/// Returns both together, cut off at the length of the longest symbol.
fn joined(first: Symbol, second: Symbol) -> Symbol {
    let mut text = first.as_bytes().to_vec();
    text.extend_from_slice(second.as_bytes());
    Symbol::new(&text)
}
