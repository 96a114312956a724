//! What can be told about an image, as plain values.

use durin_format::Result;
use durin_format::history::{DwarfsVersion, History, HistoryEntry};
use durin_format::metadata::{FsOptions, MetadataHistoryEntry, Tables};
use durin_format::section::{CompressionType, SectionType, Version};
use serde_json::{Map, Value, json};

use crate::check::Report;
use crate::image::Image;
use crate::payload;
use crate::sections::Section;

/// What can be told about an image without walking its tree.
#[derive(Clone, Debug)]
pub struct Info {
    /// Version of the format.
    pub version: Version,
    /// Bytes before the image.
    pub image_offset: u64,
    /// The program that made the image.
    pub created_by: Option<String>,
    /// When the image was made, in seconds since 1970.
    pub created_on: Option<u64>,
    /// What a reader must know.
    pub features: Vec<String>,
    /// Largest uncompressed size of a block in bytes.
    pub block_size: u32,
    /// Number of blocks.
    pub block_count: u32,
    /// Number of inodes.
    pub inode_count: u32,
    /// What separates path components in symlink targets, as a character code.
    pub preferred_path_separator: Option<u32>,
    /// Bytes of all files and link targets.
    pub original_filesystem_size: u64,
    /// As above without holes, when it is different.
    pub original_allocated_filesystem_size: Option<u64>,
    /// What further hard links would have added to the size.
    pub total_hardlink_size: Option<u64>,
    /// Bytes of all blocks as stored.
    pub compressed_block_size: u64,
    /// Bytes of all blocks after decompression; `None` if one of them does not tell.
    pub uncompressed_block_size: Option<u64>,
    /// Bytes of schema and metadata as stored.
    pub compressed_metadata_size: u64,
    /// Bytes of schema and metadata after decompression.
    pub uncompressed_metadata_size: u64,
    /// How tables and times are stored.
    pub options: FsOptions,
    /// Blocks by category, in the order of the categories.
    pub categories: Vec<CategoryInfo>,
    /// Who built the image; empty if there is no history or it is damaged.
    pub history: History,
    /// Every section in file order.
    pub sections: Vec<SectionInfo>,
    /// Whether there is a section index and it was used.
    pub valid_section_index: bool,
    /// Lengths of the tables, by name.
    pub tables: Vec<(&'static str, u64)>,
    /// The first inode numbers of all types but directories, which begin with 0, by name.
    pub inode_offsets: Vec<(&'static str, u32)>,
    /// What the metadata was before it was made anew, oldest first.
    pub previous_versions: Vec<MetadataHistoryEntry>,
}

/// The blocks of one category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategoryInfo {
    /// Its name.
    pub name: String,
    /// Number of its blocks.
    pub block_count: u32,
    /// Bytes as stored.
    pub compressed_size: u64,
    /// Bytes after decompression; `None` if one of the blocks does not tell.
    pub uncompressed_size: Option<u64>,
}

/// One section.
#[derive(Clone, Debug)]
pub struct SectionInfo {
    /// What it holds.
    pub section_type: SectionType,
    /// How it is compressed; `None` if its header is damaged.
    pub compression: Option<CompressionType>,
    /// Bytes from the start of the file to the header.
    pub offset: u64,
    /// Bytes as stored.
    pub compressed_size: u64,
    /// Bytes after decompression; `None` if the section does not tell.
    pub size: Option<u64>,
    /// Whether the checksum is right; `None` in formats without one, and before [`Info::take_checked`].
    pub checksum_ok: Option<bool>,
    /// For a block its category.
    pub category: Option<String>,
    /// For a block what its codec was told about the data, as JSON.
    pub metadata: Option<Value>,
}

impl Image {
    /// Collects what can be told about the image. Checksums are left to [`Image::check`] and [`Info::take_checked`], so
    /// that little is read when the source is mapped.
    ///
    /// # Errors
    /// `Corrupt` if a value in the metadata is wrong, `Io` if the image cannot be read. A damaged block or history is
    /// no error: what they would tell is left out.
    pub fn info(&self) -> Result<Info> {
        let (tables, _) = self.tables();
        let partition = &self.metadata().partition;
        let sections = self.section_infos();
        let (compressed, uncompressed) = total(&sections, &[SectionType::Block]);
        let metadata_types = [SectionType::MetadataV2Schema, SectionType::MetadataV2];
        let (compressed_metadata_size, uncompressed_metadata) = total(&sections, &metadata_types);
        Ok(Info {
            version: self.version(),
            image_offset: self.offset(),
            created_by: tables.dwarfs_version.clone(),
            created_on: tables.create_timestamp,
            features: tables.features.iter().flatten().cloned().collect(),
            block_size: self.block_size(),
            block_count: self.block_count(),
            inode_count: self.inode_count(),
            preferred_path_separator: tables.preferred_path_separator,
            original_filesystem_size: tables.total_fs_size,
            original_allocated_filesystem_size: tables.total_allocated_fs_size,
            total_hardlink_size: tables.total_hardlink_size,
            compressed_block_size: compressed,
            uncompressed_block_size: uncompressed,
            compressed_metadata_size,
            uncompressed_metadata_size: uncompressed_metadata.unwrap_or(0),
            options: tables.options.unwrap_or_default(),
            categories: categories(tables, &sections),
            // A damaged history does not keep anybody from using the image.
            history: self.history().unwrap_or_default(),
            sections,
            valid_section_index: self.has_section_index(),
            tables: table_lengths(tables),
            inode_offsets: vec![
                ("symlink_inode_offset", partition.first_symlink),
                ("file_inode_offset", partition.first_regular),
                ("device_inode_offset", partition.first_device),
                ("other_inode_offset", partition.first_other),
            ],
            previous_versions: tables.metadata_version_history.clone().unwrap_or_default(),
        })
    }

    fn section_infos(&self) -> Vec<SectionInfo> {
        let (tables, data) = self.tables();
        let mut block = 0_u32;
        let mut infos = Vec::with_capacity(self.sections().len());
        for section in self.sections() {
            let mut info = self.section_info(section);
            if section.section_type == SectionType::Block {
                info.category = category(tables, data, block);
                info.metadata = category_metadata(tables, data, block);
                block = block.saturating_add(1);
            }
            infos.push(info);
        }
        infos
    }

    fn section_info(&self, section: &Section) -> SectionInfo {
        let mut info = SectionInfo {
            section_type: section.section_type,
            compression: None,
            offset: section.offset,
            compressed_size: section.payload_len,
            size: None,
            checksum_ok: None,
            category: None,
            metadata: None,
        };
        let Ok((header, _)) = self.header_of(section) else {
            return info;
        };
        info.compression = Some(header.compression);
        // Some codecs note the size at the beginning of the payload, others at its end.
        if let Ok(payload) = payload::mapped_or_read(self.source(), section, u64::MAX) {
            info.size = durin_codec::uncompressed_len(header.compression, &payload, u64::MAX).ok();
        }
        info
    }
}

impl Info {
    /// Takes over which checksums are right from the check of the same image.
    pub fn take_checked(&mut self, report: &Report) {
        if self.version.has_v1_sections() {
            return;
        }
        for (number, section) in self.sections.iter_mut().enumerate() {
            section.checksum_ok = Some(report.damaged.binary_search(&number).is_err());
        }
    }

    /// Returns all of it with the keys that the reference uses. The keys are not declared stable there.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut root = Map::new();
        let mut set = |key: &str, value: Value| {
            if !value.is_null() {
                root.insert(key.to_owned(), value);
            }
        };
        set(
            "version",
            json!({
                "major": self.version.major,
                "minor": self.version.minor,
                "header": if self.version.has_v1_sections() { 1 } else { 2 },
            }),
        );
        set("image_offset", json!(self.image_offset));
        set("created_by", json!(self.created_by));
        set("created_on", json!(self.created_on));
        set("features", json!(self.features));
        set("block_size", json!(self.block_size));
        set("block_count", json!(self.block_count));
        set("inode_count", json!(self.inode_count));
        let separator = self.preferred_path_separator.and_then(char::from_u32);
        set("preferred_path_separator", json!(separator));
        set(
            "original_filesystem_size",
            json!(self.original_filesystem_size),
        );
        set(
            "original_allocated_filesystem_size",
            json!(
                self.original_allocated_filesystem_size
                    .unwrap_or(self.original_filesystem_size)
            ),
        );
        set("total_hardlink_size", json!(self.total_hardlink_size));
        set("compressed_block_size", json!(self.compressed_block_size));
        set(
            "uncompressed_block_size",
            json!(self.uncompressed_block_size),
        );
        set(
            "compressed_metadata_size",
            json!(self.compressed_metadata_size),
        );
        set(
            "uncompressed_metadata_size",
            json!(self.uncompressed_metadata_size),
        );
        set("options", json!(self.option_names()));
        set("time_resolution", json!(self.time_resolution()));
        if !self.categories.is_empty() {
            let categories = self.categories.iter().map(CategoryInfo::to_json);
            set("categories", categories.collect::<Map<_, _>>().into());
        }
        set(
            "history",
            self.history.entries.iter().map(history_json).collect(),
        );
        set(
            "sections",
            self.sections.iter().map(SectionInfo::to_json).collect(),
        );
        set("valid_section_index", json!(self.valid_section_index));
        let tables = self.tables.iter().copied();
        let offsets = self.inode_offsets.iter();
        let meta = tables.chain(offsets.map(|(name, inode)| (*name, u64::from(*inode))));
        let meta = meta.map(|(name, number)| (name.to_owned(), json!(number)));
        set("meta", meta.collect::<Map<_, _>>().into());
        if !self.previous_versions.is_empty() {
            let previous = self.previous_versions.iter().map(previous_json);
            set("previous_metadata_versions", previous.collect());
        }
        root.into()
    }

    /// Returns the names of the options that are set.
    #[must_use]
    pub fn option_names(&self) -> Vec<&'static str> {
        option_names(&self.options)
    }

    /// Returns the smallest difference of two times in seconds.
    #[must_use]
    pub fn time_resolution(&self) -> f64 {
        match self.options.subsecond_resolution_nsec_multiplier {
            Some(nsec) => f64::from(nsec) / 1e9,
            None => f64::from(self.options.time_resolution_sec.unwrap_or(1)),
        }
    }
}

impl CategoryInfo {
    fn to_json(&self) -> (String, Value) {
        let value = json!({
            "block_count": self.block_count,
            "compressed_size": self.compressed_size,
            "uncompressed_size": self.uncompressed_size,
        });
        (self.name.clone(), value)
    }
}

impl SectionInfo {
    fn to_json(&self) -> Value {
        let mut value = json!({
            "type": self.section_type.name(),
            "type_number": match self.section_type {
                SectionType::Unknown(number) => Some(number),
                _ => None,
            },
            "compression": self.compression.map(CompressionType::name),
            "offset": self.offset,
            "compressed_size": self.compressed_size,
            "size": self.size,
            "ratio": self.ratio(),
            "checksum_ok": self.checksum_ok,
            "category": self.category,
            "metadata": self.metadata,
        });
        if let Some(keys) = value.as_object_mut() {
            keys.retain(|_, value| !value.is_null());
        }
        value
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio for people to read")]
    fn ratio(&self) -> Option<f64> {
        let size = self.size.filter(|size| *size > 0)?;
        Some(self.compressed_size as f64 / size as f64)
    }
}

/// Returns the names of the options of metadata that are set.
#[must_use]
pub fn option_names(options: &FsOptions) -> Vec<&'static str> {
    [
        (options.mtime_only, "mtime_only"),
        (options.packed_chunk_table, "packed_chunk_table"),
        (options.packed_directories, "packed_directories"),
        (
            options.packed_shared_files_table,
            "packed_shared_files_table",
        ),
        (options.has_btime, "has_btime"),
        (options.inodes_have_nlink, "inodes_have_nlink"),
    ]
    .into_iter()
    .filter_map(|(is_set, name)| is_set.then_some(name))
    .collect()
}

fn previous_json(previous: &MetadataHistoryEntry) -> Value {
    let mut value = json!({
        "major": previous.major,
        "minor": previous.minor,
        "block_size": previous.block_size,
        "options": option_names(&previous.options.unwrap_or_default()),
    });
    if let (Some(keys), Some(program)) = (value.as_object_mut(), &previous.dwarfs_version) {
        let program = String::from_utf8_lossy(program);
        keys.insert("dwarfs_version".to_owned(), json!(program));
    }
    value
}

/// Stored and uncompressed bytes of all sections of some types.
fn total(sections: &[SectionInfo], types: &[SectionType]) -> (u64, Option<u64>) {
    let of_type = || {
        sections
            .iter()
            .filter(|section| types.contains(&section.section_type))
    };
    let compressed = of_type().map(|section| section.compressed_size).sum();
    let uncompressed = of_type().try_fold(0_u64, |sum, section| sum.checked_add(section.size?));
    (compressed, uncompressed)
}

fn categories(tables: &Tables, sections: &[SectionInfo]) -> Vec<CategoryInfo> {
    let empty = |name: &String| CategoryInfo {
        name: name.clone(),
        block_count: 0,
        compressed_size: 0,
        uncompressed_size: Some(0),
    };
    let mut all: Vec<_> = tables.category_names.iter().flatten().map(empty).collect();
    for section in sections {
        let Some(category) = all
            .iter_mut()
            .find(|category| section.category.as_ref() == Some(&category.name))
        else {
            continue;
        };
        category.block_count += 1;
        category.compressed_size += section.compressed_size;
        category.uncompressed_size = category
            .uncompressed_size
            .and_then(|sum| sum.checked_add(section.size?));
    }
    all
}

fn category(tables: &Tables, data: &[u8], block: u32) -> Option<String> {
    let index = tables.block_categories?.get(data, block.into())?;
    tables
        .category_names
        .as_ref()?
        .get(usize::try_from(index).ok()?)
        .cloned()
}

/// The JSON of a block as it is stored; as a string if it is none.
fn category_metadata(tables: &Tables, data: &[u8], block: u32) -> Option<Value> {
    let index = tables.block_category_metadata?.get(data, block)?;
    let text = tables
        .category_metadata_json
        .as_ref()?
        .get(usize::try_from(index).ok()?)?;
    Some(serde_json::from_str(text).unwrap_or_else(|_| json!(text)))
}

fn table_lengths(tables: &Tables) -> Vec<(&'static str, u64)> {
    let optional = |column: Option<durin_format::frozen::view::Column>| {
        column.map_or(0, |column| column.len())
    };
    vec![
        ("chunks", tables.chunks.len()),
        ("directories", tables.directories.len()),
        ("inodes", tables.inodes.len()),
        ("chunk_table", tables.chunk_table.len()),
        ("entry_table_v2_2", tables.entry_table_v2_2.len()),
        ("symlink_table", tables.symlink_table.len()),
        ("uids", tables.uids.len()),
        ("gids", tables.gids.len()),
        ("modes", tables.modes.len()),
        ("names", tables.names.len()),
        ("symlinks", tables.symlinks.len()),
        ("devices", optional(tables.devices)),
        (
            "dir_entries",
            tables.dir_entries.map_or(0, |entries| entries.len()),
        ),
        ("shared_files_table", optional(tables.shared_files_table)),
        ("block_categories", optional(tables.block_categories)),
        (
            "reg_file_size_cache",
            tables.size_cache.map_or(0, |cache| cache.size.len()),
        ),
        ("large_hole_size", optional(tables.large_hole_size)),
    ]
}

fn history_json(entry: &HistoryEntry) -> Value {
    let mut value = json!({
        "libdwarfs_version": version_json(&entry.version),
        "system_id": entry.system_id,
        "compiler_id": entry.compiler_id,
        "arguments": entry.arguments,
        "timestamp": entry.timestamp.map(|epoch| json!({ "epoch": epoch })),
        "library_versions": entry.library_versions,
    });
    if let Some(keys) = value.as_object_mut() {
        keys.retain(|_, value| !value.is_null());
    }
    value
}

fn version_json(version: &DwarfsVersion) -> Value {
    let mut value = json!({
        "major": version.major,
        "minor": version.minor,
        "patch": version.patch,
        "is_release": version.is_release,
        "git_rev": version.git_rev,
        "git_branch": version.git_branch,
        "git_desc": version.git_desc,
    });
    if let Some(keys) = value.as_object_mut() {
        keys.retain(|_, value| !value.is_null());
    }
    value
}
