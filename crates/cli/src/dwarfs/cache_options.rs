//! The `-o` options about the cache of decompressed blocks and the memory it takes.

use std::time::Duration;

use durin_reader::{CacheOptions, Tidy, TidyStrategy};

use crate::common::arguments::{processor_count, worker_count};
use crate::common::{duration, size, system};

/// The share of what a build would take (half of the machine's or the container's memory) that the cache takes at most
/// unless it is told, as 1/N: most of a small container is for something else.
const MEMORY_SHARE: u64 = 2;

/// Without a strategy, memory is given back when the cache was not used for this long.
const IDLE_AFTER: Duration = Duration::from_secs(15);

/// How often that is looked at.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);

/// What was said about the cache.
#[derive(Debug, Default)]
pub(super) struct CacheChoice {
    bytes_max: Option<u64>,
    strategy: Option<TidyStrategy>,
    interval: Option<Duration>,
    age_max: Option<Duration>,
    allocator: Allocator,
}

/// Where blocks get their memory from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Allocator {
    /// Each from the system, which has it back at once when a block goes.
    #[default]
    Mmap,
    /// From the heap, which may keep it for the next block.
    Malloc,
}

impl CacheChoice {
    /// Takes an option; false when it is none of these.
    pub(super) fn take(
        &mut self,
        cache: &mut CacheOptions,
        key: &str,
        value: &str,
    ) -> Result<bool, String> {
        match key {
            "cachesize" => self.bytes_max = Some(size::parse(value)?),
            "workers" if value == "0" => cache.workers = processor_count(),
            "workers" => cache.workers = worker_count(value)?,
            "readahead" => cache.read_ahead_bytes = size::parse(value)?,
            "seq_detector" => {
                let blocks = value.parse();
                cache.run_min = blocks.map_err(|_| "a number of blocks is needed".to_owned())?;
            }
            "decratio" => cache.whole_permille = permille(value)?,
            "block_allocator" => self.allocator = allocator(value)?,
            "tidy_strategy" => self.strategy = Some(strategy(value)?),
            "tidy_interval" => self.interval = Some(span(value)?),
            "tidy_max_age" => self.age_max = Some(span(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Puts together what was said and what follows from the machine.
    /// What is preloaded is to stay, unless something else was said.
    pub(super) fn apply(&mut self, cache: &mut CacheOptions, is_preloaded: bool) {
        if is_preloaded {
            self.strategy.get_or_insert(TidyStrategy::None);
        }
        if self.allocator == Allocator::Mmap {
            system::map_large_allocations();
        }
        cache.bytes_max = self.bytes_max.unwrap_or_else(|| {
            let there_is = durin_writer::automatic_memory_limit();
            cache.bytes_max.min(there_is / MEMORY_SHARE)
        });
        cache.tidy = self.tidy();
        cache.follows_walks = true;
    }

    fn tidy(&self) -> Tidy {
        let (strategy, interval, age_max) = match self.strategy {
            None => (TidyStrategy::Idle, IDLE_INTERVAL, IDLE_AFTER),
            Some(strategy) => {
                let given = Tidy::default();
                let interval = self.interval.unwrap_or(given.interval);
                (strategy, interval, self.age_max.unwrap_or(given.age_max))
            }
        };
        Tidy {
            strategy,
            interval,
            age_max,
            release: Some(system::release_free_memory),
            ..Tidy::default()
        }
    }
}

fn permille(value: &str) -> Result<u32, String> {
    let share: f64 = value
        .parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "a number from 0 to 1 is needed".to_owned())?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 1000"
    )]
    Ok((share * 1000.0) as u32)
}

fn allocator(value: &str) -> Result<Allocator, String> {
    match value {
        "malloc" => Ok(Allocator::Malloc),
        "mmap" => Ok(Allocator::Mmap),
        _ => Err("malloc or mmap is needed".to_owned()),
    }
}

fn strategy(value: &str) -> Result<TidyStrategy, String> {
    match value {
        "none" => Ok(TidyStrategy::None),
        "time" => Ok(TidyStrategy::Time),
        "swap" => Ok(TidyStrategy::Swap),
        _ => Err("none, time or swap is needed".to_owned()),
    }
}

/// A span that a thread can sleep for.
fn span(value: &str) -> Result<Duration, String> {
    let span = Duration::from_nanos(duration::parse_ns(value)?);
    if span.is_zero() {
        return Err("a span above zero is needed".to_owned());
    }
    Ok(span)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn take(options: &[(&str, &str)]) -> Result<(CacheOptions, Tidy), String> {
        let (mut choice, mut cache) = (CacheChoice::default(), CacheOptions::default());
        for (key, value) in options {
            assert!(choice.take(&mut cache, key, value)?, "{key}");
        }
        let tidy = choice.tidy();
        Ok((cache, tidy))
    }

    #[test]
    fn options_have_an_effect() {
        let allocator = |value| {
            let (mut choice, mut cache) = (CacheChoice::default(), CacheOptions::default());
            assert!(choice.take(&mut cache, "block_allocator", value).unwrap());
            choice.allocator
        };
        assert_eq!(CacheChoice::default().allocator, Allocator::Mmap);
        assert_eq!(allocator("mmap"), Allocator::Mmap);
        assert_eq!(allocator("malloc"), Allocator::Malloc);
        let (cache, tidy) = take(&[
            ("workers", "0"),
            ("readahead", "8m"),
            ("seq_detector", "0"),
            ("decratio", "0.25"),
            ("tidy_strategy", "time"),
            ("tidy_interval", "10s"),
            ("tidy_max_age", "2m"),
        ])
        .unwrap();
        assert_eq!(cache.workers, processor_count());
        assert_eq!((cache.read_ahead_bytes, cache.run_min), (8 << 20, 0));
        assert_eq!(cache.whole_permille, 250);
        assert_eq!(tidy.strategy, TidyStrategy::Time);
        let spans = (tidy.interval.as_secs(), tidy.age_max.as_secs());
        assert_eq!(spans, (10, 120));
    }

    #[test]
    fn memory_goes_back_when_idle_unless_told_otherwise() {
        assert_eq!(take(&[]).unwrap().1.strategy, TidyStrategy::Idle);
        let none = take(&[("tidy_strategy", "none")]).unwrap().1;
        assert_eq!(none.strategy, TidyStrategy::None);
        // As in the reference, spans without a strategy say nothing.
        let (_, tidy) = take(&[("tidy_interval", "1h")]).unwrap();
        assert_eq!(
            (tidy.strategy, tidy.interval),
            (TidyStrategy::Idle, IDLE_INTERVAL)
        );
    }

    #[test]
    fn wrong_values_are_refused() {
        for (key, value) in [
            ("workers", "-1"),
            ("decratio", "1.5"),
            ("decratio", "nan"),
            ("block_allocator", "jemalloc"),
            ("tidy_strategy", "always"),
            ("tidy_interval", "0s"),
            ("seq_detector", "x"),
        ] {
            assert!(take(&[(key, value)]).is_err(), "{key}={value}");
        }
    }
}
