//! Searching one file: lines that match, with what surrounds them, in bounded memory.

use std::collections::VecDeque;

use durin_format::{InodeNum, Result};
use durin_reader::Image;
use regex::bytes::Regex;

/// Bytes read at a time.
const READ_LEN: usize = 1 << 18;

/// Longer lines are searched in pieces of this length.
const LINE_LEN_MAX: usize = 1 << 20;

/// A file with a NUL among so many bytes is binary, as in grep(1).
const PROBE_LEN: usize = 32 << 10;

/// Output of one file is kept until its turn comes; a file with more gives the rest up, and says so.
const OUTPUT_LEN_MAX: usize = 64 << 20;

/// What is wanted of a file.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) pattern: Regex,
    /// Lines that do not match.
    pub(super) is_inverted: bool,
    /// Search binary files like text.
    pub(super) is_text: bool,
    /// Whether one line is enough.
    pub(super) stops_at_first: bool,
    /// Whether lines are counted and not shown; else one of a binary file is enough, of which none is shown either.
    pub(super) counts: bool,
    /// Stop after so many lines.
    pub(super) count_max: u64,
    pub(super) before: usize,
    pub(super) after: usize,
    /// Only the parts of lines that match.
    pub(super) only_matching: bool,
}

/// A line for output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) text: Vec<u8>,
    /// Whether it matches, and does not only surround one that does.
    pub(super) is_match: bool,
}

/// What was found in a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Lines that match.
    pub(super) count: u64,
    /// Lines for output; none of a binary file.
    pub(super) lines: Vec<Line>,
    pub(super) is_binary: bool,
    /// Whether there would have been more lines than are kept.
    pub(super) is_cut: bool,
}

impl Search {
    /// Searches a file of an image.
    pub(super) fn file(&self, image: &Image, inode: InodeNum) -> Result<Found> {
        self.stream(
            |offset, buffer| image.read_at(inode, offset, buffer),
            |offset| image.hole_end(inode, offset),
        )
    }

    /// Searches what `read` gives at an offset, 0 bytes at the end; `hole_end` tells where a hole ends.
    fn stream(
        &self,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<usize>,
        mut hole_end: impl FnMut(u64) -> Result<Option<u64>>,
    ) -> Result<Found> {
        let mut state = State::new(self);
        if state.is_done {
            return Ok(state.found);
        }
        let mut buffer = Vec::new();
        let mut offset = 0;
        loop {
            // All has been searched up to here, so that what follows in a hole are pieces of zeros of one length.
            if buffer.is_empty() && offset > 0 {
                let hole_len = hole_end(offset)?.map_or(0, |end| end.saturating_sub(offset));
                let piece_count = hole_len / LINE_LEN_MAX as u64;
                state.zeros(piece_count);
                if state.is_done {
                    return Ok(state.found);
                }
                offset += piece_count * LINE_LEN_MAX as u64;
            }
            let kept = buffer.len();
            buffer.resize(kept + READ_LEN, 0);
            let len = read(offset, buffer.get_mut(kept..).unwrap_or_default())?;
            buffer.truncate(kept + len);
            if offset == 0 && !self.is_text {
                let probe = buffer.get(..PROBE_LEN).unwrap_or(&buffer);
                state.found.is_binary = probe.contains(&0);
            }
            offset += len as u64;
            let is_end = len == 0;
            let used = state.lines(&buffer, is_end);
            if is_end || state.is_done {
                return Ok(state.found);
            }
            buffer.drain(..used);
        }
    }
}

struct State<'a> {
    search: &'a Search,
    found: Found,
    number: u64,
    /// The last lines that did not match.
    before: VecDeque<Line>,
    before_len: usize,
    /// Whether some were dropped for their length.
    is_before_cut: bool,
    /// Lines still to be shown after a match.
    after_left: usize,
    output_len: usize,
    is_done: bool,
}

impl<'a> State<'a> {
    fn new(search: &'a Search) -> Self {
        Self {
            search,
            found: Found::default(),
            number: 0,
            before: VecDeque::new(),
            before_len: 0,
            is_before_cut: false,
            after_left: 0,
            output_len: 0,
            is_done: search.count_max == 0,
        }
    }

    /// Takes all whole lines of `bytes`, at the end the rest, too; returns how many bytes those were.
    fn lines(&mut self, bytes: &[u8], is_end: bool) -> usize {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (line, len) = match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) => (rest.get(..end).unwrap_or(rest), end + 1),
                None if is_end || rest.len() >= LINE_LEN_MAX => (rest, rest.len()),
                None => break,
            };
            at += len;
            self.line(line);
            if self.is_done {
                break;
            }
        }
        at
    }

    /// Takes so many pieces of [`LINE_LEN_MAX`] zeros; as they are equal, only the first ones are searched.
    fn zeros(&mut self, piece_count: u64) {
        let piece = vec![0; if piece_count > 0 { LINE_LEN_MAX } else { 0 }];
        // Behind so many lines that do not match, none is shown after a match, and all kept for the next one are zeros.
        let shown = self.search.before.saturating_add(self.search.after) as u64;
        for number in 0..piece_count {
            let count = self.found.count;
            self.line(&piece);
            if self.is_done {
                return;
            }
            if self.found.count == count && number >= shown {
                self.skip(piece_count - number - 1);
                return;
            }
        }
    }

    /// Counts lines like the last one, which did not match, as there are enough of them to be shown.
    fn skip(&mut self, count: u64) {
        self.number += count;
        for line in &mut self.before {
            line.number += count;
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.number += 1;
        let is_match = self.search.pattern.is_match(line) != self.search.is_inverted;
        let has_all = self.found.count >= self.search.count_max;
        if is_match && has_all {
            // What surrounds the last match ends where another one would begin.
            self.is_done = true;
        } else if is_match {
            self.found.count += 1;
            self.is_done =
                self.search.stops_at_first || (self.found.is_binary && !self.search.counts);
            let is_cut = std::mem::take(&mut self.is_before_cut);
            self.found.is_cut |= is_cut && self.before.len() < self.search.before;
            self.before_len = 0;
            while let Some(line) = self.before.pop_front() {
                self.keep(line);
            }
            if self.shows() {
                self.after_left = self.search.after;
                self.matching(line);
            }
            self.is_done |= self.is_last_shown();
        } else if self.after_left > 0 {
            self.after_left -= 1;
            self.keep(self.as_line(line, false));
            self.is_done = self.is_last_shown();
        } else if self.search.before > 0 && self.shows() {
            self.keep_before(line);
        }
    }

    /// Whether lines are wanted for output.
    fn shows(&self) -> bool {
        !(self.search.stops_at_first || self.search.counts || self.found.is_binary)
    }

    /// Whether there are as many matches as are wanted, with all that is to be shown after the last one.
    fn is_last_shown(&self) -> bool {
        self.found.count >= self.search.count_max && self.after_left == 0
    }

    /// Keeps a line for a match that may follow, and drops the oldest ones that are too many or too long together.
    fn keep_before(&mut self, line: &[u8]) {
        let bytes_of = |line: &[u8]| line.len() + size_of::<Line>();
        self.before_len += bytes_of(line);
        self.before.push_back(self.as_line(line, false));
        loop {
            let is_too_long = self.before_len > OUTPUT_LEN_MAX;
            if !is_too_long && self.before.len() <= self.search.before {
                return;
            }
            let Some(oldest) = self.before.pop_front() else {
                return;
            };
            self.before_len -= bytes_of(&oldest.text);
            self.is_before_cut |= is_too_long;
        }
    }

    fn matching(&mut self, line: &[u8]) {
        if self.search.only_matching {
            let search = self.search;
            for part in search
                .pattern
                .find_iter(line)
                .filter(|part| !part.is_empty())
            {
                self.keep(self.as_line(part.as_bytes(), true));
            }
        } else {
            self.keep(self.as_line(line, true));
        }
    }

    fn as_line(&self, text: &[u8], is_match: bool) -> Line {
        Line {
            number: self.number,
            text: text.to_vec(),
            is_match,
        }
    }

    fn keep(&mut self, line: Line) {
        self.output_len += line.text.len() + size_of::<Line>();
        if self.output_len > OUTPUT_LEN_MAX {
            self.found.is_cut = true;
        } else {
            self.found.lines.push(line);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn search(pattern: &str) -> Search {
        Search {
            pattern: Regex::new(pattern).unwrap(),
            is_inverted: false,
            is_text: false,
            stops_at_first: false,
            counts: false,
            count_max: u64::MAX,
            before: 0,
            after: 0,
            only_matching: false,
        }
    }

    /// Searches `text`, given in reads of `step` bytes.
    fn find(search: &Search, text: &[u8], step: usize) -> Found {
        let read = |offset: u64, buffer: &mut [u8]| {
            let rest = text.get(usize::try_from(offset).unwrap()..).unwrap();
            let len = rest.len().min(step).min(buffer.len());
            buffer[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        };
        search.stream(read, |_| Ok(None)).unwrap()
    }

    fn numbers(found: &Found) -> Vec<u64> {
        found.lines.iter().map(|line| line.number).collect()
    }

    #[test]
    fn lines_are_whole_however_they_are_read() {
        let text = b"one\ntwo\nthree two\n\nend two";
        for step in [1, 2, 3, 7, 100] {
            let found = find(&search("two"), text, step);
            assert_eq!((found.count, numbers(&found)), (3, vec![2, 3, 5]), "{step}");
            assert_eq!(found.lines[2].text, b"end two");
        }
        let inverted = Search {
            is_inverted: true,
            ..search("two")
        };
        assert_eq!(numbers(&find(&inverted, text, 4)), [1, 4]);
    }

    #[test]
    fn surroundings_are_shown_once() {
        let text = b"1\n2\nx\nx\n5\n6\n7\nx\n";
        let with = Search {
            before: 1,
            after: 1,
            ..search("x")
        };
        let found = find(&with, text, 3);
        assert_eq!(numbers(&found), [2, 3, 4, 5, 7, 8]);
        assert_eq!(found.count, 3);
    }

    #[test]
    fn binary_files_end_at_the_first_match() {
        let text = b"a\0b\nx\nx\n";
        let found = find(&search("x"), text, 100);
        assert_eq!(
            (found.is_binary, found.count, found.lines.len()),
            (true, 1, 0)
        );
        let as_text = Search {
            is_text: true,
            ..search("x")
        };
        assert_eq!(find(&as_text, text, 100).lines.len(), 2);
        let counted = Search {
            counts: true,
            before: 1,
            after: 1,
            ..search("x")
        };
        for text in [&text[..], b"a\nx\nb\nx\n"] {
            let found = find(&counted, text, 100);
            assert_eq!((found.count, found.lines.len()), (2, 0));
        }
    }

    #[test]
    fn the_last_match_that_is_wanted_is_shown_with_what_follows() {
        let text = b"x\n2\n3\nx\n5\nx\n7\n8\n9\n";
        for (count_max, after, count, shown) in [
            (0, 2, 0, &[][..]),
            (1, 0, 1, &[1]),
            (1, 2, 1, &[1, 2, 3]),
            // Another match ends it,
            (2, 3, 2, &[1, 2, 3, 4, 5]),
            // and so does the end of what surrounds it.
            (3, 2, 3, &[1, 2, 3, 4, 5, 6, 7, 8]),
        ] {
            let with = Search {
                count_max,
                after,
                ..search("x")
            };
            let found = find(&with, text, 3);
            assert_eq!((found.count, numbers(&found).as_slice()), (count, shown));
        }
    }

    #[test]
    fn holes_are_searched_as_zeros() {
        let mib = 1 << 20;
        let mut data = b"x first\n".to_vec();
        data.resize(9 * mib + 5, 0);
        let hole = 8..data.len();
        data.extend_from_slice(b"\nx last\nend\n");
        let read = |offset: u64, buffer: &mut [u8]| {
            let rest = data.get(usize::try_from(offset).unwrap()..).unwrap();
            let len = rest.len().min(buffer.len());
            buffer[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        };
        for (pattern, is_inverted, around, is_text) in [
            ("x", false, 0, true),
            ("x", false, 2, true),
            ("x", false, 20, true),
            ("x", true, 1, true),
            ("(?-u)^\\x00", false, 0, true),
            ("last", false, 0, false),
        ] {
            let search = Search {
                is_inverted,
                is_text,
                before: around,
                after: around,
                ..search(pattern)
            };
            let mut asked = 0;
            let hole_end = |offset: u64| {
                asked += 1;
                let is_in = hole.contains(&usize::try_from(offset).unwrap());
                Ok(is_in.then_some(hole.end as u64))
            };
            let found = search.stream(read, hole_end).unwrap();
            assert!(asked > 0);
            assert!(
                found == find(&search, &data, READ_LEN),
                "{pattern} {is_inverted} {around}"
            );
        }
    }

    #[test]
    fn lines_before_a_match_are_bounded_in_memory() {
        let end = 200_u64 << 20;
        let read = |offset: u64, buffer: &mut [u8]| {
            if offset == end {
                buffer[..3].copy_from_slice(b"\nx\n");
                return Ok(3);
            }
            let len = usize::try_from(end.saturating_sub(offset)).unwrap();
            let len = len.min(buffer.len());
            buffer[..len].fill(0);
            Ok(len)
        };
        let hole_end = |offset| Ok((offset < end).then_some(end));
        for (before, is_cut) in [(usize::MAX, true), (100, true), (10, false)] {
            let search = Search {
                is_text: true,
                before,
                after: usize::MAX,
                ..search("x")
            };
            let found = search.stream(read, hole_end).unwrap();
            assert_eq!((found.count, found.is_cut), (1, is_cut), "{before}");
            let kept: usize = found.lines.iter().map(|line| line.text.len()).sum();
            assert!(kept <= OUTPUT_LEN_MAX && !found.lines.is_empty());
        }
    }

    #[test]
    fn large_holes_take_no_time() {
        let end = 1_u64 << 60;
        let read = |offset: u64, buffer: &mut [u8]| {
            let len = buffer
                .len()
                .min(usize::try_from(end - offset).unwrap_or(usize::MAX));
            buffer[..len].fill(0);
            Ok(len)
        };
        let found = search("x").stream(read, |_| Ok(Some(end))).unwrap();
        assert_eq!((found.count, found.is_binary), (0, true));
    }

    #[test]
    fn a_line_without_end_is_searched_in_pieces() {
        let mut text = vec![b'a'; 3 * LINE_LEN_MAX];
        text.push(b'x');
        let found = find(&search("x"), &text, READ_LEN);
        assert_eq!(found.count, 1);
        assert!(found.lines[0].text.len() <= LINE_LEN_MAX + READ_LEN);
    }
}
