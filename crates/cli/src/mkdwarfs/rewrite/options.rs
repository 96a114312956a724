//! The options that have an image rewritten.

use clap::{Args, ValueEnum};
use durin_rewrite::Recompress;

/// Options for rewriting.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Rewriting an image")]
pub(crate) struct Rewriting {
    /// Make a new image from the image --input and recompress all, block, metadata or none of it [default: all]
    ///
    /// Blocks are decoded and compressed as --compress-level, --compression and the others say, schema and metadata likewise. 'none' copies all of them into a container of today's format. Options about scanning, ordering and segmenting have no effect.
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "all", hide_possible_values = true)]
    pub(super) recompress: Option<Mode>,

    /// Recompress only blocks of these categories, or with '!' in front all but these
    #[arg(
        long,
        value_name = "[!]CAT[,CAT...]",
        conflicts_with = "change_block_size",
        hide_short_help = true
    )]
    pub(super) recompress_categories: Option<String>,

    /// Make a new image from the image --input, with metadata described anew in today's layout
    ///
    /// Implies --recompress=metadata. Applies --set-owner, --set-group, --set-time, --keep-all-times, --time-resolution, --chmod, --pack-metadata and the options that leave something out of the metadata. Without --keep-all-times only times of modification are kept; times keep their resolution unless a coarser one is given.
    #[arg(long, hide_short_help = true)]
    pub(super) rebuild_metadata: bool,

    /// Make a new image from the image --input, with blocks of the size that --block-size-bits says
    ///
    /// Implies --recompress=all and --rebuild-metadata. Data of each category are strung together and cut anew.
    #[arg(long, hide_short_help = true)]
    pub(super) change_block_size: bool,

    /// Drop what stands in front of the image that is rewritten
    #[arg(long, conflicts_with = "header", hide_short_help = true)]
    pub(super) remove_header: bool,

    /// Do not verify the whole image before rewriting it
    ///
    /// Each section is verified when it is read in any case: a damaged one ends the work later.
    #[arg(long, hide_short_help = true)]
    pub(super) no_check: bool,
}

/// `--recompress`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    All,
    Block,
    Metadata,
    None,
}

impl Rewriting {
    /// Whether the input is an image to rewrite.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.recompress.is_some() || self.rebuild_metadata || self.change_block_size
    }

    /// An option that only makes sense for rewriting.
    pub(crate) fn stray(&self) -> Option<&'static str> {
        let strays = [
            (
                self.recompress_categories.is_some(),
                "--recompress-categories",
            ),
            (self.remove_header, "--remove-header"),
            (self.no_check, "--no-check"),
        ];
        let mut given = strays.into_iter().filter(|(given, _)| *given);
        let (_, name) = given.next()?;
        (!self.is_asked_for()).then_some(name)
    }

    /// What is recompressed, once all is said that implies it.
    pub(super) fn recompresses(&self) -> Recompress {
        let asked = match self.recompress {
            None | Some(Mode::None) => Recompress::NONE,
            Some(Mode::All) => Recompress::ALL,
            Some(Mode::Block) => Recompress::BLOCK,
            Some(Mode::Metadata) => Recompress::METADATA,
        };
        Recompress {
            blocks: asked.blocks || self.change_block_size,
            metadata: asked.metadata || self.rebuilds(),
        }
    }

    /// Whether the metadata are described anew.
    pub(super) fn rebuilds(&self) -> bool {
        self.rebuild_metadata || self.change_block_size
    }
}
