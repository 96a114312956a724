//! What the process has used.

/// Returns the most resident memory that this process has held, in bytes; 0 where the system does not tell.
///
/// Not `ru_maxrss`, which starts with the peak of the process that started this one.
#[must_use]
pub fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    parse_peak(&status).unwrap_or(0)
}

fn parse_peak(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_is_read() {
        assert_eq!(
            parse_peak("VmPeak:\t 9 kB\nVmHWM:\t  12 kB\n"),
            Some(12 << 10)
        );
        assert_eq!(parse_peak("nothing"), None);
        assert!(peak_bytes() > 0);
    }
}
