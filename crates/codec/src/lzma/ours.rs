//! Compressing with our own encoder.

use std::sync::Arc;

use durin_format::{Error, Result};
use durin_lzma2 as lzma2;
use liblzma_sys as sys;

use super::filters::Filter;
use super::stream::Settings;

/// Our encoder, which works for a crew.
pub(super) struct Ours {
    encoder: lzma2::Encoder,
    /// It chooses `lc`, `lp` and `pb` for each part of a block, as far as they are not given.
    given: Option<lzma2::Given>,
}

impl Ours {
    /// With `given` a block is modelled part by part, and otherwise as settings say.
    pub(super) fn new(crew: &Arc<lzma2::Crew>, given: Option<lzma2::Given>) -> Self {
        Self {
            encoder: lzma2::Encoder::new(Arc::clone(crew)),
            given,
        }
    }

    /// Replaces `out` by the compressed `data`.
    pub(super) fn compress(
        &mut self,
        settings: &Settings,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Settings { lc, lp, pb, .. } = *settings;
        let options = lzma2::Options {
            dict_len: settings.dict_len.unwrap_or(lzma2::DICT_LEN_MIN),
            given: self.given.unwrap_or(lzma2::Given::all(lc, lp, pb)),
            nice_len: settings.nice.unwrap_or_else(|| nice_len(settings.preset)),
            filter: settings.filter.and_then(Filter::ours),
        };
        self.encoder.xz(data, &options, out).map_err(error)
    }
}

/// The library's nice length by level, so that levels differ as they do there.
fn nice_len(preset: u32) -> u32 {
    if preset & sys::LZMA_PRESET_EXTREME != 0 {
        return 273;
    }
    match preset {
        0..=4 => 16,
        5 => 32,
        _ => 64,
    }
}

fn error(error: lzma2::Error) -> Error {
    let text = format!("lzma: {error}");
    match error {
        lzma2::Error::Options => Error::invalid_input(text),
        lzma2::Error::Memory | lzma2::Error::TooLong => Error::limit(text),
    }
}
