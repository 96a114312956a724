//! Giving memory back when it is not used.
//!
//! One thread, which sleeps most of the time. It starts with the first block that is decoded, so that a program that forks
//! after opening the image still has it.

use std::io::{Read as _, Seek as _};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::entries::Candidate;
use super::memory::CacheMemory;
use crate::options::{Tidy, TidyStrategy};
use crate::sync::{Condvar, Mutex, lock, wait_for};

/// The thread; dropping this ends it.
pub(super) struct Tidying {
    ending: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Ending {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Tidying {
    /// Starts the thread if there is anything for it to do. `None` also if the system has none to give.
    pub(super) fn start(memory: &CacheMemory, tidy: &Tidy) -> Option<Self> {
        if tidy.strategy == TidyStrategy::None {
            return None;
        }
        let ending = Arc::new(Ending::default());
        let thread = {
            let (ending, memory, tidy) = (Arc::clone(&ending), memory.clone(), tidy.clone());
            Builder::new()
                .name("tidy".to_owned())
                .spawn(move || ending.every(tidy.interval, || run(&memory, &tidy)))
                .ok()?
        };
        Some(Self {
            ending,
            thread: Some(thread),
        })
    }
}

impl Drop for Tidying {
    fn drop(&mut self) {
        *lock(&self.ending.is_over) = true;
        self.ending.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so itself.
            thread.join().ok();
        }
    }
}

impl Ending {
    fn every(&self, interval: Duration, mut run: impl FnMut()) {
        let mut is_over = lock(&self.is_over);
        while !*is_over {
            is_over = wait_for(&self.changed, is_over, interval);
            if !*is_over {
                drop(is_over);
                run();
                is_over = lock(&self.is_over);
            }
        }
    }
}

fn run(memory: &CacheMemory, tidy: &Tidy) {
    let before = memory.held_bytes();
    if tidy.strategy != TidyStrategy::None && memory.idle_time() >= tidy.age_max {
        memory.drop_payloads();
    }
    match tidy.strategy {
        TidyStrategy::None => {}
        TidyStrategy::Idle => {
            if memory.idle_time() >= tidy.age_max {
                memory.shrink(tidy.kept_bytes);
            }
        }
        TidyStrategy::Time => {
            let idle = memory.idle_time();
            let now = memory.last_use_ms().saturating_add(millis(idle));
            let age_max = millis(tidy.age_max);
            memory.throw_out_if(&|one| now.saturating_sub(one.used_ms) >= age_max);
        }
        TidyStrategy::Swap => memory.throw_out_if(&is_swapped_out),
    }
    if memory.held_bytes() < before
        && let Some(release) = tidy.release
    {
        release();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whether any page of a block has left memory: reading it back takes about as long as decoding it.
fn is_swapped_out(candidate: &Candidate) -> bool {
    /// Pages looked at, spread over the block.
    const SAMPLES: u64 = 16;
    /// Source: Documentation/admin-guide/mm/pagemap.rst.
    const SWAPPED: u64 = 1 << 62;
    const PAGE_LEN: u64 = 4096;
    let Ok(mut map) = std::fs::File::open("/proc/self/pagemap") else {
        return false;
    };
    let (start, len) = candidate.address;
    let step = (len as u64 / SAMPLES).max(PAGE_LEN);
    let mut offset = 0;
    while offset < len as u64 {
        let page = (start as u64 + offset) / PAGE_LEN;
        let mut word = [0; 8];
        let found = map
            .seek(std::io::SeekFrom::Start(page * 8))
            .and_then(|_| map.read_exact(&mut word));
        if found.is_ok() && u64::from_le_bytes(word) & SWAPPED != 0 {
            return true;
        }
        offset += step;
    }
    false
}
