//! The contents of blocks, where no metadata says what they are.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use durin_format::events::Events;
use durin_format::section::SectionType;
use durin_format::{Error, Result, limits};
use durin_source::Source;

use super::Salvaged;
use super::scan::{Found, Scan, SectionState};
use crate::{make, open_target};

/// Writes each good block to a file `block-NNNNNN.bin`, numbered as the metadata would.
pub(super) fn write(
    source: &dyn Source,
    scan: &Scan,
    target: &Path,
    salvaged: &mut Salvaged,
    events: &dyn Events,
    cancel: &AtomicBool,
) -> Result<()> {
    let (top, _) = open_target(target)?;
    // Sections before the first that was found, and between others, count as blocks: nearly all are.
    let mut others = 0;
    for found in &scan.found {
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::cancelled());
        }
        if found.header.section_type != SectionType::Block {
            others += 1;
            continue;
        }
        if found.state != SectionState::Good {
            salvaged.report.errors += 1;
            continue;
        }
        let name = format!("block-{:06}.bin", found.number.saturating_sub(others));
        let content = match decoded(source, found) {
            Ok(content) => content,
            Err(error) => {
                salvaged.report.errors += 1;
                events.error(
                    &error
                        .context(format!("section {}", found.number))
                        .to_string(),
                );
                continue;
            }
        };
        let write = || -> std::io::Result<()> {
            let file = make::file(
                top.as_fd(),
                name.as_bytes(),
                source.file_id(),
                make::PRIVATE,
            )?;
            File::from(file).write_all(&content)
        };
        write().map_err(|error| Error::io(format!("cannot write {name}"), error))?;
        salvaged.report.files += 1;
        salvaged.report.bytes += content.len() as u64;
        salvaged.raw_blocks.push(name);
    }
    Ok(())
}

fn decoded(source: &dyn Source, found: &Found) -> Result<Vec<u8>> {
    let len = usize::try_from(found.header.payload_len)
        .map_err(|_| Error::limit("a block that does not fit into memory"))?;
    let mut payload = Vec::new();
    payload
        .try_reserve_exact(len)
        .map_err(|_| Error::limit(format!("no memory for {len} bytes")))?;
    payload.resize(len, 0);
    source
        .read_exact_at(found.payload_offset(), &mut payload)
        .map_err(|error| Error::io("cannot read a block", error))?;
    // The block size is one of the things that are lost.
    durin_codec::decompress(found.header.compression, &payload, limits::BLOCK_SIZE_MAX)
}
