//! Has blocks decoded before a worker needs them.
//!
//! Files are cut into work by bytes, and a block may be many times as long: without this all workers would wait for one
//! thread that decodes the block they share.

use std::collections::VecDeque;

use durin_format::BlockIndex;
use durin_reader::Place;

use crate::files::order::Files;
use crate::job::Run;

/// Extents of one file that are looked at.
const EXTENTS_MAX: usize = 4096;

/// Looks at the files to come.
pub(super) struct Ahead<'a> {
    run: &'a Run<'a>,
    files: &'a Files,
    /// The next file to look at.
    next: usize,
    /// For each block asked for and not reached yet, the file that needs it first.
    asked: VecDeque<usize>,
    /// Which blocks were asked for, a bit each.
    seen: Vec<u64>,
    depth: usize,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(run: &'a Run<'a>, files: &'a Files) -> Self {
        let blocks = run.image.block_count() as usize;
        Self {
            run,
            files,
            next: 0,
            asked: VecDeque::new(),
            seen: vec![0; blocks.div_ceil(64)],
            depth: run.image.cache().depth(),
        }
    }

    /// Tells that the work has come to a file.
    pub(super) fn come_to(&mut self, group: usize) {
        while self.asked.front().is_some_and(|first| *first <= group) {
            self.asked.pop_front();
        }
        self.next = self.next.max(group);
        while self.asked.len() < self.depth && self.next < self.files.len() {
            self.look(self.next);
            self.next += 1;
        }
    }

    fn look(&mut self, group: usize) {
        let Some(entry) = self.files.entries(group).first() else {
            return;
        };
        // What is wrong with a file is found when its turn comes.
        let Ok(extents) = self.run.image.chunks(entry.entry.inode) else {
            return;
        };
        for extent in extents.take(EXTENTS_MAX).map_while(Result::ok) {
            if let Place::Data { block, .. } = extent.place
                && self.insert(block)
            {
                self.run.image.cache().prefetch(block);
                self.asked.push_back(group);
                // The rest of a large file follows when its turn comes.
                if self.asked.len() >= self.depth {
                    break;
                }
            }
        }
    }

    fn insert(&mut self, block: BlockIndex) -> bool {
        let Some(word) = self.seen.get_mut(block.0 as usize / 64) else {
            return false;
        };
        let bit = 1 << (block.0 % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
