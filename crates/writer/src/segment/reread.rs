//! Reading data of contents a second time, for comparison.

use std::collections::VecDeque;

use super::history::Reread;
use crate::dedupe::ContentIndex;
use crate::files::{FileIndex, OpenFile, Opener};
use crate::read::Source;

/// Files that stay open: neighbours in a block are asked for one after the other.
const OPEN_MAX: usize = 4;

/// Reads from the input of a build.
pub(crate) struct SourceReread<'a> {
    source: &'a Source<'a>,
    opener: Opener<'a>,
    /// The latest last.
    open: VecDeque<(FileIndex, OpenFile)>,
}

impl<'a> SourceReread<'a> {
    pub(super) fn new(source: &'a Source<'a>) -> Self {
        Self {
            source,
            opener: source.opener(),
            open: VecDeque::new(),
        }
    }

    /// Returns the file with this content that was opened last, or opens one.
    fn open(&mut self, content: ContentIndex) -> Option<&OpenFile> {
        let files = self.source.files;
        let mut candidates = self.source.contents.files(content).iter();
        let index = *candidates.find(|index| !files.is_lost(**index))?;
        let known = self.open.iter().position(|(open, _)| *open == index);
        if let Some(at) = known {
            return self.open.get(at).map(|(_, file)| file);
        }
        let file = self.opener.open(files.file(index)).ok()?;
        if self.open.len() == OPEN_MAX {
            self.open.pop_front();
        }
        self.open.push_back((index, file));
        self.open.back().map(|(_, file)| file)
    }
}

impl Reread for SourceReread<'_> {
    fn reread(&mut self, content: ContentIndex, offset: u64, target: &mut [u8]) -> bool {
        self.open(content)
            .is_some_and(|file| file.read_exact_at(target, offset).is_ok())
    }
}
