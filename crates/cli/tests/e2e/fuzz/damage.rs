//! What can be wrong with an image: bytes, sections, and values of the metadata.

use durin_format::metadata::{FsOptions, Inodes, Metadata, StringTable};
use durin_format::section::{CompressionType, SectionType};
use durin_testkit::random::Random;

use super::seeds::{Section, Seed, build};

/// Longest piece that is put somewhere else, cut out or put in.
const PIECE_LEN_MAX: u64 = 64;

/// Returns a damaged image.
pub(super) fn damage(seed: &Seed, random: &mut Random) -> Vec<u8> {
    let mut sections = seed.sections.clone();
    match random.below(16) {
        // As a bad disk does it: the checksums tell, if they are looked at.
        0 => {
            let mut bytes = seed.bytes.clone();
            change_bytes(&mut bytes, random);
            return bytes;
        }
        1..=3 => change_payload(&mut sections, random, |kind| {
            kind == SectionType::MetadataV2
        }),
        4 => change_payload(&mut sections, random, |kind| {
            kind == SectionType::MetadataV2Schema
        }),
        5 | 6 => change_payload(&mut sections, random, |kind| kind == SectionType::Block),
        7 => change_payload(&mut sections, random, |_| true),
        8 => change_sections(&mut sections, random),
        _ => {
            let mut metadata = seed.metadata.clone();
            for _ in 0..=random.below(3) {
                change_value(&mut metadata, random);
            }
            // What cannot be frozen needs no reader to refuse it.
            if let Ok(frozen) = metadata.freeze() {
                for section in &mut sections {
                    match section.kind {
                        SectionType::MetadataV2Schema => section.payload.clone_from(&frozen.schema),
                        SectionType::MetadataV2 => section.payload.clone_from(&frozen.data),
                        _ => {}
                    }
                }
            }
        }
    }
    build(&sections)
}

fn index(random: &mut Random, len: usize) -> usize {
    usize::try_from(random.below(len.max(1) as u64)).unwrap()
}

/// A number that somebody may have forgotten to expect where there was `old`.
fn strange(random: &mut Random, old: u64) -> u64 {
    match random.below(12) {
        0 => 0,
        1 => 1,
        2 => old.wrapping_add(1),
        3 => old.wrapping_sub(1),
        4 => old ^ (1 << random.below(40)),
        5 => old.wrapping_mul(2),
        6 => u64::from(u32::MAX),
        7 => u64::from(u32::MAX) - random.below(4),
        8 => 1 << random.below(64),
        9 => (1 << random.below(64)) - 1,
        10 => random.below(1 << 20),
        _ => random.next(),
    }
}

fn strange_u32(random: &mut Random, old: u32) -> u32 {
    let bytes = strange(random, u64::from(old)).to_le_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Changes up to four places.
fn change_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return bytes.extend(random.bytes(8));
        }
        // Headers and the roots of tables are at the beginning.
        let reach = if random.below(2) == 0 {
            bytes.len().min(256)
        } else {
            bytes.len()
        };
        let at = index(random, reach);
        let len = index(random, bytes.len() - at)
            .min(usize::try_from(1 + random.below(PIECE_LEN_MAX)).unwrap());
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + len)),
            2 => {
                let piece = random.bytes(len);
                drop(bytes.splice(at..at, piece));
            }
            3 => {
                let piece = bytes[at..at + len].to_vec();
                let to = index(random, bytes.len() - len);
                bytes[to..to + len].copy_from_slice(&piece);
            }
            4 => {
                let width = (1 << random.below(4)).min(bytes.len() - at);
                let number = strange(random, u64::from(bytes[at])).to_le_bytes();
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            _ => bytes[at] ^= u8::try_from(1 + random.below(255)).unwrap(),
        }
    }
}

/// Changes bytes of one of the sections of a kind, if there is one.
fn change_payload(
    sections: &mut [Section],
    random: &mut Random,
    is_meant: impl Fn(SectionType) -> bool,
) {
    let meant = sections.iter_mut().filter(|section| is_meant(section.kind));
    let mut meant: Vec<_> = meant.collect();
    let pick = index(random, meant.len());
    if let Some(section) = meant.get_mut(pick) {
        change_bytes(&mut section.payload, random);
    }
}

/// Leaves a section out, repeats, swaps or renames one.
fn change_sections(sections: &mut Vec<Section>, random: &mut Random) {
    let at = index(random, sections.len());
    let other = index(random, sections.len());
    match random.below(5) {
        0 => drop(sections.remove(at)),
        1 => {
            let again = sections[at].clone();
            sections.insert(other, again);
        }
        2 => sections.swap(at, other),
        3 => {
            let code = u16::try_from(random.below(14)).unwrap();
            sections[at].kind = SectionType::from(code);
        }
        _ => {
            let code = u16::try_from(random.below(10)).unwrap();
            sections[at].compression = CompressionType::from(code);
        }
    }
}

fn change_one(list: &mut Vec<u32>, random: &mut Random) {
    let at = index(random, list.len());
    match random.below(8) {
        0 if !list.is_empty() => drop(list.remove(at)),
        1 => {
            let value = strange_u32(random, 0);
            list.insert(at, value);
        }
        _ => {
            if let Some(value) = list.get_mut(at) {
                *value = strange_u32(random, *value);
            }
        }
    }
}

/// Gives what may be missing, so that it can be changed.
fn change_optional(list: &mut Option<Vec<u32>>, random: &mut Random) {
    match random.below(8) {
        0 => *list = None,
        _ => change_one(list.get_or_insert_default(), random),
    }
}

fn change_value(metadata: &mut Metadata, random: &mut Random) {
    match random.below(20) {
        0..=2 => change_chunk(metadata, random),
        3 | 4 => change_directory(metadata, random),
        5 | 6 => change_inode(metadata, random),
        7 => change_one(&mut metadata.chunk_table, random),
        8 => change_one(&mut metadata.symlink_table, random),
        9 => change_one(&mut metadata.modes, random),
        10 | 11 => change_dir_entry(metadata, random),
        12 | 13 => change_optional(&mut metadata.shared_files_table, random),
        14 => change_names(metadata, random),
        15 => change_options(metadata, random),
        16 => change_size(metadata, random),
        17 => change_optional(&mut metadata.block_categories, random),
        18 => change_cache(metadata, random),
        _ => {
            let holes = metadata.large_hole_size.get_or_insert_default();
            let size = strange(random, 0);
            holes.push(size);
            let block = strange_u32(random, metadata.hole_block_index.unwrap_or(1));
            metadata.hole_block_index = Some(block);
        }
    }
}

fn change_chunk(metadata: &mut Metadata, random: &mut Random) {
    let chunks = &mut metadata.chunks;
    let at = index(random, chunks.len());
    let Some(chunk) = chunks.get_mut(at) else {
        return;
    };
    match random.below(5) {
        0 => chunk.block = strange_u32(random, chunk.block),
        1 => chunk.offset = strange_u32(random, chunk.offset),
        2 => chunk.size = strange_u32(random, chunk.size),
        3 => drop(chunks.remove(at)),
        _ => chunk.block = metadata.hole_block_index.unwrap_or(1),
    }
}

fn change_directory(metadata: &mut Metadata, random: &mut Random) {
    let directories = &mut metadata.directories;
    let at = index(random, directories.len());
    let Some(directory) = directories.get_mut(at) else {
        return;
    };
    match random.below(4) {
        0 => directory.parent_entry = strange_u32(random, directory.parent_entry),
        1 => directory.first_entry = strange_u32(random, directory.first_entry),
        2 => directory.self_entry = strange_u32(random, directory.self_entry),
        _ => drop(directories.remove(at)),
    }
}

fn change_inode(metadata: &mut Metadata, random: &mut Random) {
    let at = index(random, metadata.inodes.len());
    let mut inodes: Vec<_> = metadata.inodes.iter().collect();
    let Some(inode) = inodes.get_mut(at) else {
        return;
    };
    match random.below(8) {
        0 | 1 => inode.mode_index = strange_u32(random, inode.mode_index),
        2 => inode.owner_index = strange_u32(random, inode.owner_index),
        3 => inode.group_index = strange_u32(random, inode.group_index),
        4 => inode.mtime_offset = strange(random, inode.mtime_offset),
        5 => inode.mtime_subsec = strange(random, inode.mtime_subsec),
        6 => inode.nlink_minus_one = strange_u32(random, inode.nlink_minus_one),
        _ => drop(inodes.remove(at)),
    }
    metadata.inodes = Inodes::from_iter(inodes);
}

fn change_dir_entry(metadata: &mut Metadata, random: &mut Random) {
    let Some(entries) = &mut metadata.dir_entries else {
        return change_one(&mut metadata.entry_table_v2_2, random);
    };
    let at = index(random, entries.len());
    let other = index(random, entries.len());
    match random.below(4) {
        0 if !entries.is_empty() => entries.swap(at, other),
        1 => drop(entries.drain(at..(at + 1).min(entries.len()))),
        pick => {
            if let Some(entry) = entries.get_mut(at) {
                let field = if pick == 2 {
                    &mut entry.name_index
                } else {
                    &mut entry.inode_num
                };
                *field = strange_u32(random, *field);
            }
        }
    }
}

/// Names with slashes, dots, zeros, of no length, or of too many bytes.
fn change_names(metadata: &mut Metadata, random: &mut Random) {
    const NAMES: [&[u8]; 8] = [
        b"",
        b".",
        b"..",
        b"a/b",
        b"/etc/passwd",
        b"../up",
        b"a\0b",
        b"\x1b[2J",
    ];
    let list = if random.below(2) == 0 {
        &mut metadata.names
    } else {
        &mut metadata.symlinks
    };
    let at = index(random, list.len());
    if let Some(name) = list.get_mut(at) {
        *name = match random.below(10) {
            9 => vec![b'x'; index(random, 70_000)],
            pick => NAMES[usize::try_from(pick).unwrap() % NAMES.len()].to_vec(),
        };
        return;
    }
    let tables = [&mut metadata.compact_names, &mut metadata.compact_symlinks];
    for StringTable {
        buffer,
        symtab,
        index,
        packed_index,
    } in tables.into_iter().flatten()
    {
        match random.below(6) {
            0 => *packed_index ^= true,
            1 => change_bytes(symtab.get_or_insert_default(), random),
            2 | 3 => change_bytes(buffer, random),
            _ => change_one(index, random),
        }
    }
}

fn change_options(metadata: &mut Metadata, random: &mut Random) {
    let options = metadata.options.get_or_insert(FsOptions::default());
    match random.below(8) {
        0 => options.mtime_only ^= true,
        1 => options.packed_chunk_table ^= true,
        2 => options.packed_directories ^= true,
        3 => options.packed_shared_files_table ^= true,
        4 => options.inodes_have_nlink ^= true,
        5 => options.time_resolution_sec = Some(strange_u32(random, 1)),
        6 => options.subsecond_resolution_nsec_multiplier = Some(strange_u32(random, 1)),
        _ => metadata.timestamp_base = strange(random, metadata.timestamp_base),
    }
}

fn change_size(metadata: &mut Metadata, random: &mut Random) {
    match random.below(5) {
        0 => metadata.block_size = strange_u32(random, metadata.block_size),
        1 => metadata.total_fs_size = strange(random, metadata.total_fs_size),
        2 => metadata.total_hardlink_size = Some(strange(random, 0)),
        3 => metadata.total_allocated_fs_size = Some(strange(random, metadata.total_fs_size)),
        _ => {
            let devices = metadata.devices.get_or_insert_default();
            let device = strange(random, 0);
            devices.push(device);
        }
    }
}

fn change_cache(metadata: &mut Metadata, random: &mut Random) {
    let cache = metadata.reg_file_size_cache.get_or_insert_default();
    let content = u32::try_from(index(random, metadata.chunk_table.len() + 2)).unwrap();
    let size = strange(random, 0);
    match random.below(3) {
        0 => cache.min_chunk_count = strange(random, cache.min_chunk_count),
        1 => drop(cache.size_lookup.insert(content, size)),
        _ => drop(cache.allocated_size_lookup.insert(content, size)),
    }
}
