//! Names and symbolic link targets, in each of the forms in which they are stored.
//!
//! Source: docs/format.md, "Strings".

use crate::frozen::view::{Column, Object, Span, StringColumns};
use crate::fsst::SymbolTable;
use crate::limits::FSST_TABLE_BYTES_MAX;
use crate::{Error, Result};

/// One in so many offsets of a packed index is kept: a look-up then adds up half as many lengths on average, which
/// costs about 10 ns, and the offsets take a quarter of a byte a string.
const CHECKPOINT_STEP: u64 = 16;

/// A table of strings, read in place.
///
/// The table itself lies inside the data; each string is checked when it is read.
#[derive(Clone, Debug)]
pub struct StringsView {
    form: Form,
    /// For messages: the field that the strings are in.
    name: &'static str,
    /// Longest stored string that is handed out, in bytes.
    stored_len_max: u64,
}

#[derive(Clone, Debug)]
enum Form {
    Plain(StringColumns),
    Compact(Compact),
}

#[derive(Clone, Debug)]
struct Compact {
    buffer: Span,
    index: Index,
    symbols: Option<SymbolTable>,
}

#[derive(Clone, Debug)]
enum Index {
    /// String `i` goes from element `i` to element `i + 1`.
    Offsets(Column),
    /// String `i` has as many bytes as element `i` says and follows the one before.
    Lengths {
        lengths: Column,
        /// The offset of every [`CHECKPOINT_STEP`]-th string; empty until [`StringsView::unpack_index`].
        checkpoints: Vec<u32>,
    },
}

impl Default for StringsView {
    fn default() -> Self {
        Self {
            form: Form::Plain(StringColumns::default()),
            name: "strings",
            stored_len_max: 0,
        }
    }
}

impl StringsView {
    /// Finds a table: `compact` if it is set, even if it is empty, otherwise `plain`.
    pub(super) fn resolve(
        data: &[u8],
        plain: (Object<'_>, &'static str),
        compact: (Object<'_>, &'static str),
        stored_len_max: u64,
    ) -> Result<Self> {
        let view = |form, name| Self {
            form,
            name,
            stored_len_max,
        };
        let (object, name) = compact;
        let table = object
            .optional_with(|object| Compact::resolve(object, data))
            .map_err(|error| error.context(name))?;
        if let Some(table) = table {
            return Ok(view(Form::Compact(table), name));
        }
        let (object, name) = plain;
        let columns = object
            .list()
            .and_then(|list| list.string_columns())
            .map_err(|error| error.context(name))?;
        Ok(view(Form::Plain(columns), name))
    }

    /// Returns the number of strings.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.form {
            Form::Plain(columns) => columns.len(),
            Form::Compact(table) => table.len(),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the strings are in one buffer with an index.
    #[must_use]
    pub fn is_compact(&self) -> bool {
        matches!(self.form, Form::Compact(_))
    }

    /// Returns whether the index holds lengths, so that [`Self::unpack_index`] helps.
    #[must_use]
    pub fn is_packed_index(&self) -> bool {
        matches!(
            self.form,
            Form::Compact(Compact {
                index: Index::Lengths { .. },
                ..
            })
        )
    }

    /// Returns whether the strings are compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        matches!(
            self.form,
            Form::Compact(Compact {
                symbols: Some(_),
                ..
            })
        )
    }

    /// Returns the bytes of the buffer that all strings are in; 0 for a plain table.
    #[must_use]
    pub fn buffer_len(&self) -> u64 {
        match &self.form {
            Form::Plain(_) => 0,
            Form::Compact(table) => table.buffer.len,
        }
    }

    /// Returns string `index`: where it lies in `data`, or from `buf` if it has to be decompressed. What `buf` held
    /// before is lost.
    ///
    /// # Errors
    /// `Corrupt` if there is no such string, or it does not lie inside the buffer, is longer than such strings may
    /// be (512 bytes stored for names, 4096 for targets) or cannot be decompressed.
    pub fn get<'b>(&self, data: &'b [u8], index: u64, buf: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        let stored = self.span(data, index)?.bytes(data);
        let Some(symbols) = self.symbols() else {
            return Ok(stored);
        };
        buf.clear();
        symbols
            .decode(stored, buf)
            .map_err(|error| self.in_string(error, index))?;
        Ok(buf)
    }

    /// Returns how many bytes string `index` takes in the table.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn stored_len(&self, data: &[u8], index: u64) -> Result<u64> {
        self.span(data, index).map(|span| span.len)
    }

    /// Returns how many bytes string `index` has, without decompressing it.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn decoded_len(&self, data: &[u8], index: u64) -> Result<u64> {
        let span = self.span(data, index)?;
        match self.symbols() {
            None => Ok(span.len),
            Some(symbols) => symbols
                .decoded_len(span.bytes(data))
                .map_err(|error| self.in_string(error, index)),
        }
    }

    /// Makes look-ups in a packed index fast: adds up all lengths once. Does nothing for other tables.
    ///
    /// Without it each look-up adds up the lengths of all strings before.
    ///
    /// # Errors
    /// `Corrupt` if all strings together are longer than the buffer.
    pub fn unpack_index(&mut self, data: &[u8]) -> Result<()> {
        let Form::Compact(Compact { buffer, index, .. }) = &mut self.form else {
            return Ok(());
        };
        let Index::Lengths {
            lengths,
            checkpoints,
        } = index
        else {
            return Ok(());
        };
        *checkpoints =
            add_up(*lengths, data, buffer.len).map_err(|error| error.context(self.name))?;
        Ok(())
    }

    fn symbols(&self) -> Option<&SymbolTable> {
        match &self.form {
            Form::Plain(_) => None,
            Form::Compact(table) => table.symbols.as_ref(),
        }
    }

    fn span(&self, data: &[u8], index: u64) -> Result<Span> {
        let found = match &self.form {
            Form::Plain(columns) => columns.get(data, index),
            Form::Compact(table) => table.span(data, index),
        };
        let missing = || Error::corrupt(format!("there are only {} strings", self.len()));
        found
            .and_then(|span| span.ok_or_else(missing))
            .and_then(|span| self.check_len(span))
            .map_err(|error| self.in_string(error, index))
    }

    fn check_len(&self, span: Span) -> Result<Span> {
        if span.len <= self.stored_len_max {
            return Ok(span);
        }
        Err(Error::corrupt(format!(
            "{} stored bytes, at most {} are allowed",
            span.len, self.stored_len_max
        )))
    }

    #[cold]
    fn in_string(&self, error: Error, index: u64) -> Error {
        error.context(format!("{}: string {index}", self.name))
    }
}

impl Compact {
    fn resolve(object: Object<'_>, data: &[u8]) -> Result<Self> {
        let buffer = object.read(1, "buffer", |o| o.string())?;
        let symbols = object.read(2, "symtab", |o| {
            o.optional_with(|o| parse_symbols(o.string()?, data))
        })?;
        let column = object.read(3, "index", |o| o.list()?.column(u32::BITS))?;
        let index = if object.read(4, "packed_index", |o| o.bool())? {
            Index::Lengths {
                lengths: column,
                checkpoints: Vec::new(),
            }
        } else {
            Index::Offsets(column)
        };
        Ok(Self {
            buffer,
            index,
            symbols,
        })
    }

    fn len(&self) -> u64 {
        match &self.index {
            Index::Offsets(offsets) => offsets.len().saturating_sub(1),
            Index::Lengths { lengths, .. } => lengths.len(),
        }
    }

    fn span(&self, data: &[u8], index: u64) -> Result<Option<Span>> {
        let Some((offset, len)) = self.place(data, index)? else {
            return Ok(None);
        };
        match self.buffer.part(offset, len) {
            Some(span) => Ok(Some(span)),
            None => Err(Error::corrupt(format!(
                "{len} bytes at offset {offset} of a buffer of {} bytes",
                self.buffer.len
            ))),
        }
    }

    /// Offset in the buffer and length.
    fn place(&self, data: &[u8], index: u64) -> Result<Option<(u64, u64)>> {
        match &self.index {
            Index::Offsets(offsets) => {
                let start = offsets.get(data, index);
                // The last element is where the last string ends.
                let end = index
                    .checked_add(1)
                    .and_then(|next| offsets.get(data, next));
                let (Some(start), Some(end)) = (start, end) else {
                    return Ok(None);
                };
                match end.checked_sub(start) {
                    Some(len) => Ok(Some((start, len))),
                    None => Err(Error::corrupt(format!(
                        "starts at {start} and ends at {end}"
                    ))),
                }
            }
            Index::Lengths {
                lengths,
                checkpoints,
            } => {
                let Some(len) = lengths.get(data, index) else {
                    return Ok(None);
                };
                Ok(Some((offset_of(*lengths, checkpoints, data, index), len)))
            }
        }
    }
}

fn parse_symbols(span: Span, data: &[u8]) -> Result<SymbolTable> {
    if span.len > FSST_TABLE_BYTES_MAX {
        return Err(Error::corrupt(format!(
            "{} bytes, at most {FSST_TABLE_BYTES_MAX} are possible",
            span.len
        )));
    }
    SymbolTable::parse(span.bytes(data))
}

fn offset_of(lengths: Column, checkpoints: &[u32], data: &[u8], index: u64) -> u64 {
    if lengths.bits() == 0 {
        return 0;
    }
    let checkpoint = usize::try_from(index / CHECKPOINT_STEP).ok();
    let (first, offset) = match checkpoint.and_then(|place| checkpoints.get(place)) {
        Some(offset) => (index - index % CHECKPOINT_STEP, u64::from(*offset)),
        None => (0, 0),
    };
    // Fewer than 2^33 lengths below 2^32: no overflow.
    offset
        + (first..index)
            .map_while(|before| lengths.get(data, before))
            .sum::<u64>()
}

fn add_up(lengths: Column, data: &[u8], buffer_len: u64) -> Result<Vec<u32>> {
    let mut checkpoints = Vec::new();
    if lengths.bits() == 0 {
        // Empty strings only, of which there may be any number.
        return Ok(checkpoints);
    }
    let too_long = || {
        Error::corrupt(format!(
            "strings are longer than the buffer of {buffer_len} bytes"
        ))
    };
    let mut offset = 0;
    for (index, len) in (0..).zip(lengths.iter(data)) {
        if index % CHECKPOINT_STEP == 0 {
            checkpoints.push(u32::try_from(offset).map_err(|_| too_long())?);
        }
        offset += len;
        if offset > buffer_len {
            return Err(too_long());
        }
    }
    Ok(checkpoints)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use crate::frozen::schema::{Field, Layout, Schema};

    const TEXTS: [&str; 40] = [
        "a", "bc", "def", "", "ghij", "k", "l", "mn", "o", "p", "q", "r", "s", "t", "u", "v", "w",
        "xyz", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
        "16", "17", "18", "19", "20", "21", "22",
    ];

    fn layout(bits: u16, fields: &[(i16, u16, i16)]) -> Layout {
        let field = |&(id, layout, offset): &(i16, u16, i16)| Field { id, layout, offset };
        Layout {
            size: 0,
            bits,
            fields: fields.iter().map(field).collect(),
        }
    }

    /// A table with an index of bytes: distance and count of buffer and index in a byte each, then the flag.
    fn schema() -> Schema {
        Schema {
            layouts: vec![
                layout(8, &[]),
                layout(16, &[(1, 0, 0), (2, 0, -8)]),
                layout(16, &[(1, 0, 0), (2, 0, -8), (3, 0, 0)]),
                layout(1, &[]),
                layout(33, &[(1, 1, 0), (3, 2, -16), (4, 3, -32)]),
            ],
            root: 4,
        }
    }

    fn data(index: &[u8], packed: bool) -> Vec<u8> {
        let buffer = TEXTS.concat();
        let buffer_len = u8::try_from(buffer.len()).unwrap();
        let index_len = u8::try_from(index.len()).unwrap();
        let mut data = vec![5, buffer_len, 5 + buffer_len, index_len, u8::from(packed)];
        data.extend_from_slice(buffer.as_bytes());
        data.extend_from_slice(index);
        data
    }

    fn view(data: &[u8]) -> StringsView {
        let schema = schema();
        let root = Object::root(&schema, data).unwrap();
        StringsView {
            form: Form::Compact(Compact::resolve(root, data).unwrap()),
            name: "compact_names",
            stored_len_max: 4,
        }
    }

    fn lengths() -> Vec<u8> {
        TEXTS
            .iter()
            .map(|text| u8::try_from(text.len()).unwrap())
            .collect()
    }

    fn offsets() -> Vec<u8> {
        let mut offsets = vec![0];
        for len in lengths() {
            offsets.push(offsets.last().unwrap() + len);
        }
        offsets
    }

    fn check_all(view: &StringsView, data: &[u8]) {
        let mut buf = Vec::new();
        assert_eq!(view.len(), TEXTS.len() as u64);
        for (index, text) in (0..).zip(TEXTS) {
            assert_eq!(view.get(data, index, &mut buf).unwrap(), text.as_bytes());
            assert_eq!(view.stored_len(data, index).unwrap(), text.len() as u64);
        }
    }

    #[test]
    fn both_kinds_of_index_find_every_string() {
        let plain = data(&offsets(), false);
        check_all(&view(&plain), &plain);
        let packed = data(&lengths(), true);
        let mut view = view(&packed);
        assert!(view.is_packed_index() && view.is_compact() && !view.is_compressed());
        check_all(&view, &packed);
        view.unpack_index(&packed).unwrap();
        check_all(&view, &packed);
    }

    #[test]
    fn bad_indices_are_corrupt() {
        let check = |index: &[u8], at: u64, expect: &str| {
            let data = data(index, false);
            let mut buf = Vec::new();
            let message = view(&data)
                .get(&data, at, &mut buf)
                .unwrap_err()
                .to_string();
            assert_eq!(message, expect);
        };
        check(&[], 0, "compact_names: string 0: there are only 0 strings");
        check(
            &[0, 3, 1],
            1,
            "compact_names: string 1: starts at 3 and ends at 1",
        );
        check(
            &[0, 70, 71],
            1,
            "compact_names: string 1: 1 bytes at offset 70 of a buffer of 61 bytes",
        );
        check(
            &[0, 5],
            0,
            "compact_names: string 0: 5 stored bytes, at most 4 are allowed",
        );
        let data = data(&[60, 2], true);
        assert!(view(&data).unpack_index(&data).is_err());
    }
}
