//! Options of the reference that this release does not have: scripts that pass them get an answer that says so.

use std::ffi::OsString;

use clap::Args;

use crate::common::exit::Failure;

/// Options without an effect yet, hidden from the help.
#[derive(Args, Debug)]
pub(crate) struct Later {
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "", hide = true)]
    recompress: Option<OsString>,
    #[arg(long, hide = true)]
    recompress_categories: Option<OsString>,
    #[arg(long, hide = true)]
    rebuild_metadata: bool,
    #[arg(long, hide = true)]
    change_block_size: bool,
    #[arg(long, hide = true)]
    remove_header: bool,
    #[arg(long, hide = true)]
    no_check: bool,
}

impl Later {
    /// Refuses them.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let refused = [
            ("--recompress", self.recompress.is_some()),
            (
                "--recompress-categories",
                self.recompress_categories.is_some(),
            ),
            ("--rebuild-metadata", self.rebuild_metadata),
            ("--change-block-size", self.change_block_size),
            ("--remove-header", self.remove_header),
            ("--no-check", self.no_check),
        ];
        if let Some((name, _)) = refused.into_iter().find(|(_, given)| *given) {
            return Err(not_supported(name));
        }
        Ok(())
    }
}

/// The failure for something that the reference can do and this release cannot.
pub(crate) fn not_supported(what: &str) -> Failure {
    Failure::Usage(format!("{what} is not supported by this release yet"))
}
