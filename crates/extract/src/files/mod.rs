//! Regular files, block by block, by several threads.
//!
//! [`window`] sorts what is to be written by block; [`pool`] has each block decoded once, outside of the cache and into a
//! buffer that is used again. Who decodes a block writes its pieces as they come, while the processor's cache still has
//! them; when others have nothing to do, they get what is left ([`part`], [`write`]).
//! **Memory**: two blocks and a half for each block that is being decoded, as many as fit into the cache's limit but one at
//! least, and the pieces of a window.

pub(crate) mod order;
mod part;
mod pool;
mod window;
mod write;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread;

use durin_format::{Error, Result};

use crate::job::Job;

use order::Files;
use part::Parts;
use pool::{Buffers, Limits, Pool, Spare, Task};
use window::{Lister, Window};

/// Extracts all regular files and the hard links to them. `is_there` tells which directories have been made.
pub(crate) fn extract(job: &Job<'_>, is_there: &[bool]) -> Result<()> {
    let files = Files::in_data_order(job, |dir| {
        is_there.get(dir as usize).is_some_and(|there| *there)
    })?;
    files.count_total(job);
    let limits = limits(job);
    let parts = Parts::new(job, &files);
    let mut lister = Lister::new(job, &files);
    let mut spare = Spare::default();
    loop {
        let window = match lister.next() {
            Ok(Some(window)) => window,
            Ok(None) => return Ok(()),
            Err(error) => {
                lister.abandon();
                return Err(error);
            }
        };
        let pool = Pool::new(&window, limits, std::mem::take(&mut spare));
        let written = write_window(&parts, &window, &pool, limits);
        spare = pool.into_spare();
        if written.is_err() {
            // No partial file stays behind.
            for target in &window.files {
                target.fail(job, files.entries(target.group));
            }
            return written;
        }
    }
}

/// A block that is being decoded takes its own size, that of its payload, and the state of the decoder.
const HALF_BLOCKS: u64 = 5;

fn limits(job: &Job<'_>) -> Limits {
    let cache = job.image.cache();
    let block = u64::from(job.image.block_size()).saturating_mul(HALF_BLOCKS) / 2;
    let fitting = usize::try_from(cache.memory().bytes_max() / block.max(1));
    let blocks = fitting.unwrap_or(usize::MAX).max(1);
    let writing = job.options.workers();
    Limits {
        decoding: writing.min(cache.workers().max(1)),
        writing,
        blocks,
    }
}

/// Starts as many workers as there is work for.
fn write_window(parts: &Parts<'_>, window: &Window, pool: &Pool<'_>, limits: Limits) -> Result<()> {
    let end = End::default();
    thread::scope(|scope| {
        for _ in 1..limits.writing {
            let (end, pool) = (&end, pool);
            let work = move || work(parts, window, pool, end);
            // Without them this thread does it all.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work(parts, window, pool, &end);
    });
    end.result()
}

/// The first error, which ends all threads.
#[derive(Default)]
struct End {
    error: Mutex<Option<Error>>,
}

impl End {
    /// Returns whether it was none.
    fn keep(&self, pool: &Pool<'_>, result: Result<()>) -> bool {
        let Err(error) = result else {
            return true;
        };
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        pool.end();
        false
    }

    fn result(self) -> Result<()> {
        let error = self
            .error
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)
    }
}

fn work(parts: &Parts<'_>, window: &Window, pool: &Pool<'_>, end: &End) {
    while let Some(task) = pool.next() {
        match task {
            Task::Decode(pieces, mut buffers) => {
                let mut rest = pieces.clone();
                let mut step = |bytes: &[u8]| {
                    parts.job.check_cancel()?;
                    if pool.is_somebody_idle() {
                        return Ok(());
                    }
                    let ready = pool::ready(&window.pieces, &rest, bytes.len());
                    let done = std::mem::replace(&mut rest.start, ready)..ready;
                    match end.keep(pool, write(parts, window, done, bytes)) {
                        true => Ok(()),
                        false => Err(Error::cancelled()),
                    }
                };
                match decode(parts.job, window, &pieces, &mut buffers, &mut step) {
                    Ok(()) => pool.decoded(buffers, rest),
                    Err(error) => {
                        pool.failed(buffers);
                        end.keep(pool, fail(parts, window, rest, &error));
                    }
                }
            }
            Task::Write(block, pieces) => {
                end.keep(pool, write(parts, window, pieces, &block));
                pool.written(Some(block));
            }
            Task::Empty(places) => {
                end.keep(pool, make_empty(parts, window, places));
                pool.written(None);
            }
        }
    }
}

/// Decodes the block of some pieces as far as they reach, and calls `step` with what is there so far.
fn decode(
    job: &Job<'_>,
    window: &Window,
    pieces: &Range<usize>,
    Buffers { payload, block }: &mut Buffers,
    step: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let pieces = window.pieces.get(pieces.clone()).unwrap_or_default();
    let end = |piece: &window::Piece| u64::from(piece.block_offset) + u64::from(piece.len);
    let Some((first, end)) = pieces.first().zip(pieces.iter().map(end).max()) else {
        return Ok(());
    };
    let cache = job.image.cache();
    cache.decode_alone(first.block, end, payload, block, step)
}

fn write(parts: &Parts<'_>, window: &Window, pieces: Range<usize>, block: &[u8]) -> Result<()> {
    let pieces = window.pieces.get(pieces).unwrap_or_default();
    for of_file in pieces.chunk_by(|a, b| a.file == b.file) {
        let target = of_file.first().and_then(|piece| window.file(piece.file));
        if let Some(target) = target {
            parts.write(target, block, of_file)?;
        }
    }
    Ok(())
}

/// Gives up the files that need a block which cannot be read.
fn fail(parts: &Parts<'_>, window: &Window, pieces: Range<usize>, error: &Error) -> Result<()> {
    let pieces = window.pieces.get(pieces).unwrap_or_default();
    for of_file in pieces.chunk_by(|a, b| a.file == b.file) {
        let target = of_file.first().and_then(|piece| window.file(piece.file));
        if let Some(target) = target {
            parts.fail(target, of_file, error)?;
        }
    }
    Ok(())
}

fn make_empty(parts: &Parts<'_>, window: &Window, places: Range<usize>) -> Result<()> {
    for place in window.empty.get(places).unwrap_or_default() {
        parts.job.check_cancel()?;
        if let Some(target) = window.file(*place) {
            parts.finish(target)?;
        }
    }
    Ok(())
}
