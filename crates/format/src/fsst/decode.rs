//! Reading a symbol table, and strings with it.

use super::{
    ESCAPE, FORMAT_VERSION, HEADER_LEN, LENGTHS_IN_CODE_ORDER, SYMBOL_COUNT_MAX, SYMBOL_LEN_MAX,
    Symbol, SymbolTable,
};
use crate::cursor::Cursor;
use crate::{Error, Result};

impl SymbolTable {
    /// Parses the serialized form.
    ///
    /// # Errors
    /// `Corrupt` if it is malformed, `Unsupported` if it is of another version or byte order.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        read_table(bytes).map_err(|error| error.context("FSST symbol table"))
    }

    /// Appends to `out` what `codes` stand for: at most 8 bytes a code.
    ///
    /// # Errors
    /// `Corrupt` if a code has no symbol or an escape has no byte after it; `out` is then as it was.
    pub fn decode(&self, codes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        // Room for the longest result: then each symbol is one store of 8 bytes, whatever its length.
        out.resize(start + SYMBOL_LEN_MAX * codes.len(), 0);
        let mut end = start;
        let mut rest = codes.iter().copied();
        while let Some(code) = rest.next() {
            let symbol = match self.symbols.get(usize::from(code)) {
                Some(symbol) => *symbol,
                None => match literal(code, &mut rest) {
                    Ok(symbol) => symbol,
                    Err(error) => {
                        out.truncate(start);
                        return Err(error);
                    }
                },
            };
            if let Some(to) = out.get_mut(end..).and_then(|out| out.first_chunk_mut()) {
                *to = symbol.bytes;
            }
            end += usize::from(symbol.len);
        }
        out.truncate(end);
        Ok(())
    }

    /// Returns how many bytes `codes` stand for.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decoded_len(&self, codes: &[u8]) -> Result<u64> {
        let mut len = 0;
        let mut rest = codes.iter().copied();
        while let Some(code) = rest.next() {
            len += match self.symbols.get(usize::from(code)) {
                Some(symbol) => u64::from(symbol.len),
                None => literal(code, &mut rest).map(|symbol| u64::from(symbol.len))?,
            };
        }
        Ok(len)
    }
}

/// What a code stands for that has no symbol: the escape takes the next byte.
fn literal(code: u8, rest: &mut impl Iterator<Item = u8>) -> Result<Symbol> {
    if code != ESCAPE {
        return Err(Error::corrupt(format!("FSST code {code} has no symbol")));
    }
    match rest.next() {
        Some(byte) => Ok(Symbol::new(&[byte])),
        None => Err(Error::corrupt("FSST escape at the end of a string")),
    }
}

fn read_table(bytes: &[u8]) -> Result<SymbolTable> {
    let mut cursor = Cursor::new(bytes);
    let byte_order = cursor.u8()?;
    if byte_order != 1 {
        return Err(Error::unsupported(format!(
            "byte order {byte_order}: expected 1"
        )));
    }
    let symbol_count = usize::from(cursor.u8()?);
    // Terminator code and suffix limit: notes of the encoder to itself.
    cursor.u16()?;
    let version = cursor.u32()?;
    if version != FORMAT_VERSION {
        return Err(Error::unsupported(format!(
            "version {version}: expected {FORMAT_VERSION}"
        )));
    }
    let is_zero_terminated = cursor.u8()? & 1 != 0;
    let mut counts: [u8; SYMBOL_LEN_MAX] = cursor.array()?;
    debug_assert_eq!(cursor.pos(), HEADER_LEN);

    let mut symbols = Vec::with_capacity(SYMBOL_COUNT_MAX);
    let [one_byte_count, ..] = &mut counts;
    if is_zero_terminated && *one_byte_count > 0 {
        // Code 0 is a zero byte then, which is counted and not stored.
        symbols.push(Symbol::new(&[0]));
        *one_byte_count -= 1;
    }
    for len in LENGTHS_IN_CODE_ORDER {
        let count = counts.get(usize::from(len) - 1).copied().unwrap_or(0);
        for _ in 0..count {
            symbols.push(Symbol::new(cursor.bytes(usize::from(len))?));
        }
    }
    if symbols.len() != symbol_count || symbol_count > SYMBOL_COUNT_MAX {
        return Err(Error::corrupt(format!(
            "expected {symbol_count} symbols, found {}",
            symbols.len()
        )));
    }
    if !cursor.is_empty() {
        return Err(Error::corrupt(format!(
            "{} bytes follow the last symbol",
            cursor.remaining()
        )));
    }
    Ok(SymbolTable { symbols })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// "ab" is code 0, "eight by" code 1, "x" code 2.
    fn table() -> Vec<u8> {
        let mut bytes = vec![1, 3, 0, 0, 0x0a, 0x14, 0x34, 0x01, 0];
        bytes.extend([1, 1, 0, 0, 0, 0, 0, 1]);
        bytes.extend_from_slice(b"abeight byx");
        bytes
    }

    fn check(codes: &[u8], expect: Result<&[u8], &str>) {
        let table = SymbolTable::parse(&table()).unwrap();
        let mut out = b"before ".to_vec();
        let result = table.decode(codes, &mut out).map_err(|e| e.to_string());
        let text = out.strip_prefix(b"before ").unwrap();
        assert_eq!(
            result.as_ref().map(|()| text).map_err(String::as_str),
            expect
        );
        let len = table.decoded_len(codes);
        assert_eq!(len.ok(), expect.ok().map(|text| text.len() as u64));
        if result.is_err() {
            assert!(text.is_empty());
        }
    }

    #[test]
    fn codes_become_symbols() {
        check(&[], Ok(b""));
        check(&[0, 1, 2, 255, 255, 0], Ok(b"abeight byx\xffab"));
        check(&[255, 0], Ok(b"\0"));
    }

    #[test]
    fn bad_codes_are_corrupt() {
        check(&[0, 3], Err("FSST code 3 has no symbol"));
        check(&[0, 255], Err("FSST escape at the end of a string"));
    }

    #[test]
    fn a_zero_terminated_table_has_an_unstored_symbol() {
        let mut bytes = vec![1, 2, 0, 0, 0x0a, 0x14, 0x34, 0x01, 1];
        bytes.extend([1, 1, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(b"ab");
        let table = SymbolTable::parse(&bytes).unwrap();
        let mut out = Vec::new();
        table.decode(&[0, 1], &mut out).unwrap();
        assert_eq!(out, b"\0ab");
    }

    #[test]
    fn malformed_tables_are_refused() {
        let good = table();
        for len in 0..good.len() {
            let error = SymbolTable::parse(&good[..len]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "cut to {len}");
        }
        let check = |at: usize, value: u8, kind: ErrorKind| {
            let mut bytes = good.clone();
            bytes[at] = value;
            assert_eq!(SymbolTable::parse(&bytes).unwrap_err().kind(), kind);
        };
        check(0, 2, ErrorKind::Unsupported);
        check(4, 0, ErrorKind::Unsupported);
        check(1, 4, ErrorKind::Corrupt);
        check(9, 0, ErrorKind::Corrupt);
        check(16, 255, ErrorKind::Corrupt);
        let mut longer = good.clone();
        longer.push(0);
        assert!(SymbolTable::parse(&longer).is_err());
    }
}
