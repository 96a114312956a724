//! Regular files, in the order of their data, by several threads.
//!
//! The calling thread hands out work in data order; each worker reads through the shared block cache and writes. Work is cut
//! where blocks begin, so that workers decode different blocks at the same time and each block once, and files larger than
//! [`hand_out::SPLIT_BYTES`] are cut into pieces that several workers write. The queue holds twice as many pieces of work as there are
//! workers; the sender waits when it is full. A worker holds one buffer; extents are only listed for pieces of large files,
//! so that memory does not depend on what the image says.

mod hand_out;
pub(crate) mod order;
mod write;

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crossbeam_channel::{Receiver, bounded};
use durin_format::{Error, Result};

use crate::content::BUFFER_LEN;
use crate::job::Job;

use hand_out::Work;
use order::Files;

/// Fewer workers leave the disk idle while they decode, more only wait for each other.
const WORKERS: std::ops::RangeInclusive<usize> = 2..=8;

/// Extracts all regular files and the hard links to them. `is_there` tells which directories have been made.
pub(crate) fn extract(job: &Job<'_>, is_there: &[bool]) -> Result<()> {
    let files = Files::in_data_order(job, |dir| {
        is_there.get(dir as usize).is_some_and(|there| *there)
    })?;
    files.count_total(job);
    let end = End::default();
    let workers = workers(job.options.disk_writers);
    let (sender, receiver) = bounded(2 * workers);
    thread::scope(|scope| {
        let mut started = Ok(());
        for number in 0..workers {
            let receiver = receiver.clone();
            let (files, end) = (&files, &end);
            let work = move || work(job, files, end, &receiver);
            if let Err(error) = thread::Builder::new().spawn_scoped(scope, work) {
                // The others do it, if there are any.
                if number == 0 {
                    started = Err(Error::io("cannot start a thread", error));
                }
                break;
            }
        }
        drop(receiver);
        end.keep(started.and_then(|()| hand_out::hand_out(job, &files, &end, &sender)));
        drop(sender);
    });
    end.result()
}

/// How many threads to start.
pub(crate) fn workers(wanted: usize) -> usize {
    if wanted > 0 {
        return wanted;
    }
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    cores.clamp(*WORKERS.start(), *WORKERS.end())
}

/// The first error, which ends all threads.
#[derive(Default)]
struct End {
    is_reached: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl End {
    fn keep(&self, result: Result<()>) {
        if let Err(error) = result {
            let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
            self.is_reached.store(true, Ordering::Relaxed);
        }
    }

    fn is_reached(&self) -> bool {
        self.is_reached.load(Ordering::Relaxed)
    }

    fn result(self) -> Result<()> {
        let error = self
            .error
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)
    }
}

fn work(job: &Job<'_>, files: &Files, end: &End, receiver: &Receiver<Work>) {
    let mut buffer = vec![0; BUFFER_LEN];
    for work in receiver {
        match work {
            Work::Files(groups) => {
                for group in groups {
                    // The queue is still drained then, so that the sender does not wait for ever.
                    if end.is_reached() {
                        break;
                    }
                    end.keep(write::whole(job, files.entries(group), &mut buffer));
                }
            }
            Work::Piece(large, extents) => {
                let written = large.write_piece(job, files, end, extents, &mut buffer);
                end.keep(written.and(large.end_piece(job, files)));
            }
        }
    }
}
