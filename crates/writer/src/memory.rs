//! How many blocks may be in memory at once.

use crate::context::Context;

/// Assumed where the system does not tell, and the least that is assumed.
const RAM_BYTES_MIN: u64 = 256 << 20;
/// More blocks than this do not keep more processors busy; it matters for very small blocks only.
const BLOCK_COUNT_MAX: u64 = 4096;

/// Returns how many blocks may exist between the moment they are begun and the moment they are written.
///
/// Without a limit by the user it is what the reference takes: enough for all workers and some more, or a 64th of the
/// machine's memory if that is more, but no more than an eighth. Source: format specification, A.2.
pub(crate) fn block_count_max(context: Context<'_>) -> usize {
    let options = context.options;
    let block_bytes = u64::from(options.block_size());
    let workers = options.workers.max(1) as u64;
    let limit = match options.memory_limit {
        Some(limit) => limit,
        None => automatic_limit(workers, block_bytes, ram_bytes()),
    };
    if limit < workers * block_bytes {
        context.events.warn(&format!(
            "a memory limit of {limit} bytes is too low to keep {workers} workers busy with blocks of {block_bytes} bytes"
        ));
    }
    let count = (limit / block_bytes).clamp(1, BLOCK_COUNT_MAX.max(workers + 1));
    usize::try_from(count).unwrap_or(1)
}

fn automatic_limit(workers: u64, block_bytes: u64, ram_bytes: u64) -> u64 {
    let wanted = workers * block_bytes;
    let wanted = if wanted < ram_bytes / 64 {
        ram_bytes / 64
    } else {
        wanted + workers.min(8) * block_bytes
    };
    wanted.min(ram_bytes / 8)
}

fn ram_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    #[allow(
        clippy::useless_conversion,
        reason = "the field has the width of the machine's words"
    )]
    let total = u64::try_from(info.totalram).unwrap_or(u64::MAX);
    total
        .saturating_mul(u64::from(info.mem_unit))
        .max(RAM_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_limits() {
        let mib = 1 << 20;
        assert_eq!(automatic_limit(2, mib, 64 << 30), 1 << 30);
        assert_eq!(automatic_limit(16, 64 * mib, 32 << 30), 24 * 64 * mib);
        assert_eq!(automatic_limit(16, 64 * mib, 4 << 30), 512 * mib);
    }
}
