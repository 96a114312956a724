//! Names without regard to case: `case_insensitive`.
//!
//! Two names are alike if they are equal after simple case folding, as Unicode has it (a sharp s and `SS` are not alike).
//! Bytes that are not UTF-8 stand for themselves. A name that is there exactly is always found first; among several that
//! are alike but not equal it is the first in stored order. That happens in a directory is said once.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use durin_format::events::Events;
use durin_format::{InodeNum, Result};
use durin_reader::{EntryRef, Image};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// Directories looked at without regard to case so far, each with its entries by folded name: eight bytes an entry.
#[derive(Default)]
pub(crate) struct FoldedDirs {
    dirs: Mutex<BTreeMap<InodeNum, Arc<FoldedDir>>>,
    /// A key of this mount, so that nobody can make an image of names with one hash.
    key: RandomState,
}

/// Entries by hash of their folded name, in order of hash and then of place.
struct FoldedDir(Vec<(u32, u32)>);

impl FoldedDirs {
    /// Finds a name that is not there exactly.
    pub(crate) fn lookup(
        &self,
        image: &Image,
        dir: InodeNum,
        name: &[u8],
        events: &dyn Events,
    ) -> Result<Option<EntryRef>> {
        let folded = fold(name);
        let hash = hash(&self.key, &folded);
        let entries = self.dir(image, dir, events)?;
        let start = entries.0.partition_point(|(other, _)| *other < hash);
        let alike = entries.0.iter().skip(start);
        let mut found = Vec::new();
        for (_, index) in alike.take_while(|(other, _)| *other == hash) {
            let entry = image.dir_entry(dir, *index, &mut found)?;
            if fold(&found) == folded {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    fn dir(&self, image: &Image, dir: InodeNum, events: &dyn Events) -> Result<Arc<FoldedDir>> {
        let known = || self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&dir) {
            return Ok(Arc::clone(found));
        }
        let made = Arc::new(FoldedDir::new(image, dir, &self.key, events)?);
        // Another thread may have made the same meanwhile.
        Ok(Arc::clone(known().entry(dir).or_insert(made)))
    }
}

impl FoldedDir {
    fn new(image: &Image, dir: InodeNum, key: &RandomState, events: &dyn Events) -> Result<Self> {
        let mut entries = Vec::new();
        let mut name = Vec::new();
        for index in 0..image.dir_len(dir)? {
            // What cannot be an entry is an error for who asks for it by its place, and none here.
            if image.dir_entry(dir, index, &mut name).is_ok() {
                entries.push((hash(key, &fold(&name)), index));
            }
        }
        entries.sort_unstable();
        let made = Self(entries);
        if let Some([first, second]) = made.first_collision(image, dir)? {
            events.warn(&format!(
                "case_insensitive: names that differ in case only in directory {dir}: \"{}\", \"{}\"",
                first.escape_ascii(),
                second.escape_ascii()
            ));
        }
        Ok(made)
    }

    /// Two names that are alike, if there are any.
    fn first_collision(&self, image: &Image, dir: InodeNum) -> Result<Option<[Vec<u8>; 2]>> {
        for pair in self.0.windows(2) {
            let &[(hash, first), (other, second)] = pair else {
                continue;
            };
            if hash != other {
                continue;
            }
            let (mut one, mut two) = (Vec::new(), Vec::new());
            image.dir_entry(dir, first, &mut one)?;
            image.dir_entry(dir, second, &mut two)?;
            if fold(&one) == fold(&two) {
                return Ok(Some([one, two]));
            }
        }
        Ok(None)
    }
}

/// Half of a hash with a key, as eight bytes an entry are enough.
fn hash(key: &RandomState, folded: &[u8]) -> u32 {
    (key.hash_one(folded) >> 32) as u32
}

/// Folds a name.
fn fold(name: &[u8]) -> Vec<u8> {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let mut folded = Vec::with_capacity(name.len());
    let mut bytes = [0; 4];
    for chunk in name.utf8_chunks() {
        for char in chunk.valid().chars() {
            folded.extend_from_slice(fold_char(char).encode_utf8(&mut bytes).as_bytes());
        }
        folded.extend_from_slice(chunk.invalid());
    }
    folded
}

/// The same character for all that are alike: the last of them, which for ASCII is the small letter, unless something
/// beyond ASCII is alike as well (the Kelvin sign, the long s); such a group is named by its small ASCII letter.
fn fold_char(char: char) -> char {
    if char.is_ascii() {
        return char.to_ascii_lowercase();
    }
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(char, char)]);
    // The tables are compiled in, so this cannot fail; if it did, the character would be alike to itself alone.
    class.try_case_fold_simple().ok();
    let first = class.iter().next().map_or(char, |range| range.start());
    first.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_folding() {
        let check = |one: &str, two: &str, expect: bool| {
            assert_eq!(
                fold(one.as_bytes()) == fold(two.as_bytes()),
                expect,
                "{one} {two}"
            );
        };
        check("README.md", "readme.MD", true);
        check("\u{c4}\u{d6}\u{dc}", "\u{e4}\u{f6}\u{fc}", true);
        check(
            "\u{3a3}\u{3af}\u{3c3}\u{3c5}\u{3c6}\u{3bf}\u{3c2}",
            "\u{3a3}\u{38a}\u{3a3}\u{3a5}\u{3a6}\u{39f}\u{3a3}",
            true,
        );
        check("\u{212a}elvin", "kelvin", true);
        check("\u{17f}", "S", true);
        // Full folding would have these alike.
        check("stra\u{df}e", "STRASSE", false);
        check("\u{fb01}", "fi", false);
        // The dotted capital I folds to itself in simple folding.
        check("\u{130}", "i", false);
        check("a", "b", false);
    }

    #[test]
    fn bytes_that_are_not_utf8_stand_for_themselves() {
        assert_eq!(fold(b"A\xffB\xc4"), b"a\xffb\xc4");
        assert_ne!(fold(b"\xc4"), fold(b"\xe4"));
    }
}
