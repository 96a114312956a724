//! Finding an image in a file that begins with something else.
//!
//! Scans for the magic and asks [`durin_format::locate`] about each hit. Memory: one window.
//! A false hit does not end the search.

use durin_format::locate::{NEEDLE, candidate};
use durin_format::section::V2_HEADER_LEN;
use durin_format::{Error, Result};
use durin_source::Source;

/// Bytes looked at in one go. Large enough that the system calls do not count, small enough for any cache.
const WINDOW_LEN: usize = 256 << 10;

/// Bytes that two windows share, so that a hit at the end of one is seen with its whole header in the next.
const OVERLAP_LEN: usize = V2_HEADER_LEN - 1;

/// Returns where the first image begins, in bytes from the start of the file.
///
/// A file that begins with the header of a first section is that image, also when it is damaged further on: the search
/// could find another image inside of it, and show that one's files as if nothing had happened.
///
/// # Errors
/// `NotFound` if there is none, `Io` if the file cannot be read.
pub fn find_image(source: &dyn Source) -> Result<u64> {
    let mut window = vec![0; WINDOW_LEN];
    let mut at = 0;
    let len = fill(
        source,
        0,
        window.get_mut(..V2_HEADER_LEN).unwrap_or_default(),
    )?;
    if window.get(..len).and_then(candidate).is_some() {
        return Ok(0);
    }
    while let Some(data_offset) = source.next_data(at) {
        // A hit may begin in the hole only with zeros, so it begins here at the earliest.
        at = data_offset;
        let len = fill(source, at, &mut window)?;
        let bytes = window.get(..len).unwrap_or_default();
        if let Some(hit) = find_in_window(source, at, bytes)? {
            return Ok(hit);
        }
        if len < WINDOW_LEN {
            break;
        }
        at += (WINDOW_LEN - OVERLAP_LEN) as u64;
    }
    Err(Error::not_found("no image found in this file"))
}

/// Reads as much as there is.
fn fill(source: &dyn Source, offset: u64, window: &mut [u8]) -> Result<usize> {
    let left = source.len().saturating_sub(offset);
    let len = usize::try_from(left).map_or(window.len(), |left| left.min(window.len()));
    let target = window.get_mut(..len).unwrap_or_default();
    source
        .read_exact_at(offset, target)
        .map_err(|error| Error::io(format!("reading {len} bytes at offset {offset}"), error))?;
    Ok(len)
}

fn find_in_window(source: &dyn Source, start: u64, bytes: &[u8]) -> Result<Option<u64>> {
    let [first, ..] = NEEDLE;
    let mut from = 0;
    while let Some(rest) = bytes.get(from..).filter(|rest| !rest.is_empty()) {
        let Some(step) = rest.iter().position(|byte| *byte == first) else {
            break;
        };
        let hit = rest.get(step..).unwrap_or_default();
        let offset = start + (from + step) as u64;
        if hit.starts_with(&NEEDLE) && is_image(source, offset, hit)? {
            return Ok(Some(offset));
        }
        from += step + 1;
    }
    Ok(None)
}

/// `hit` are the bytes from the hit to the end of the window.
fn is_image(source: &dyn Source, offset: u64, hit: &[u8]) -> Result<bool> {
    let Some(candidate) = candidate(hit) else {
        return Ok(false);
    };
    let Some(second) = offset.checked_add(candidate.second_offset()) else {
        return Ok(false);
    };
    let mut header = [0; V2_HEADER_LEN];
    let header = header.get_mut(..candidate.second_len()).unwrap_or_default();
    if second
        .checked_add(header.len() as u64)
        .is_none_or(|end| end > source.len())
    {
        return Ok(false);
    }
    source.read_exact_at(second, header).map_err(|error| {
        Error::io(
            format!("reading a section header at offset {second}"),
            error,
        )
    })?;
    Ok(candidate.confirmed_by(header))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use durin_format::ErrorKind;
    use durin_format::section::{CompressionType, SectionType, encode_header};
    use durin_source::MemorySource;

    use super::*;

    fn image() -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in 0..2 {
            bytes.extend(encode_header(
                number,
                SectionType::Block,
                CompressionType::None,
                b"data",
            ));
            bytes.extend(b"data");
        }
        bytes
    }

    #[test]
    fn finds_an_image_behind_decoys_at_any_distance() {
        // Around the end of the first window every split of the header occurs.
        let edges = (WINDOW_LEN - 140..WINDOW_LEN + 10).chain([0, 1, 7, 600_000]);
        for prefix_len in edges {
            let mut file: Vec<u8> = b"DWARFS\x02\x05 DWARFS\x02DDDWARFS".repeat(prefix_len / 10);
            file.truncate(prefix_len);
            file.resize(prefix_len, b'D');
            file.extend(image());
            let found = find_image(&MemorySource::new(file)).unwrap();
            assert_eq!(found, prefix_len as u64);
        }
    }

    #[test]
    fn an_image_cut_inside_its_first_header_is_none() {
        let bytes = image();
        for len in 0..V2_HEADER_LEN {
            let file = MemorySource::new(bytes.get(..len).unwrap().to_vec());
            assert_eq!(find_image(&file).unwrap_err().kind(), ErrorKind::NotFound);
        }
    }

    #[test]
    fn a_damaged_image_is_not_passed_over_for_one_inside() {
        let mut bytes = image();
        bytes.truncate(V2_HEADER_LEN + 4);
        bytes.extend(image());
        for cut in [bytes.len(), V2_HEADER_LEN + 4, V2_HEADER_LEN] {
            let file = MemorySource::new(bytes.get(..cut).unwrap().to_vec());
            assert_eq!(find_image(&file).unwrap(), 0);
        }
    }
}
