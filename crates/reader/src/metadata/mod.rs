//! The metadata of an open image: the tables in place, and the little that is derived from them at open.
//!
//! Comes in: the schema and metadata sections. Goes out: [`Metadata`], whose accessors check every value they return.
//! Nothing is unpacked but tables that are stored packed; link counts and missing parents are computed on first need.
//!
//! **Memory**: proportional to the metadata section at most, because [`bounds`] ties every count to bytes.

mod bounds;
mod partition;
mod reverse;
mod shared;
mod table;

use std::sync::Arc;

use durin_format::frozen::schema::Schema;
use durin_format::frozen::view::{Column, Object};
use durin_format::metadata::Tables;
use durin_format::section::{SectionType, Version};
use durin_format::{Error, InodeNum, Location, Result, limits};
use durin_source::Source;

pub(crate) use partition::{Partition, Rank};
pub(crate) use reverse::LinkCounts;
pub(crate) use shared::SharedFiles;
pub(crate) use table::IndexTable;

use crate::options::ImageOptions;
use crate::payload::{self, Loaded};
use crate::sections::SectionList;
use crate::sync::OnceLock;

/// The features of images that this release reads. An image with another one must be refused.
const KNOWN_FEATURES: [&str; 1] = [SPARSE_FILES];

/// Name of the feature of images with holes.
const SPARSE_FILES: &str = "sparsefiles";

/// The metadata of an open image.
///
/// Checked once: every column lies inside the data, every count is bounded by bytes, the counts of all kinds of inodes
/// agree, the block size is a power of two, all features are known. Values in columns are checked when they are used.
pub(crate) struct Metadata {
    source: Arc<dyn Source>,
    contents: Loaded,
    pub(crate) tables: Tables,
    /// Whether attributes belong to directory entries (formats 2.0 to 2.2).
    pub(crate) is_legacy: bool,
    pub(crate) partition: Partition,
    /// First chunk of every content, and the number of chunks.
    pub(crate) chunk_table: IndexTable,
    /// First entry of every directory, and the number of entries.
    pub(crate) first_entry: IndexTable,
    pub(crate) shared: SharedFiles,
    /// Number of directory entries, that of the root included.
    pub(crate) entry_count: u32,
    location: Location,
    /// Whether the items of the chunk table ascend, once somebody had to know.
    pub(crate) is_chunk_table_ordered: OnceLock<bool>,
    parents: OnceLock<Vec<u32>>,
    link_counts: OnceLock<LinkCounts>,
    entries_of_files: OnceLock<Vec<u32>>,
}

impl Metadata {
    /// Loads schema and metadata of an image and makes the cheap checks.
    pub(crate) fn open(
        source: &Arc<dyn Source>,
        list: &SectionList,
        options: &ImageOptions,
    ) -> Result<Self> {
        let schema_section = list.only(SectionType::MetadataV2Schema)?;
        let section = list.only(SectionType::MetadataV2)?;
        let schema = load_schema(source.as_ref(), list.version, list)
            .map_err(|error| error.at(schema_section.location()))?;
        let len_max =
            limits::metadata_bytes_max(section.payload_len).min(options.metadata_bytes_max);
        let contents = payload::load(
            source.as_ref(),
            list.version,
            section,
            len_max,
            options.metadata_copy_max,
        )?;
        Self::resolve(source, &schema, contents, section.location())
            .map_err(|error| error.at(section.location()))
    }

    fn resolve(
        source: &Arc<dyn Source>,
        schema: &Schema,
        contents: Loaded,
        location: Location,
    ) -> Result<Self> {
        let data = contents.bytes(source.as_ref());
        let mut tables = Tables::resolve(schema, data)?;
        check_features(&tables)?;
        check_string_tables(schema, &tables, data)?;
        bounds::check(&tables, data)?;
        tables.names.unpack_index(data)?;
        tables.symlinks.unpack_index(data)?;
        let is_legacy = tables.dir_entries.is_none();
        let partition = Partition::find(&tables, data)?;
        let entries = match &tables.dir_entries {
            Some(entries) => entries.len(),
            None => tables.inodes.len(),
        };
        let entry_count = bounds::count(entries, "directory entries")?;
        let options = tables.options.unwrap_or_default();
        let first_entry = IndexTable::new(
            tables.directories.first_entry,
            options.packed_directories,
            data,
            entry_count,
            "first_entry",
        )?;
        let chunk_count = bounds::count(tables.chunks.len(), "chunks")?;
        let chunk_table = IndexTable::new(
            tables.chunk_table,
            options.packed_chunk_table,
            data,
            chunk_count,
            "chunk_table",
        )?;
        let shared = SharedFiles::new(
            &tables,
            data,
            partition.regular_count(),
            chunk_table.count(),
        )?;
        partition.check_counts(&tables, chunk_table.count())?;
        Ok(Self {
            source: Arc::clone(source),
            contents,
            tables,
            is_legacy,
            partition,
            chunk_table,
            first_entry,
            shared,
            entry_count,
            location,
            is_chunk_table_ordered: OnceLock::new(),
            parents: OnceLock::new(),
            link_counts: OnceLock::new(),
            entries_of_files: OnceLock::new(),
        })
    }

    /// The frozen data.
    #[inline]
    pub(crate) fn data(&self) -> &[u8] {
        self.contents.bytes(self.source.as_ref())
    }

    /// Number of inodes.
    pub(crate) fn inode_count(&self) -> u32 {
        self.partition.inode_count()
    }

    /// An error about a value in the metadata.
    #[cold]
    pub(crate) fn corrupt(&self, message: impl Into<String>) -> Error {
        Error::corrupt(message).at(self.location)
    }

    /// Says that an error comes from the metadata.
    pub(crate) fn place(&self, error: Error) -> Error {
        error.at(self.location)
    }

    /// Item `index` of a column; `what` names the table for the error when it is out of range.
    #[inline]
    pub(crate) fn value(&self, column: &Column, index: u64, what: &str) -> Result<u64> {
        column
            .get(self.data(), index)
            .ok_or_else(|| self.out_of_range(index, column.len(), what))
    }

    /// As [`Self::value`], for tables of 32-bit integers.
    #[inline]
    pub(crate) fn value32(&self, column: &Column, index: u64, what: &str) -> Result<u32> {
        u32::try_from(self.value(column, index, what)?)
            .map_err(|_| self.corrupt(format!("{what}: item {index} has more than 32 bits")))
    }

    #[cold]
    fn out_of_range(&self, index: u64, len: u64, what: &str) -> Error {
        self.corrupt(format!("{what}: index {index} out of range: {len} items"))
    }

    /// Element of `inodes` with the attributes of `inode`.
    #[inline]
    pub(crate) fn element_of(&self, inode: InodeNum) -> Result<u32> {
        if self.is_legacy {
            self.value32(
                &self.tables.entry_table_v2_2,
                inode.0.into(),
                "entry_table_v2_2",
            )
        } else {
            Ok(inode.0)
        }
    }

    /// Inode that directory entry `entry` names, checked to exist.
    #[inline]
    pub(crate) fn inode_of_entry(&self, entry: u32) -> Result<InodeNum> {
        let inode = match &self.tables.dir_entries {
            Some(entries) => self.value32(&entries.inode_num, entry.into(), "dir_entries")?,
            None => self.value32(&self.tables.inodes.inode_v2_2, entry.into(), "inodes")?,
        };
        if inode >= self.inode_count() {
            return Err(self.corrupt(format!(
                "directory entry {entry}: inode {inode} out of range: {} inodes",
                self.inode_count()
            )));
        }
        Ok(InodeNum(inode))
    }

    /// Index into the names for directory entry `entry`.
    #[inline]
    pub(crate) fn name_index(&self, entry: u32) -> Result<u32> {
        match &self.tables.dir_entries {
            Some(entries) => self.value32(&entries.name_index, entry.into(), "dir_entries"),
            None => self.value32(&self.tables.inodes.name_index_v2_2, entry.into(), "inodes"),
        }
    }

    /// Entries of directory `dir` as a range of entry indices.
    pub(crate) fn entry_range(&self, dir: InodeNum) -> Result<std::ops::Range<u32>> {
        if self.partition.rank(dir) != Some(Rank::Directory) {
            return Err(self.not_a(dir, "directory"));
        }
        let (start, end) = self
            .first_entry
            .pair(self.data(), dir.0)
            .ok_or_else(|| self.corrupt(format!("directories: no element {dir}")))?;
        // Entry 0 is the root's own: a range that has it would make the root its own child.
        if start == 0 || start > end || end > self.entry_count {
            return Err(self.corrupt(format!(
                "directory {dir}: entries {start} to {end} out of range: {} entries",
                self.entry_count
            )));
        }
        // Each has a name of its own. Entries of no bits would be a directory of millions in an image of some bytes.
        if u64::from(end - start) > self.tables.names.len() {
            return Err(self.corrupt(format!(
                "directory {dir}: {} entries, and all there is are {} names",
                end - start,
                self.tables.names.len()
            )));
        }
        Ok(start..end)
    }

    /// An error for a request about an inode of another kind or none.
    #[cold]
    pub(crate) fn not_a(&self, inode: InodeNum, kind: &str) -> Error {
        if inode.0 < self.inode_count() {
            Error::invalid_input(format!("inode {inode} is not a {kind}"))
        } else {
            Error::not_found(format!(
                "no inode {inode}: the image has {}",
                self.inode_count()
            ))
        }
    }
}

fn load_schema(source: &dyn Source, version: Version, list: &SectionList) -> Result<Schema> {
    let section = list.only(SectionType::MetadataV2Schema)?;
    let loaded = payload::load(source, version, section, limits::SCHEMA_BYTES_MAX, u64::MAX)?;
    Schema::parse(loaded.bytes(source))
}

/// Names and targets are stored in one of two forms each; something in both would be two answers to one question.
fn check_string_tables(schema: &Schema, tables: &Tables, data: &[u8]) -> Result<()> {
    let root = Object::root(schema, data)?;
    for (id, strings, what) in [
        (10, &tables.names, "names"),
        (11, &tables.symlinks, "symlinks"),
    ] {
        if strings.is_compact() && !root.field(id).list()?.is_empty() {
            return Err(Error::corrupt(format!(
                "{what} and compact_{what} are both in use"
            )));
        }
    }
    Ok(())
}

fn check_features(tables: &Tables) -> Result<()> {
    let unknown: Vec<&str> = tables
        .features
        .iter()
        .flatten()
        .map(String::as_str)
        .filter(|feature| !KNOWN_FEATURES.contains(feature))
        .collect();
    if !unknown.is_empty() {
        return Err(Error::unsupported(format!(
            "the image uses features that this release does not know: {}",
            unknown.join(", ").escape_debug()
        )));
    }
    let is_sparse = tables
        .features
        .iter()
        .flatten()
        .any(|feature| feature == SPARSE_FILES);
    if is_sparse != tables.hole_block_index.is_some() {
        return Err(Error::corrupt(
            "hole_block_index and the feature \"sparsefiles\" do not go together",
        ));
    }
    Ok(())
}
