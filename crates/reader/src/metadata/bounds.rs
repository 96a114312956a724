//! Ties the number of items of every table to bytes that are there.
//!
//! An item can have no bits at all, so a list of 2^32 of them costs an attacker nothing. What follows is the shortest
//! chain of comparisons after which each count is bounded by the length of the data.

use durin_format::metadata::Tables;
use durin_format::{Error, Result, limits};

/// Makes the comparisons. Reads no item.
pub(super) fn check(tables: &Tables, data: &[u8]) -> Result<()> {
    check_block_size(tables.block_size)?;
    check_times(tables)?;
    let entries = match &tables.dir_entries {
        Some(entries) => {
            // Two entries cannot both name the root, so at least one bit tells them apart.
            distinct(entries.len(), entries.inode_num.bits(), "dir_entries")?;
            entries.len()
        }
        None => {
            let numbers = &tables.inodes.inode_v2_2;
            distinct(numbers.len(), numbers.bits(), "inodes")?;
            numbers.len()
        }
    };
    not_empty(entries, "directory entries")?;
    bounded_by_bytes(entries, data, "directory entries")?;

    let inodes = match &tables.dir_entries {
        Some(entries) => {
            let inodes = tables.inodes.len();
            countable(inodes, entries.inode_num.bits(), "inodes")?;
            inodes
        }
        None => tables.entry_table_v2_2.len(),
    };
    not_empty(inodes, "inodes")?;
    at_most(inodes, entries, "inodes", "directory entries")?;
    not_empty(tables.modes.len(), "modes")?;
    let items = tables.inodes.len();
    for (table, what) in [
        (&tables.modes, "modes"),
        (&tables.uids, "uids"),
        (&tables.gids, "gids"),
    ] {
        at_most(table.len(), items, what, "inodes")?;
    }
    let directories = tables.directories.len();
    at_most(directories, inodes + 1, "directories", "inodes")?;
    not_empty(directories, "directories")?;
    // The root is no regular file, which leaves room for the last element.
    at_most(tables.chunk_table.len(), inodes, "chunk_table", "inodes")?;
    not_empty(tables.chunk_table.len(), "chunk_table")?;
    at_most(
        tables.symlink_table.len(),
        inodes,
        "symlink_table",
        "inodes",
    )?;
    at_most(tables.names.len(), entries, "names", "directory entries")?;
    at_most(tables.symlinks.len(), inodes, "symlinks", "inodes")?;
    if let Some(devices) = &tables.devices {
        at_most(devices.len(), inodes, "devices", "inodes")?;
    }
    if let Some(shared) = &tables.shared_files_table {
        at_most(shared.len(), inodes, "shared_files_table", "inodes")?;
    }
    check_chunks(tables, data)
}

/// The number of items as an index type.
pub(super) fn count(len: u64, what: &str) -> Result<u32> {
    u32::try_from(len)
        .ok()
        .filter(|count| *count < u32::MAX)
        .ok_or_else(|| {
            Error::corrupt(format!(
                "{what}: {len} items, and the format ends below 2^32 - 1"
            ))
        })
}

fn check_chunks(tables: &Tables, data: &[u8]) -> Result<()> {
    let chunks = tables.chunks.len();
    count(chunks, "chunks")?;
    // The length of a chunk is in its size, that of a hole in size and offset.
    if chunks > 0 && tables.chunks.size.bits() == 0 && tables.chunks.offset.bits() == 0 {
        return Err(Error::corrupt(format!(
            "{chunks} chunks, and all of them are empty"
        )));
    }
    bounded_by_bytes(chunks, data, "chunks")
}

fn check_block_size(block_size: u32) -> Result<()> {
    if !block_size.is_power_of_two() || u64::from(block_size) > limits::BLOCK_SIZE_MAX {
        return Err(Error::corrupt(format!(
            "block size {block_size} is no power of two"
        )));
    }
    Ok(())
}

fn check_times(tables: &Tables) -> Result<()> {
    let options = tables.options.unwrap_or_default();
    if options.time_resolution_sec == Some(0) {
        return Err(Error::corrupt("time resolution of 0 seconds"));
    }
    match options.subsecond_resolution_nsec_multiplier {
        Some(nsec) if nsec == 0 || nsec >= 1_000_000_000 => {
            Err(Error::corrupt(format!("subsecond resolution of {nsec} ns")))
        }
        _ => Ok(()),
    }
}

fn not_empty(len: u64, what: &str) -> Result<()> {
    if len == 0 {
        return Err(Error::corrupt(format!("no {what}")));
    }
    count(len, what).map(drop)
}

fn at_most(len: u64, most: u64, what: &str, than: &str) -> Result<()> {
    if len > most {
        return Err(Error::corrupt(format!(
            "{what}: {len} items, more than {most} {than}"
        )));
    }
    Ok(())
}

fn distinct(len: u64, bits: u32, what: &str) -> Result<()> {
    if len > 1 && bits == 0 {
        return Err(Error::corrupt(format!(
            "{what}: all {len} items name the root"
        )));
    }
    Ok(())
}

/// Numbers of `bits` bits can tell `len` things apart.
fn countable(len: u64, bits: u32, what: &str) -> Result<()> {
    if bits < 32 && len > 1 << bits {
        return Err(Error::corrupt(format!(
            "{what}: {len} items, and directory entries can only name {}",
            1_u64 << bits
        )));
    }
    Ok(())
}

fn bounded_by_bytes(len: u64, data: &[u8], what: &str) -> Result<()> {
    // Columns were range checked, so this only fails for items without bits, which the callers ruled out for more
    // than one item.
    let bits = (data.len() as u64).saturating_mul(8).saturating_add(1);
    at_most(len, bits, what, "bits of metadata")
}
