//! `DWARFS_LOG_MEMORY_USAGE`: the memory of the process over time, as a table that plotting programs read.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use durin_format::Error;

use crate::common::escape;
use crate::common::logger::Logger;
use crate::common::output;

/// Names the file.
const VARIABLE: &str = "DWARFS_LOG_MEMORY_USAGE";
/// Has the system add up all mappings, which is exact and takes longer.
const ACCURATE_VARIABLE: &str = "DWARFS_ACCURATE_MEMORY_USAGE";
/// Time between two lines: memory grows in steps of a block, which take longer than this to fill.
const INTERVAL: Duration = Duration::from_millis(100);

/// Where the kernel tells the memory of a process, and what it calls resident, anonymous and file-backed memory.
#[derive(Clone, Copy)]
struct Sort {
    path: &'static str,
    names: [&'static str; 2],
}

const QUICK: Sort = Sort {
    path: "/proc/self/status",
    names: ["VmRSS:", "RssAnon:"],
};
const ACCURATE: Sort = Sort {
    path: "/proc/self/smaps_rollup",
    names: ["Rss:", "Anonymous:"],
};

/// Does `work`, and logs the memory of the process meanwhile if the environment asks for it; not to `input`, which is an
/// image where one is rewritten.
pub(super) fn during<T>(
    input: Option<&Path>,
    logger: &Logger,
    work: impl FnOnce() -> T,
) -> Result<T, Error> {
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else {
        return Ok(work());
    };
    if let Some(input) = input {
        output::refuse_own_input(input, [Path::new(&path)])?;
    }
    let accurate = std::env::var_os(ACCURATE_VARIABLE);
    let sort = match accurate.as_deref().and_then(OsStr::to_str) {
        None | Some("" | "0") => QUICK,
        Some(_) => ACCURATE,
    };
    let file = match File::create(&path) {
        Ok(file) => file,
        Err(error) => {
            let path = escape::path(Path::new(&path));
            logger.warn(format!("{VARIABLE}: cannot write '{path}': {error}"));
            return Ok(work());
        }
    };
    Ok(thread::scope(|scope| {
        let (ending, ended) = mpsc::channel::<()>();
        let log = move || drop(write(file, sort, &ended));
        // Without the thread there is no log, which is no reason not to build an image.
        thread::Builder::new().spawn_scoped(scope, log).ok();
        let result = work();
        drop(ending);
        result
    }))
}

fn write(mut file: File, sort: Sort, ended: &Receiver<()>) -> io::Result<()> {
    let begun = Instant::now();
    writeln!(file, "time\ttotal\tanon\tfile\tallocated")?;
    loop {
        let wait = ended.recv_timeout(INTERVAL);
        let text = fs::read_to_string(sort.path)?;
        let [total, anonymous] = sort.names.map(|name| bytes(&text, name).unwrap_or(0));
        let backed = total.saturating_sub(anonymous);
        let seconds = begun.elapsed().as_secs_f64();
        // What the allocator has given out is not known: asking it stops all threads.
        writeln!(file, "{seconds:.3}\t{total}\t{anonymous}\t{backed}\t")?;
        if wait != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
    }
}

/// Finds a line such as `VmRSS:     1234 kB`.
fn bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sorts_tell() {
        for sort in [QUICK, ACCURATE] {
            let text = fs::read_to_string(sort.path).expect("Linux");
            let [total, anonymous] = sort.names.map(|name| bytes(&text, name));
            assert!(total > anonymous && anonymous > Some(1 << 12), "{text}");
        }
        assert_eq!(bytes("VmRSS:\t  12 kB\n", "VmRSS:"), Some(12 << 10));
        assert_eq!(bytes("VmRSS: many\n", "VmRSS:"), None);
    }
}
