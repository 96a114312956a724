//! Reading all files of an image with several threads: in the order of their data, so that each block is decompressed
//! once, and a content that several files share only once. What comes of it is used in that same order, whatever the number
//! of threads.
//!
//! Memory: the names of all files, each directory's path once, and the results that came before an earlier one, of which
//! there are not many.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex};

use durin_format::{InodeNum, Result};
use durin_reader::{FileKind, Image, WalkEntry};

use super::exit::Failure;
use super::logger::Logger;

/// Results that may wait for an earlier one; threads that are further ahead wait themselves.
const AHEAD_MAX: usize = 1024;

/// All files with the same content.
pub(crate) struct Content {
    /// Any inode that has it.
    pub(crate) inode: InodeNum,
    pub(crate) paths: Vec<FilePath>,
}

/// The path of a file; files of a directory share its path.
#[derive(Debug)]
pub(crate) struct FilePath {
    /// With the slash at its end.
    dir: Arc<[u8]>,
    name: Box<[u8]>,
}

impl FilePath {
    /// All of it.
    pub(crate) fn whole(&self) -> Vec<u8> {
        [&self.dir, &self.name[..]].concat()
    }
}

/// The directories that a walk is in, as far as it has met files there.
#[derive(Default)]
struct Dirs(Vec<Arc<[u8]>>);

impl Dirs {
    /// Takes a path apart that is the next one of a walk.
    fn split(&mut self, path: &[u8]) -> FilePath {
        let name_start = path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |slash| slash + 1);
        let (dir, name) = path.split_at_checked(name_start).unwrap_or_default();
        // What lies deeper, or beside it, the walk has left.
        while self.0.last().is_some_and(|last| {
            last.len() > dir.len() || (last.len() == dir.len() && **last != *dir)
        }) {
            self.0.pop();
        }
        let known = self.0.last().filter(|last| ***last == *dir).cloned();
        let dir = known.unwrap_or_else(|| {
            let dir: Arc<[u8]> = Arc::from(dir);
            self.0.push(Arc::clone(&dir));
            dir
        });
        FilePath {
            dir,
            name: Box::from(name),
        }
    }
}

/// Finds all paths of each content, of entries that are wanted. What cannot be read is reported; also returns how much.
pub(crate) fn in_data_order(
    image: &Image,
    entries: impl Iterator<Item = Result<WalkEntry>>,
    logger: &Logger,
) -> Result<(Vec<Content>, u64)> {
    let mut paths: HashMap<u32, Content> = HashMap::new();
    let mut dirs = Dirs::default();
    let mut errors = 0;
    for entry in entries {
        let entry = entry.and_then(|entry| match entry.attr.kind {
            FileKind::Regular => image
                .content_number(entry.attr.inode)
                .map(|number| Some((number, entry))),
            _ => Ok(None),
        });
        match entry {
            Ok(None) => {}
            Ok(Some((number, entry))) => {
                let content = paths.entry(number).or_insert_with(|| Content {
                    inode: entry.attr.inode,
                    paths: Vec::new(),
                });
                content.paths.push(dirs.split(&entry.path));
            }
            Err(error) => {
                logger.error(error.to_string());
                errors += 1;
            }
        }
    }
    let mut contents = Vec::with_capacity(paths.len());
    for inode in image.files_in_data_order()? {
        contents.extend(paths.remove(&image.content_number(inode)?));
    }
    Ok((contents, errors))
}

/// Threads that decode ahead for so many that read: these would all wait for one, which decodes the block they are in.
pub(crate) fn threads_ahead(workers: usize) -> usize {
    if workers > 1 { workers } else { 0 }
}

/// As [`each`] for contents of an image that are read as a whole.
pub(crate) fn each_content<S, T: Send>(
    image: &Image,
    contents: &[Content],
    workers: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &Content) -> T + Sync,
    mut finish: impl FnMut(&Content, T) -> std::result::Result<(), Failure> + Send,
) -> std::result::Result<(), Failure> {
    let plan = image.plan_reading(contents.iter().map(|content| content.inode));
    let mut done = 0;
    plan.come_to(0);
    each(contents, workers, state, work, |content, result| {
        done += 1;
        plan.done(done);
        plan.come_to(done);
        finish(content, result)
    })
}

/// Calls `work` for each item with several threads, and `finish` with what came of it, in order.
/// Each thread has a state of its own, made by `state`, such as a buffer.
pub(crate) fn each<I: Sync, S, T: Send>(
    items: &[I],
    workers: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &I) -> T + Sync,
    finish: impl FnMut(&I, T) -> std::result::Result<(), Failure> + Send,
) -> std::result::Result<(), Failure> {
    let line = Mutex::new(Line {
        taken: 0,
        finished: 0,
        waiting: BTreeMap::new(),
        is_stopped: false,
        finish,
    });
    let moved = Condvar::new();
    let run = || -> std::result::Result<(), Failure> {
        let mut state = state();
        while let Some((index, item)) = take(items, &line, &moved) {
            let result = work(&mut state, item);
            let Ok(mut line) = line.lock() else { break };
            let finished = line.put(index, result, items);
            moved.notify_all();
            finished?;
        }
        Ok(())
    };
    run_threads(workers.min(items.len()), &run)
}

/// The results on their way out.
struct Line<T, F> {
    /// The item that is worked on next.
    taken: usize,
    /// The item whose result comes out next.
    finished: usize,
    waiting: BTreeMap<usize, T>,
    is_stopped: bool,
    finish: F,
}

impl<T, F> Line<T, F> {
    fn put<I>(&mut self, index: usize, result: T, items: &[I]) -> std::result::Result<(), Failure>
    where
        F: FnMut(&I, T) -> std::result::Result<(), Failure>,
    {
        self.waiting.insert(index, result);
        while let Some(result) = self.waiting.remove(&self.finished) {
            if let Some(item) = items.get(self.finished) {
                (self.finish)(item, result).inspect_err(|_| self.is_stopped = true)?;
            }
            self.finished += 1;
        }
        Ok(())
    }
}

/// Takes the next item, once it is not too far ahead.
fn take<'a, I, T, F>(
    items: &'a [I],
    line: &Mutex<Line<T, F>>,
    moved: &Condvar,
) -> Option<(usize, &'a I)> {
    let mut line = line.lock().ok()?;
    while !line.is_stopped && line.taken >= line.finished.saturating_add(AHEAD_MAX) {
        line = moved.wait(line).ok()?;
    }
    let index = line.taken;
    let item = items.get(index).filter(|_| !line.is_stopped)?;
    line.taken += 1;
    Some((index, item))
}

/// Runs `work` on this thread and `count - 1` others.
fn run_threads(
    count: usize,
    work: &(impl Fn() -> std::result::Result<(), Failure> + Sync),
) -> std::result::Result<(), Failure> {
    std::thread::scope(|scope| {
        // A thread that cannot be started leaves its share to the others.
        let others: Vec<_> = (1..count)
            .filter_map(|_| {
                std::thread::Builder::new()
                    .name("contents".to_owned())
                    .spawn_scoped(scope, work)
                    .ok()
            })
            .collect();
        let mut result = work();
        for other in others {
            result = result.and(other.join().unwrap_or(Ok(())));
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_directory_share_its_path() {
        let mut dirs = Dirs::default();
        let paths = [
            "a", "b/c", "b/d/e", "b/d/f/g", "b/h", "bb/i", "c/j", "/k", "l", "b/m",
        ];
        let split = paths.map(|path| dirs.split(path.as_bytes()));
        assert_eq!(split.each_ref().map(FilePath::whole), paths.map(Vec::from));
        assert!(Arc::ptr_eq(&split[1].dir, &split[4].dir));
        assert!(Arc::ptr_eq(&split[0].dir, &split[8].dir));
        assert_eq!(dirs.0.len(), 2);
    }

    #[test]
    fn results_come_in_order_with_any_number_of_threads() {
        let items: Vec<usize> = (0..5000).collect();
        for workers in [1, 2, 7] {
            let mut seen = Vec::new();
            let square = |_: &mut (), item: &usize| item * item;
            let finish = |item: &usize, square: usize| {
                assert_eq!(square, item * item);
                seen.push(*item);
                Ok(())
            };
            assert!(each(&items, workers, || (), square, finish).is_ok());
            assert_eq!(seen, items);
        }
    }

    #[test]
    fn a_failure_stops_all_threads() {
        let items: Vec<usize> = (0..100_000).collect();
        let finish = |item: &usize, ()| match item {
            10 => Err(Failure::BrokenPipe),
            _ => Ok(()),
        };
        let result = each(&items, 4, || (), |_, _| (), finish);
        assert!(matches!(result, Err(Failure::BrokenPipe)));
    }
}
