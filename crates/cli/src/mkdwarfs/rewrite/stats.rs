//! The figures of a running rewriting, as the progress display shows them.

use durin_rewrite::{Figures, Phase};
use serde_json::{Map, Value, json};

use crate::common::progress::Snapshot;
use crate::common::{size, system};

/// What `figures` say now.
pub(super) fn snapshot(figures: &Figures) -> Snapshot {
    let phase = figures.phase();
    let begins = figures.phase_begins().into_iter();
    let written = format!(
        "{} blocks/{} written",
        figures.blocks_written.get(),
        size::display(figures.compressed_block_bytes.get())
    );
    Snapshot {
        status: status(phase).to_owned(),
        details: vec![
            format!(
                "filesystem: {} of {} in {}/{} blocks",
                size::display(figures.old_block_bytes.get()),
                size::display(figures.old_block_bytes_total.get()),
                figures.old_blocks.get(),
                figures.old_blocks_total.get()
            ),
            format!(
                "compressed filesystem: {written}, using {} of memory",
                size::display(system::resident_bytes().unwrap_or(0))
            ),
        ],
        fraction: Some(figures.fraction()),
        work: Some(figures.fraction()),
        bytes: match phase {
            Phase::Checking => figures.checked_bytes.get(),
            Phase::Blocks | Phase::Metadata | Phase::Finished => figures.block_bytes.get(),
        },
        simple: written,
        phases: begins.map(|(phase, begin)| (phase.name(), begin)).collect(),
        fields: fields(figures),
        ..Snapshot::default()
    }
}

fn status(phase: Phase) -> &'static str {
    match phase {
        Phase::Checking => "checking the image",
        Phase::Blocks => "rewriting blocks",
        Phase::Metadata => "building metadata",
        Phase::Finished => "finishing",
    }
}

/// The figures of a progress event. The names are documented and stay.
fn fields(figures: &Figures) -> Map<String, Value> {
    let fields = json!({
        "check_bytes_total": figures.check_bytes_total.get(),
        "checked_bytes": figures.checked_bytes.get(),
        "old_blocks_total": figures.old_blocks_total.get(),
        "old_blocks": figures.old_blocks.get(),
        "old_block_bytes_total": figures.old_block_bytes_total.get(),
        "old_block_bytes": figures.old_block_bytes.get(),
        "blocks_made": figures.blocks_made.get(),
        "blocks_written": figures.blocks_written.get(),
        "written_block_bytes": figures.block_bytes.get(),
        "compressed_block_bytes": figures.compressed_block_bytes.get(),
        "written_bytes": figures.written_bytes.get(),
        "memory_bytes": system::resident_bytes(),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
