//! Programs and libraries: ELF, PE and Mach-O.
//!
//! Sub-categories tell machines apart, and what has been linked from what has not: filters for machine code need the
//! one and are harmed by the other. Universal Mach-O files are split into their slices.

use super::probe::{Probe, be16, be32, be64, le16, le32};
use super::{Claim, Part, plain};
use crate::category::Category;

/// Compiled Java has the same magic number, and a version of at least 45 in the place of the count.
const FAT_SLICES_MAX: u32 = 30;

pub(super) fn claim(probe: &Probe<'_>) -> Option<Claim> {
    let magic: [u8; 4] = probe.bytes(0)?;
    match &magic {
        [0x7F, b'E', b'L', b'F'] => elf(probe).map(Claim::Whole),
        [b'M', b'Z', ..] => pe(probe).map(Claim::Whole),
        [0xCA, 0xFE, 0xBA, 0xBE] => fat(probe, 20).map(Claim::Fragments),
        [0xCA, 0xFE, 0xBA, 0xBF] => fat(probe, 32).map(Claim::Fragments),
        _ => macho(&probe.bytes(0)?).map(Claim::Whole),
    }
}

fn category(name: &str, subcategory: String) -> Category {
    Category {
        subcategory,
        ..plain(name)
    }
}

fn elf(probe: &Probe<'_>) -> Option<Category> {
    const RELOCATABLE: u16 = 1;
    const HEADER_LEN: u64 = 52;

    let header: [u8; 24] = probe.bytes(0)?;
    let [_, _, _, _, class, order, version, ..] = header;
    let (kind, machine) = match order {
        1 => (le16(&header, 16)?, le16(&header, 18)?),
        2 => (be16(&header, 16)?, be16(&header, 18)?),
        _ => return None,
    };
    if !matches!(class, 1 | 2) || version != 1 || probe.len() < HEADER_LEN {
        return None;
    }
    let linked = if kind == RELOCATABLE {
        "object"
    } else {
        "linked"
    };
    let subcategory = format!("{machine:05}-{class}-{order}-{linked}");
    Some(category("binary/elf", subcategory))
}

fn pe(probe: &Probe<'_>) -> Option<Category> {
    let place = le32(&probe.bytes::<4>(0x3C)?, 0)?;
    let header: [u8; 26] = probe.bytes(u64::from(place))?;
    if !header.starts_with(b"PE\0\0") {
        return None;
    }
    let machine = le16(&header, 4)?;
    let magic = le16(&header, 24)?;
    let subcategory = format!("{machine:05}-{magic:05}");
    Some(category("binary/pe", subcategory))
}

/// Recognizes one Mach-O image by its start.
fn macho(header: &[u8; 16]) -> Option<Category> {
    const OBJECT: u32 = 1;
    const KIND_MAX: u32 = 0x20;

    let is_big = match header {
        [0xFE, 0xED, 0xFA, 0xCE | 0xCF, ..] => true,
        [0xCE | 0xCF, 0xFA, 0xED, 0xFE, ..] => false,
        _ => return None,
    };
    let word = |at| {
        if is_big {
            be32(header, at)
        } else {
            le32(header, at)
        }
    };
    let (machine, kind) = (word(4)?, word(12)?);
    if kind == 0 || kind > KIND_MAX {
        return None;
    }
    let linked = if kind == OBJECT { "object" } else { "linked" };
    let subcategory = format!("{machine:010}-{is_big}-{linked}");
    Some(category("binary/macho-section", subcategory))
}

/// Splits a universal file; `entry_len` tells the form of its table.
fn fat(probe: &Probe<'_>, entry_len: u64) -> Option<Vec<Part>> {
    let count = be32(&probe.bytes::<8>(0)?, 4)?;
    if count == 0 || count > FAT_SLICES_MAX {
        return None;
    }
    let mut slices = Vec::new();
    for number in 0..u64::from(count) {
        let place = 8 + number * entry_len;
        let (offset, len) = if entry_len == 20 {
            let entry: [u8; 20] = probe.bytes(place)?;
            (u64::from(be32(&entry, 8)?), u64::from(be32(&entry, 12)?))
        } else {
            let entry: [u8; 32] = probe.bytes(place)?;
            (be64(&entry, 8)?, be64(&entry, 16)?)
        };
        slices.push((offset, len));
    }
    slices.sort_unstable();
    let mut parts = Vec::new();
    let mut at = 0;
    for (offset, len) in slices {
        let section = macho(&probe.bytes(offset)?)?;
        let gap = offset.checked_sub(at)?;
        at = offset.checked_add(len).filter(|end| *end <= probe.len())?;
        parts.push(Part::new(gap, plain("binary/macho-header")));
        parts.push(Part::new(len, section));
    }
    parts.push(Part::new(probe.len() - at, plain("binary/macho-header")));
    parts.retain(|part| part.len > 0);
    Some(parts)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
