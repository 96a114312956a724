//! Tables of names and targets: sorted, each distinct string once.

use durin_format::Result;
use durin_format::metadata::StringTable;
use durin_format::string_table::{StringPacking, build, first_too_long};

use crate::options::PackOptions;
use crate::tree::count_of;

/// Distinct strings in order, and for each string that was given its place among them.
#[derive(Debug)]
pub struct Distinct<'a> {
    /// All strings as they were given.
    given: Vec<&'a [u8]>,
    /// For each distinct string a place where it was given.
    order: Vec<u32>,
    /// By the order in which strings were given.
    pub places: Vec<u32>,
}

impl<'a> Distinct<'a> {
    fn strings(&self) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.order.iter().map(|index| self.given[*index as usize])
    }
}

/// A table in one of the two forms of the format.
#[derive(Debug)]
pub enum Strings {
    /// One list.
    Plain(Vec<Vec<u8>>),
    /// One buffer, perhaps compressed.
    Compact(StringTable),
}

/// A table as it is stored, and the places of the strings that were given.
#[derive(Debug)]
pub struct StoredStrings {
    /// The table.
    pub strings: Strings,
    /// By the order in which strings were given.
    pub places: Vec<u32>,
}

impl Strings {
    /// Fills the one of the two fields that stands for the form.
    pub fn store(self, plain: &mut Vec<Vec<u8>>, compact: &mut Option<StringTable>) {
        match self {
            Self::Plain(strings) => *plain = strings,
            Self::Compact(table) => *compact = Some(table),
        }
    }
}

/// Sorts `strings` and removes those that are equal to another.
#[must_use]
pub fn distinct<'a>(strings: impl Iterator<Item = &'a [u8]>) -> Distinct<'a> {
    let given: Vec<&[u8]> = strings.collect();
    let mut order: Vec<u32> = (0..count_of(given.len())).collect();
    order.sort_unstable_by_key(|index| given[*index as usize]);
    let mut places = vec![0; given.len()];
    let mut count = 0;
    let mut last = None;
    order.retain(|index| {
        let string = given[*index as usize];
        let is_new = last != Some(string);
        last = Some(string);
        count += u32::from(is_new);
        places[*index as usize] = count - 1;
        is_new
    });
    Distinct {
        given,
        order,
        places,
    }
}

/// Makes the table that the options ask for, or one that readers accept where a string is longer than `len_max` bytes.
///
/// # Errors
/// `Limit` if the strings do not fit into a table.
pub fn pack(
    distinct: Distinct<'_>,
    options: &PackOptions,
    len_max: u64,
    compress: bool,
    packed_index: bool,
) -> Result<StoredStrings> {
    let strings = distinct.strings();
    let is_plain = options.plain && first_too_long(strings.clone(), len_max).is_none();
    let strings = if is_plain {
        Strings::Plain(strings.map(<[u8]>::to_vec).collect())
    } else {
        let packing = StringPacking {
            len_max,
            compress,
            force: compress && options.force,
            packed_index,
        };
        Strings::Compact(build(strings, packing)?)
    };
    Ok(StoredStrings {
        strings,
        places: distinct.places,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_string_once_and_sorted() {
        let given: [&[u8]; 5] = [b"b", b"a", b"b", b"\xff", b"ab"];
        let distinct = distinct(given.into_iter());
        let strings: Vec<_> = distinct.strings().collect();
        assert_eq!(strings, [&b"a"[..], b"ab", b"b", b"\xff"]);
        assert_eq!(distinct.places, [2, 0, 2, 3, 1]);
    }
}
