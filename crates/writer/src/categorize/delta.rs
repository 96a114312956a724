//! Finding pixels, samples and measurements, for which lzma has the Delta filter.
//!
//! The filter is for all of a block, with one distance: data go together by distance, apart from others, which it would
//! harm. What a codec of its own has is claimed by the other categorizers.

use durin_codec as codec;

use super::probe::Probe;
use super::{Claim, plain};
use crate::category::Category;

/// Smaller files do not show what they are; and what they would gain is little.
const FILE_LEN_MIN: u64 = 16 << 10;
/// Bytes that are looked at from the middle of a file on.
const LOOK_LEN: u64 = 64 << 10;

/// Tries data; one for each thread.
#[derive(Debug, Default)]
pub(crate) struct Trial {
    trial: codec::DeltaTrial,
    data: Vec<u8>,
}

impl Trial {
    pub(crate) fn claim(&mut self, probe: &Probe<'_>) -> Option<Claim> {
        if probe.len() < FILE_LEN_MIN {
            return None;
        }
        let len = LOOK_LEN.min(probe.len());
        self.data.resize(usize::try_from(len).ok()?, 0);
        probe.read((probe.len() - len) / 2, &mut self.data)?;
        // Nothing is lost if they go where others go.
        let distance = self.trial.distance(&self.data).ok()??;
        Some(Claim::Whole(Category {
            subcategory: format!("{distance:03}"),
            ..plain("delta")
        }))
    }
}
