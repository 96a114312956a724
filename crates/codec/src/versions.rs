//! Which releases of which libraries do the work.

/// Returns the name and release of each compression library, such as `zstd-1.5.7`, in alphabetical order.
#[must_use]
pub fn library_versions() -> Vec<String> {
    vec![
        format!("brotli-{BROTLI_RELEASE}"),
        format!(
            "liblzma-{}",
            dotted(liblzma_release(), [10_000_000, 10_000, 10])
        ),
        format!(
            "lz4-{}",
            dotted(::lz4::version().unsigned_abs(), [10_000, 100, 1])
        ),
        format!("zstd-{}", zstd_safe::version_string()),
    ]
}

/// The release of the `brotli` crate, which does not tell it; a test compares it with the lock file.
const BROTLI_RELEASE: &str = "9.1.1";

#[expect(unsafe_code, reason = "the safe wrapper does not export it")]
fn liblzma_release() -> u32 {
    // SAFETY: the function takes no argument and returns a constant.
    unsafe { liblzma_sys::lzma_version_number() }
}

/// Writes `number`, which has its three parts at the given decimal places.
fn dotted(number: u32, [major, minor, patch]: [u32; 3]) -> String {
    format!(
        "{}.{}.{}",
        number / major,
        number % major / minor,
        number % minor / patch
    )
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn brotli_release_is_the_locked_one() {
        let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
        let lock = std::fs::read_to_string(lock).unwrap();
        let package = format!("name = \"brotli\"\nversion = \"{BROTLI_RELEASE}\"");
        assert!(lock.contains(&package));
    }

    #[test]
    fn versions_look_like_versions() {
        for version in library_versions() {
            let (_, release) = version.split_once('-').unwrap();
            assert_eq!(release.split('.').count(), 3, "{version}");
            assert!(!release.starts_with("0."), "{version}");
        }
    }
}
