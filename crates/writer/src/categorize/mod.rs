//! Finding out what the data of files are, by looking at the data.
//!
//! A categorizer claims a file as a whole or splits it into fragments. Those that know formats look at the start of a
//! file and where that leads to ([`probe`]); whether data can be compressed is found while the file is read
//! ([`incompressible`]). Of several that claim a file the one that the user named first wins. All of them take what
//! they read for what it is: bytes that somebody else has chosen. A wrong guess costs compression, never data.
//!
//! Source: format specification, A.8 and 7.13.

mod binary;
mod caf;
mod delta;
mod fits;
mod iff;
pub(crate) mod incompressible;
mod options;
mod pcm;
mod probe;
mod riff;
mod wave64;

use durin_codec::Spec;

pub(crate) use delta::Trial as DeltaTrial;
pub(crate) use fits::Image;
pub use options::{CategorizeOptions, Categorizer, IncompressibleOptions};
pub(crate) use probe::Probe;

use crate::category::Category;

/// What a categorizer says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// All of it is of one category.
    Whole(Category),
    /// It has fragments, in order and without gaps.
    Fragments(Vec<Part>),
    /// It has an image whose pixels must be looked at to say more.
    Image(Image),
}

/// A fragment of a file; it begins where the one before ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) len: u64,
    pub(crate) category: Category,
}

impl Part {
    fn new(len: u64, category: Category) -> Self {
        Self { len, category }
    }
}

/// A category of which nothing but the name is known.
fn plain(name: &str) -> Category {
    Category {
        name: name.to_owned(),
        metadata: None,
        granularity: 1,
        subcategory: String::new(),
    }
}

/// Asks one categorizer that looks at the start of files.
pub(crate) fn probe(categorizer: Categorizer, probe: &Probe<'_>) -> Option<Claim> {
    match categorizer {
        Categorizer::PcmAudio => pcm::claim(probe),
        Categorizer::Fits => fits::claim(probe).map(Claim::Image),
        Categorizer::Binary => binary::claim(probe),
        Categorizer::Incompressible | Categorizer::Delta | Categorizer::Hotness => None,
    }
}

/// Whether a codec can take data of a category.
pub(crate) fn suits(spec: &Spec, category: &Category) -> bool {
    !spec.requires_metadata() || spec.encoder(1, category.metadata.as_deref()).is_ok()
}

/// A file of one piece between what stands before and behind it; nothing if it is not within the file.
fn framed(
    file_len: u64,
    start: u64,
    len: u64,
    frame: &Category,
    piece: Category,
) -> Option<Vec<Part>> {
    let end = start.checked_add(len).filter(|end| *end <= file_len)?;
    let mut parts = vec![
        Part::new(start, frame.clone()),
        Part::new(len, piece),
        Part::new(file_len - end, frame.clone()),
    ];
    parts.retain(|part| part.len > 0);
    Some(parts)
}
