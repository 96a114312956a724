//! Seconds and memory of the orders by similarity, for a million made-up contents of each kind: `cargo xtask order`.

#![expect(clippy::print_stdout, reason = "figures for the terminal")]

use std::time::Instant;

use durin_writer::MadeUp;

const COUNT: u32 = 1_000_000;

fn main() {
    // `cargo bench` passes options of the standard harness, of which none matters here.
    measure("nilsimsa", MadeUp::digests(COUNT), &[1, 2]);
    measure("similarity", MadeUp::sketches(COUNT), &[1, 2, 4]);
}

fn measure(order: &str, kinds: Vec<MadeUp>, threads: &[usize]) {
    for contents in kinds {
        for threads in threads {
            // So that the peak is that of this order; without it, it is that of the process so far.
            std::fs::write("/proc/self/clear_refs", "5").ok();
            let before = kib_of("VmRSS:").unwrap_or(0);
            let begin = Instant::now();
            let count = contents.order(*threads).len();
            let seconds = begin.elapsed().as_secs_f64();
            let peak = kib_of("VmHWM:").unwrap_or(0).saturating_sub(before) / 1024;
            println!(
                "{order}, {}: {count} contents, {threads} threads: {seconds:.2} s, at most {peak} MiB",
                contents.name
            );
        }
    }
}

fn kib_of(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}
