//! The history of the new image: that of the old one and an entry for this rewriting.

use durin_format::events::Events;
use durin_format::history::{History, HistoryEntry};
use durin_reader::Image;

/// Returns the payload of the history section before compression; `None` if there is to be none.
///
/// A history that cannot be read, which harms nothing else, is left behind with a warning.
pub(crate) fn appended(
    image: &Image,
    entry: Option<&HistoryEntry>,
    events: &dyn Events,
) -> Option<Vec<u8>> {
    let entry = entry?;
    let mut history = image.history().unwrap_or_else(|error| {
        events.warn(&format!(
            "the history of the image cannot be read and is left out: {error}"
        ));
        History::default()
    });
    history.entries.push(entry.clone());
    loop {
        let payload = history.encode();
        let count = history.entries.len();
        // Readers bound how much they take; what is oldest goes first.
        if count == 1 || History::parse(&payload).is_ok() {
            return Some(payload);
        }
        events.warn("the history of the image is too long; the older half of it is left out");
        history.entries.drain(..count.div_ceil(2));
    }
}
