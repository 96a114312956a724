//! Cutting one piece of data after the other into new data and repetitions of earlier data.
//!
//! An anchor that the index knows leads to places where the same bytes may be. They are compared byte by byte in both
//! directions, back into data that is not stored yet and on to the end of the piece, and the longest repetition is
//! taken if it is worth a chunk. What lies before it is stored as new data, its anchors go into the index, and the
//! search goes on behind it. New data is held back for a while, so that a repetition can begin before its first anchor.
//! Work is bounded: few candidates an anchor, none twice on the same diagonal, and a budget of bytes compared a piece.

use std::cell::OnceCell;
use std::sync::Arc;

use durin_format::{Error, Result};
use durin_kernels::equal;

use super::chunks::{Chunks, FragmentKey, RawChunk};
use super::group::{NewShare, places_max, slot_bits};
use super::history::{History, Kept, Place, Reread};
use super::index::{Index, IndexLimits};
use super::rules::Rules;
use super::shares::Shares;
use super::spread::Spread;
use crate::dedupe::ContentIndex;
use crate::tree::count_of;

/// New data held back at most, and what is left of it after some has been stored.
const PENDING_MAX: usize = 64 << 10;
const PENDING_KEPT: usize = 32 << 10;
/// Anchors looked up at once; enough for the processor to wait for many cache lines at a time.
const BATCH: usize = 32;
/// Repetitions remembered as not worth it.
const REFUSED_LEN: usize = 8;
/// Bytes compared per byte of data, and for any piece.
const WORK_FACTOR: usize = 16;
const WORK_MIN: usize = 1 << 20;
/// So many bytes behind a repetition must go on with its beginning for it to be one with itself.
const PERIOD_PROBE: usize = 64;

/// An anchor in the buffer of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// The last byte of its window, from the start of the run.
    pub(crate) at: u32,
    pub(crate) hash: u64,
}

/// Gives buffers for blocks and takes full ones.
pub(super) trait Sink {
    /// Returns an empty buffer for a block, once there may be another.
    fn begin(&mut self) -> Result<Vec<u8>>;
    /// Takes a block.
    fn block(&mut self, number: u32, data: Arc<Vec<u8>>) -> Result<()>;
}

/// A piece of a fragment.
pub(super) struct Data<'a> {
    pub(super) fragment: FragmentKey,
    /// Bytes from the start of the content.
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
    /// Where the bytes are in the run that the anchors count from.
    pub(super) base: usize,
    /// The anchors in these bytes.
    pub(super) anchors: &'a [Anchor],
}

impl Data<'_> {
    /// Returns where the last byte of an anchor is in the bytes.
    fn at(&self, anchor: Anchor) -> usize {
        anchor.at as usize - self.base
    }
}

/// What has been found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) matches: u64,
    pub(super) bytes: u64,
    /// Pieces of the input read again for comparison.
    pub(super) rereads: u64,
}

/// How much of what may be kept, and of what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The length at which blocks may end early, as a power of two.
    pub(crate) early_bits: u32,
    pub(crate) index: IndexLimits,
    /// Bytes of full blocks kept in memory.
    pub(crate) history_bytes: u64,
    /// Bytes of hashes of those that are not.
    pub(crate) hash_bytes: u64,
    /// Bytes that will be cut, at most.
    pub(crate) data_len: u64,
    /// Streams that will be cut, at most.
    pub(crate) streams: u64,
}

/// A repetition: bytes of the piece, and where they are already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Repetition {
    begin: usize,
    end: usize,
    place: Place,
}

/// Cuts data into chunks and blocks.
pub(super) struct Cutter<R, S> {
    pub(super) sink: S,
    pub(super) chunks: Chunks,
    pub(super) spread: Spread,
    pub(super) found: Found,
    pub(super) history: History<R>,
    pub(super) index: Index,
    rules: Rules,
    has_block: bool,
    /// The fragment cut last, where its next data is in the content, and where it is in the blocks if the last of it was
    /// a repetition.
    follow: Option<(FragmentKey, u64, Place)>,
    /// Data bytes of the fragment so far, from which units are counted.
    fragment: Option<FragmentKey>,
    fragment_len: usize,
    refused: Refused,
    work_left: usize,
    new_share: NewShare,
    /// The content that the last group began with.
    group: Option<ContentIndex>,
    /// Those of the current piece, once they have been needed.
    shares: OnceCell<Shares>,
}

/// Diagonals, that is distances between a place and the data, with a repetition that was not worth it, and its end.
#[derive(Default)]
struct Refused {
    list: [(u64, usize); REFUSED_LEN],
    next: usize,
}

impl Refused {
    fn add(&mut self, place: Place, at: usize, end: usize) {
        self.list[self.next % REFUSED_LEN] = (place.wrapping_sub(at as u64), end);
        self.next += 1;
    }

    fn contains(&self, place: Place, at: usize) -> bool {
        let diagonal = place.wrapping_sub(at as u64);
        self.list
            .iter()
            .any(|(known, end)| *known == diagonal && at < *end)
    }
}

impl<R: Reread, S: Sink> Cutter<R, S> {
    pub(super) fn new(bounds: Bounds, source: R, sink: S, chunks: Chunks) -> Self {
        // Blocks that end early leave places unused.
        let slot_bits = slot_bits(bounds.early_bits);
        let place_max =
            places_max(bounds.data_len).saturating_add((bounds.streams + 1) << slot_bits);
        let kept = Kept {
            blocks: bounds.history_bytes,
            hashes: bounds.hash_bytes,
            data_len: bounds.data_len,
        };
        Self {
            sink,
            chunks,
            spread: Spread::default(),
            found: Found::default(),
            history: History::new(source, slot_bits, kept),
            index: Index::new(bounds.index, place_max),
            rules: Rules::NONE,
            has_block: false,
            follow: None,
            fragment: None,
            fragment_len: 0,
            refused: Refused::default(),
            work_left: 0,
            new_share: NewShare::default(),
            group: None,
            shares: OnceCell::new(),
        }
    }

    /// Ends the open block; what follows is another stream with rules of its own.
    pub(super) fn begin_stream(&mut self, rules: Rules) -> Result<()> {
        self.finish_block()?;
        self.rules = rules;
        self.follow = None;
        self.group = None;
        Ok(())
    }

    /// Says that the next `len` bytes, of `content` first, are alike, and ends the open block if they had better not be
    /// in it.
    pub(super) fn begin_group(&mut self, content: ContentIndex, len: u64) -> Result<()> {
        let rules = &self.rules;
        let mut lens = rules.block_lens();
        if self.group.replace(content) == Some(content) {
            // Slices of the same contents, which are more alike than their sketches tell.
            lens.mixed = lens.full;
        }
        let open_len = self.history.open_len();
        let ends =
            rules.ends_early && self.has_block && self.new_share.ends_before(len, open_len, lens);
        if ends { self.finish_block() } else { Ok(()) }
    }

    /// Ends everything.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.spread.finish();
        self.finish_block()
    }

    /// Cuts a piece; `is_small` says that its content is smaller than a block.
    pub(super) fn cut(&mut self, data: &Data<'_>, is_small: bool) -> Result<()> {
        self.spread.begin(data.fragment.content, is_small);
        if self.fragment != Some(data.fragment) {
            self.fragment = Some(data.fragment);
            self.fragment_len = 0;
        }
        self.refused = Refused::default();
        self.shares = OnceCell::new();
        self.work_left = data.bytes.len().saturating_mul(WORK_FACTOR) + WORK_MIN;

        // The first byte that is neither stored nor repeated, and the first anchor at or behind it.
        let mut start = self.go_on(data)?;
        let mut next = 0;
        for batch in data.anchors.chunks(BATCH) {
            let mut may_have = [false; BATCH];
            for (may, anchor) in may_have.iter_mut().zip(batch) {
                *may = self.index.may_have(anchor.hash);
            }
            for (anchor, may) in batch.iter().zip(may_have) {
                let at = data.at(*anchor);
                if at < start {
                    continue;
                }
                if at - start > PENDING_MAX {
                    let end = self.round_down(at - PENDING_KEPT).max(start);
                    next = self.store(data, start, end, next)?;
                    start = end;
                }
                let best = if may {
                    self.search(data, start, *anchor)
                } else {
                    None
                };
                if let Some(best) = best {
                    next = self.store(data, start, best.begin, next)?;
                    start = self.take_all(data, best)?;
                }
            }
        }
        self.store(data, start, data.bytes.len(), next)?;
        self.new_share.see(data.bytes.len());
        self.fragment_len += data.bytes.len();
        self.found.rereads = self.history.rereads;
        Ok(())
    }

    /// Goes on with the repetition that the last piece has ended in, and returns how far.
    fn go_on(&mut self, data: &Data<'_>) -> Result<usize> {
        match self.follow.take() {
            Some((fragment, offset, place))
                if fragment == data.fragment && offset == data.offset =>
            {
                let len = self.history.equal_after(place, data.bytes);
                let repetition = Repetition {
                    begin: 0,
                    end: self.round_down(len),
                    place,
                };
                // The place is the beginning of another block if the repetition has ended with a full one.
                let is_new = self.history.offset_of(place) == 0;
                if repetition.end == 0 || is_new && !self.is_worth(data, 0, &repetition) {
                    self.go_on_behind(
                        data,
                        Repetition {
                            end: 0,
                            ..repetition
                        },
                    )
                } else {
                    self.take_all(data, repetition)
                }
            }
            _ => Ok(0),
        }
    }

    /// Takes a repetition, and those that follow it at once in the next blocks; returns the end.
    fn take_all(&mut self, data: &Data<'_>, repetition: Repetition) -> Result<usize> {
        self.take(data, repetition)?;
        self.go_on_behind(data, repetition)
    }

    /// Looks for the data behind a repetition at the beginning of the next block, if its block ends there.
    fn go_on_behind(&mut self, data: &Data<'_>, mut last: Repetition) -> Result<usize> {
        loop {
            let block = self.history.block_of(last.place);
            let end = self.history.offset_of(last.place) + (last.end - last.begin);
            if last.end == data.bytes.len() {
                let place = self.history.place(block, end);
                let offset = data.offset + last.end as u64;
                // The place may be the end of a block, where nothing but the next block follows.
                self.follow = Some((data.fragment, offset, place));
                return Ok(last.end);
            }
            if !self.history.is_block_end(block, end) {
                return Ok(last.end);
            }
            let place = self.history.place(block + 1, 0);
            let len = self.history.equal_after(place, &data.bytes[last.end..]);
            let next = Repetition {
                begin: last.end,
                end: self.round_down(last.end + len),
                place,
            };
            if !self.is_worth(data, last.end, &next) {
                return Ok(last.end);
            }
            self.take(data, next)?;
            last = next;
        }
    }

    fn take(&mut self, data: &Data<'_>, repetition: Repetition) -> Result<()> {
        let block = self.history.block_of(repetition.place);
        let size = repetition.end - repetition.begin;
        self.spread.touch(block);
        self.found.matches += 1;
        self.found.bytes += size as u64;
        let block = u32::try_from(block).unwrap_or(u32::MAX);
        let offset = count_of(self.history.offset_of(repetition.place));
        self.chunks
            .add(data.fragment, RawChunk::data(block, offset, count_of(size)))
    }

    /// Returns the longest repetition around an anchor, the latest of equally long ones, if it is worth it.
    fn search(&mut self, data: &Data<'_>, start: usize, anchor: Anchor) -> Option<Repetition> {
        let at = data.at(anchor);
        let mut best: Option<Repetition> = None;
        for place in self.index.find(anchor.hash).places() {
            let age = self.history.open_block() - self.history.block_of(*place);
            if self.work_left == 0
                || age >= self.rules.lookback
                || self.refused.contains(*place, at)
            {
                continue;
            }
            let after = self.history.equal_after(*place, &data.bytes[at..]);
            let (place, after) = self.move_back(*place, &data.bytes[at..], after);
            let before = if after == 0 || self.is_periodic(data, start, place, at, after) {
                0
            } else {
                self.history.equal_before(place, &data.bytes[start..at])
            };
            self.work_left = self.work_left.saturating_sub(after + before);
            let begin = self.round_up(at - before);
            let end = self.round_down(at + after);
            let repetition = Repetition {
                begin,
                end,
                place: place + begin as u64 - at as u64,
            };
            if !self.is_worth(data, start, &repetition) {
                self.refused.add(place, at, at + after);
            } else if best.is_none_or(|best| end - begin > best.end - best.begin) {
                best = Some(repetition);
            }
        }
        best
    }

    /// Where `after` bytes of a place end with its block or with what is stored, and the data go on with the same byte all
    /// over, zeros mostly, there may be more before the place; returns the better place and how many bytes are equal there.
    fn move_back(&mut self, place: Place, data: &[u8], after: usize) -> (Place, usize) {
        if after == 0 || !self.is_end(place, after) {
            return (place, after);
        }
        let run = 1 + equal::prefix(data, &data[1..]);
        self.work_left = self.work_left.saturating_sub(run);
        if run <= after {
            return (place, after);
        }
        let back = self.history.equal_before(place, &data[..run]);
        self.work_left = self.work_left.saturating_sub(back);
        (place - back as u64, run.min(after + back))
    }

    /// Whether a repetition saves more than its chunk costs; `start` is the first byte that is not stored.
    fn is_worth(&self, data: &Data<'_>, start: usize, repetition: &Repetition) -> bool {
        let Some(len) = repetition.end.checked_sub(repetition.begin) else {
            return false;
        };
        let block = self.history.block_of(repetition.place);
        let open = self.history.open_block();
        if self.is_periodic(data, start, repetition.place, repetition.begin, len) {
            return false;
        }
        if block != open {
            let least = if repetition.begin > start {
                self.rules.least_between
            } else {
                self.rules.least_beside
            };
            if len < least || self.is_hardly_in(data, block, len) {
                return false;
            }
            let has_more = repetition.begin > start || repetition.end < data.bytes.len();
            let own = has_more.then_some(open);
            return len >= self.spread.required(least, block, own);
        }
        len >= self.rules.least_same_block
    }

    /// Whether a block that the content has nothing in yet has too little of the piece to be read for it, `len` bytes of it
    /// and what else there may be.
    fn is_hardly_in(&self, data: &Data<'_>, block: u64, len: usize) -> bool {
        let parts = self.rules.parts_max;
        len.saturating_mul(parts) < data.bytes.len()
            && self.spread.is_further(block)
            && !self
                .shares
                .get_or_init(|| self.shares_of(data))
                .has_part(block, parts)
    }

    fn shares_of(&self, data: &Data<'_>) -> Shares {
        let known = data
            .anchors
            .iter()
            .filter(|anchor| self.index.takes(anchor.hash));
        let mut count = 0;
        let mut found = Vec::new();
        for anchor in known {
            let places = self.index.find(anchor.hash);
            let first = found.len();
            for place in places.places() {
                let one = (count, self.history.block_of(*place));
                if !found[first..].contains(&one) {
                    found.push(one);
                }
            }
            count += 1;
        }
        Shares::new(count, &found)
    }

    /// Whether `len` bytes at a place are the last of what is stored, or of their block.
    fn is_end(&self, place: Place, len: usize) -> bool {
        place + len as u64 == self.history.end() || self.history.ends_block(place, len)
    }

    /// Whether a repetition of `len` bytes at `at` ends only because what is stored ends, or its block, and begins again
    /// behind that, so that it would be longer if more were stored first; `start` is the first byte that is not stored.
    fn is_periodic(
        &self,
        data: &Data<'_>,
        start: usize,
        place: Place,
        at: usize,
        len: usize,
    ) -> bool {
        // Otherwise zeros, say, would be cut into repetitions of the last kilobytes of an earlier block.
        if !self.is_end(place, len) || at - start + len >= self.rules.least_periodic {
            return false;
        }
        let rest = &data.bytes[at + len..];
        let probe = &rest[..rest.len().min(PERIOD_PROBE)];
        !probe.is_empty() && data.bytes[start..].starts_with(probe)
    }

    /// Stores new data of a piece, puts its anchors into the index, and returns the first anchor behind it. `next` is
    /// an anchor before which all lie before the data.
    fn store(&mut self, data: &Data<'_>, start: usize, end: usize, next: usize) -> Result<usize> {
        let mut next = next;
        let mut done = start;
        while done < end {
            if !self.has_block {
                self.history.begin(self.sink.begin()?);
                self.has_block = true;
            }
            let offset = self.history.open_len();
            let len = (end - done).min(self.rules.block_len - offset);
            let place = self.history.end();
            let from = data.offset + done as u64;
            let bytes = &data.bytes[done..done + len];
            self.history.append(data.fragment.content, from, bytes);
            let open = self.history.open_block();
            self.spread.touch(open);
            let block = u32::try_from(open).unwrap_or(u32::MAX);
            let chunk = RawChunk::data(block, count_of(offset), count_of(len));
            self.chunks.add(data.fragment, chunk)?;
            while let Some(anchor) = data.anchors.get(next) {
                let at = data.at(*anchor);
                if at >= done + len {
                    break;
                }
                if at >= done {
                    self.index.insert(anchor.hash, place + (at - done) as u64);
                }
                next += 1;
            }
            done += len;
            self.new_share.store(len);
            if self.history.open_len() == self.rules.block_len {
                self.finish_block()?;
            }
        }
        Ok(next)
    }

    fn finish_block(&mut self) -> Result<()> {
        if !self.has_block {
            return Ok(());
        }
        self.has_block = false;
        self.new_share.fade();
        let number = u32::try_from(self.history.open_block())
            .ok()
            .filter(|number| *number < RawChunk::BLOCKS_MAX)
            .ok_or_else(|| Error::limit("more than 2^32 - 2 blocks do not fit into an image"))?;
        let block = self.history.finish();
        self.sink.block(number, block)
    }

    /// Returns the first end of a unit at or behind a byte of the piece.
    fn round_up(&self, at: usize) -> usize {
        let unit = self.rules.granularity;
        (self.fragment_len + at).next_multiple_of(unit) - self.fragment_len
    }

    /// Returns the last end of a unit at or before a byte of the piece, or 0.
    fn round_down(&self, at: usize) -> usize {
        let whole = self.fragment_len + at;
        (whole - whole % self.rules.granularity).saturating_sub(self.fragment_len)
    }
}
