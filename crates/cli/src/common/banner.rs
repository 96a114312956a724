//! What a program says about itself.

use durin_format::section::Version;

/// This release and the format it writes: `durin 0.1.0, DwarFS format 2.5`.
pub(crate) fn release() -> String {
    let format = Version::CURRENT;
    format!(
        "durin {}, DwarFS format {}.{}",
        env!("CARGO_PKG_VERSION"),
        format.major,
        format.minor
    )
}

/// The linked compression libraries, for the long help.
pub(crate) fn libraries() -> String {
    format!("Libraries: {}", durin_codec::library_versions().join(", "))
}
