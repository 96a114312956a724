//! Writing strings with a symbol table, and the table itself.

use super::{
    ESCAPE, FORMAT_VERSION, HEADER_LEN, LENGTHS_IN_CODE_ORDER, SYMBOL_LEN_MAX, Symbol, SymbolTable,
};

/// Replaces strings by the fewest codes of one table.
///
/// Taking the longest symbol at each place, as encoders usually do, leaves 2 % more bytes of file names.
#[derive(Clone, Debug)]
pub struct Encoder {
    /// All symbols, grouped by their first byte.
    matches: Vec<Match>,
    /// Where in `matches` the group of each byte begins, and where the last one ends.
    groups: Vec<u16>,
    /// For each place of a string the best step from there; kept to use its memory again.
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
struct Match {
    word: u64,
    /// The bits of `word` that count.
    mask: u64,
    len: u8,
    code: u8,
}

/// How the rest of a string is best encoded.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Bytes that the rest takes.
    cost: u32,
    /// How many bytes of the string the first code stands for.
    len: u8,
    /// The first code; [`ESCAPE`] for a literal.
    code: u8,
}

impl SymbolTable {
    /// Returns what is needed to encode with this table.
    #[must_use]
    pub fn encoder(&self) -> Encoder {
        Encoder::new(self)
    }

    /// Builds the serialized form.
    ///
    /// A table that was trained here, or parsed from a well-formed serialized one, comes back from
    /// [`parse`](Self::parse) as it is.
    #[must_use]
    pub fn serialize(&self) -> Vec<u8> {
        // The only order in which a short symbol may stand before longer ones: code 0 is an unstored zero byte.
        let is_zero_terminated = match self.symbols.as_slice() {
            [first, rest @ ..] => {
                first.as_bytes() == [0] && rest.iter().any(|symbol| symbol.len > 1)
            }
            [] => false,
        };
        let count_of = |len: u8| {
            self.symbols
                .iter()
                .filter(|symbol| symbol.len == len)
                .count()
        };
        let count_byte =
            |count: usize| u8::try_from(count).expect("a table has at most 255 symbols");

        let mut out = Vec::with_capacity(HEADER_LEN + self.symbols.len() * SYMBOL_LEN_MAX);
        // Terminator code and suffix limit are the encoder's own notes: 0 does.
        out.extend([1, count_byte(self.symbols.len()), 0, 0]);
        out.extend(FORMAT_VERSION.to_le_bytes());
        out.push(u8::from(is_zero_terminated));
        out.extend((1..=8).map(|len| count_byte(count_of(len))));
        let stored = self.symbols.iter().skip(usize::from(is_zero_terminated));
        for len in LENGTHS_IN_CODE_ORDER {
            for symbol in stored.clone().filter(|symbol| symbol.len == len) {
                out.extend_from_slice(symbol.as_bytes());
            }
        }
        out
    }
}

impl Encoder {
    fn new(table: &SymbolTable) -> Self {
        let mut matches: Vec<_> = (0..ESCAPE).zip(&table.symbols).map(Match::new).collect();
        matches.sort_by_key(|entry| (entry.first_byte(), entry.code));
        let group =
            |byte: u16| matches.partition_point(|entry| u16::from(entry.first_byte()) < byte);
        let groups = (0..=256)
            .map(|byte| u16::try_from(group(byte)).expect("a table has at most 255 symbols"))
            .collect();
        Self {
            matches,
            groups,
            steps: Vec::new(),
        }
    }

    /// Appends the codes for `text` to `out`: at most two bytes for each of its bytes.
    ///
    /// Equal strings get equal codes.
    pub fn encode(&mut self, text: &[u8], out: &mut Vec<u8>) {
        self.for_each_step(text, |code, bytes| {
            out.push(code);
            if code == ESCAPE {
                out.extend_from_slice(bytes);
            }
        });
    }

    /// Calls `visit` for each code of the best encoding of `text` with the code and the bytes it stands for.
    pub(super) fn for_each_step(&mut self, text: &[u8], mut visit: impl FnMut(u8, &[u8])) {
        self.plan(text);
        let mut rest = text;
        let mut steps = self.steps.as_slice();
        while let Some(step) = steps.first().filter(|_| !rest.is_empty()) {
            let len = usize::from(step.len);
            let (bytes, after) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            visit(step.code, bytes);
            rest = after;
            steps = steps.get(len..).unwrap_or(&[]);
        }
    }

    /// Finds the best step from each place, from the last to the first.
    fn plan(&mut self, text: &[u8]) {
        let mut steps = std::mem::take(&mut self.steps);
        steps.clear();
        // Costs of the 8 places behind the one looked at, nearest first; nothing is left after the end.
        let mut costs = [0_u32; SYMBOL_LEN_MAX];
        let mut word = 0;
        for (&byte, left) in text.iter().rev().zip(1_usize..) {
            word = (word << 8) | u64::from(byte);
            let best = self.best_step(byte, word, left, &costs);
            costs.rotate_right(1);
            if let Some(nearest) = costs.first_mut() {
                *nearest = best.cost;
            }
            steps.push(best);
        }
        steps.reverse();
        self.steps = steps;
    }

    fn best_step(&self, byte: u8, word: u64, left: usize, costs: &[u32; SYMBOL_LEN_MAX]) -> Step {
        let cost_after = |len: u8| costs.get(usize::from(len) - 1).copied().unwrap_or(0);
        let mut best = Step {
            cost: cost_after(1).saturating_add(2),
            len: 1,
            code: ESCAPE,
        };
        for entry in self.group(byte) {
            if entry.word == word & entry.mask && usize::from(entry.len) <= left {
                let cost = cost_after(entry.len).saturating_add(1);
                if (cost, best.len) < (best.cost, entry.len) {
                    best = Step {
                        cost,
                        len: entry.len,
                        code: entry.code,
                    };
                }
            }
        }
        best
    }

    fn group(&self, byte: u8) -> &[Match] {
        let edge = |index: usize| self.groups.get(index).copied().map_or(0, usize::from);
        let first = usize::from(byte);
        self.matches
            .get(edge(first)..edge(first + 1))
            .unwrap_or(&[])
    }
}

impl Match {
    fn new((code, symbol): (u8, &Symbol)) -> Self {
        Self {
            word: u64::from_le_bytes(symbol.bytes),
            mask: u64::MAX >> (64 - 8 * u32::from(symbol.len)),
            len: symbol.len,
            code,
        }
    }

    fn first_byte(&self) -> u8 {
        let [first, ..] = self.word.to_le_bytes();
        first
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;

    fn table(symbols: &[&str]) -> SymbolTable {
        SymbolTable {
            symbols: symbols
                .iter()
                .map(|text| Symbol::new(text.as_bytes()))
                .collect(),
        }
    }

    fn check(symbols: &[&str], text: &[u8], expect: &[u8]) {
        let table = table(symbols);
        let mut codes = Vec::new();
        table.encoder().encode(text, &mut codes);
        assert_eq!(codes, expect);
        let mut decoded = Vec::new();
        table.decode(&codes, &mut decoded).unwrap();
        assert_eq!(decoded, text);
    }

    #[test]
    fn takes_the_fewest_codes() {
        let symbols = ["ab", "abc", "cdefghij", "x"];
        check(&symbols, b"", &[]);
        check(&symbols, b"abx", &[0, 3]);
        // The longest match, "abc", would leave "defghij" to literals.
        check(&symbols, b"abcdefghij", &[0, 2]);
        check(&symbols, b"abcdef", &[1, 255, b'd', 255, b'e', 255, b'f']);
        check(&symbols, b"\xff\0", &[255, 255, 255, 0]);
    }

    #[test]
    fn a_zero_byte_is_not_the_end_of_a_string() {
        // Past the end of a string the encoder sees zeros.
        check(&["a\0", "b"], b"a", &[255, b'a']);
        check(&["a\0", "b"], b"ba\0", &[1, 0]);
    }

    #[test]
    fn serialized_tables_parse_back() {
        for symbols in [
            &[][..],
            &["ab", "xyz", "eight by", "x"],
            &["\0", "ab", "abc", "x", "y"],
            &["\0"],
        ] {
            let table = table(symbols);
            assert_eq!(SymbolTable::parse(&table.serialize()).unwrap(), table);
        }
    }
}
