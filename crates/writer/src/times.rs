//! Telling users who ask for finer times than their input has.

use crate::context::Context;
use crate::options::SECOND_NS;
use crate::tree::Tree;

/// So few entries may have round times by chance.
const ENTRIES_MIN: usize = 8;

/// Warns if all times of the input are multiples of a unit larger than the one they are stored in.
pub(crate) fn warn_if_coarse(context: Context<'_>, tree: &Tree) {
    let options = context.options;
    let wanted = options.time_resolution.ns();
    if wanted >= SECOND_NS || options.set_time.is_some() || tree.entries.len() < ENTRIES_MIN {
        return;
    }
    let modified = tree.entries.iter().map(|entry| entry.mtime.nsec);
    let further = tree.further_times.iter();
    let further = further.flat_map(|times| [times.atime.nsec, times.ctime.nsec]);
    let unit = unit_ns(modified.chain(further));
    if unit > wanted {
        context.events.warn(&format!(
            "times are stored in units of {wanted} ns, but those of the input are multiples of {unit} ns"
        ));
    }
}

/// Returns the largest power of ten nanoseconds, up to a second, that all times are multiples of.
fn unit_ns(times: impl Iterator<Item = u32>) -> u64 {
    let mut unit = SECOND_NS;
    for nsec in times {
        while !u64::from(nsec).is_multiple_of(unit) {
            unit /= 10;
        }
        if unit == 1 {
            break;
        }
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_unit() {
        assert_eq!(unit_ns([0, 0].into_iter()), SECOND_NS);
        assert_eq!(unit_ns([100_000_000, 0].into_iter()), 100_000_000);
        assert_eq!(unit_ns([500, 20].into_iter()), 10);
        assert_eq!(unit_ns([500, 21].into_iter()), 1);
    }
}
