//! An open image.

use std::sync::Arc;

use durin_format::frozen::schema::Schema;
use durin_format::metadata::{Metadata as OwnedMetadata, Tables};
use durin_format::section::{MAGIC, SectionHeader, SectionType, Version};
use durin_format::{Error, ErrorKind, InodeNum, Result, SectionNum, limits};
use durin_source::Source;

use crate::block_cache::BlockCache;
use crate::check;
use crate::locate::find_image;
use crate::metadata::Metadata;
use crate::options::{ImageOffset, ImageOptions, MetadataCheck};
use crate::payload;
use crate::perfmon::Perfmon;
use crate::positions::Positions;
use crate::sections::{Section, SectionList, Span, read_header};
use crate::sequence::Sequences;
use crate::walks::Walks;

/// Longest header before an image that [`Image::header_bytes`] reads into memory.
const HEADER_BYTES_MAX: u64 = 1 << 30;

/// Bytes at the end of a file that are asked for before anything is known of it: an index of some thousand sections.
const INDEX_READ_AHEAD_LEN: u64 = 64 << 10;

/// A directory entry. Two entries of the same inode are hard links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryRef {
    /// The inode it names.
    pub inode: InodeNum,
    /// Its place among the directory entries. In formats up to 2.2 attributes belong to the entry;
    /// later it is of no importance.
    pub entry_index: u32,
}

/// An open image. Several threads may use it at once.
pub struct Image {
    source: Arc<dyn Source>,
    span: Span,
    list: SectionList,
    metadata: Metadata,
    cache: BlockCache,
    positions: Positions,
    sequences: Sequences,
    walks: Walks,
}

impl Image {
    /// Opens an image: finds it, lists its sections, and loads the metadata.
    ///
    /// Metadata that is stored uncompressed in a mapped source is used where it is. Its checksum is verified.
    ///
    /// # Errors
    /// `NotFound` if there is no image, `Corrupt` if it is damaged, `Unsupported` if this release cannot read its
    /// version or features, `Limit` if something is larger than allowed, `Io` if the source cannot be read.
    pub fn open(source: Arc<dyn Source>, options: &ImageOptions) -> Result<Self> {
        // Where the index of most images is comes from the disk together with their first bytes.
        let tail_len = source.len().min(INDEX_READ_AHEAD_LEN);
        source.advise(source.len() - tail_len, tail_len);
        let span = find_span(source.as_ref(), options)?;
        let list = SectionList::read(source.as_ref(), span)?;
        let metadata = Metadata::open(&source, &list, options)?;
        let cache = BlockCache::new(
            &source,
            list.of_type(SectionType::Block).copied().collect(),
            !list.version.has_v1_sections(),
            metadata.tables.block_size,
            &options.cache,
        );
        let image = Self {
            source,
            span,
            list,
            metadata,
            cache,
            positions: Positions::default(),
            sequences: Sequences::default(),
            walks: Walks::default(),
        };
        // Nothing but the metadata itself tells whether that of a v1 image is damaged.
        if options.check == MetadataCheck::Full || image.version().has_v1_sections() {
            check::metadata_consistency(&image)?;
        }
        Ok(image)
    }

    /// Returns the version of the format.
    #[must_use]
    pub fn version(&self) -> Version {
        self.list.version
    }

    /// Returns the bytes from the start of the file to the image: the length of the header.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.span.start
    }

    /// Returns the bytes of the image, without what is before and after it.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no image is empty")]
    pub fn len(&self) -> u64 {
        self.span.end - self.span.start
    }

    /// Reads the bytes before the image; empty if it begins the file.
    ///
    /// # Errors
    /// `Io` if they cannot be read, `Limit` if they are more than a header can sensibly be.
    pub fn header_bytes(&self) -> Result<Vec<u8>> {
        if self.span.start > HEADER_BYTES_MAX {
            return Err(Error::limit(format!(
                "header of {} bytes: at most {HEADER_BYTES_MAX} are read",
                self.span.start
            )));
        }
        let mut header = vec![0; usize::try_from(self.span.start).unwrap_or(0)];
        payload::read_exact(self.source(), 0, &mut header)?;
        Ok(header)
    }

    /// Returns what the image is read from.
    #[must_use]
    pub fn source(&self) -> &dyn Source {
        self.source.as_ref()
    }

    /// Returns all sections in file order.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.list.sections
    }

    /// Reads the header of a section and compares it with the section index, if the list comes from there.
    ///
    /// # Errors
    /// `NotFound` if there is no such section, `Corrupt` if its header is damaged, `Io` if it cannot be read.
    pub fn section_header(&self, number: SectionNum) -> Result<SectionHeader> {
        let section = usize::try_from(number.0)
            .ok()
            .and_then(|at| self.sections().get(at))
            .ok_or_else(|| Error::not_found(format!("no section {number}")))?;
        self.header_of(section).map(|(header, _)| header)
    }

    /// As [`Self::section_header`], with the bytes for the checksums of a v2 section.
    pub(crate) fn header_of(&self, section: &Section) -> Result<(SectionHeader, [u8; 64])> {
        if self.version().has_v1_sections() {
            let end = section.payload_offset + section.payload_len;
            return read_header(self.source(), section.offset, end, self.version())
                .map_err(|error| error.at(section.location()));
        }
        crate::sections::read_v2_header(self.source(), section)
    }

    /// Whether the sections were listed from a section index.
    #[must_use]
    pub fn has_section_index(&self) -> bool {
        self.list.has_index
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn block_count(&self) -> u32 {
        self.cache.block_count()
    }

    /// Returns the uncompressed size in bytes that no block exceeds, a power of two.
    #[must_use]
    pub fn block_size(&self) -> u32 {
        self.metadata.tables.block_size
    }

    /// Returns the number of inodes; they are numbered from 0, which is the root directory.
    #[must_use]
    pub fn inode_count(&self) -> u32 {
        self.metadata.inode_count()
    }

    /// Returns the number of directory entries, that of the root included.
    #[must_use]
    pub fn entry_count(&self) -> u32 {
        self.metadata.entry_count
    }

    /// Returns the metadata as it is stored, and the data that goes with it. Values are not checked.
    #[must_use]
    pub fn tables(&self) -> (&Tables, &[u8]) {
        (&self.metadata.tables, self.metadata.data())
    }

    /// Returns the payload of the schema section after decompression.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn schema_bytes(&self) -> Result<Vec<u8>> {
        let section = self.list.only(SectionType::MetadataV2Schema)?;
        let loaded = payload::load(
            self.source(),
            self.version(),
            section,
            limits::SCHEMA_BYTES_MAX,
            u64::MAX,
        )?;
        Ok(loaded.bytes(self.source()).to_vec())
    }

    /// Returns the schema.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn schema(&self) -> Result<Schema> {
        Schema::parse(&self.schema_bytes()?)
    }

    /// Copies all of the metadata into memory, for dumps. Needs many times as much memory as the metadata section.
    ///
    /// # Errors
    /// `Corrupt` if a value does not fit its type.
    pub fn thaw_metadata(&self) -> Result<OwnedMetadata> {
        OwnedMetadata::thaw(&self.schema_bytes()?, self.metadata.data())
            .map_err(|error| self.metadata.place(error))
    }

    /// Returns the cache of decompressed blocks.
    #[must_use]
    pub fn cache(&self) -> &BlockCache {
        &self.cache
    }

    /// Returns what measures this image, if anything does.
    #[must_use]
    pub fn perfmon(&self) -> Option<&Perfmon> {
        self.cache.perfmon()
    }

    /// Returns the root directory.
    #[must_use]
    pub fn root(&self) -> EntryRef {
        let root = InodeNum(0);
        // In formats up to 2.2 the root's entry is the first one; if the table says otherwise, attributes say so.
        let entry_index = self.metadata.element_of(root).unwrap_or(0);
        EntryRef {
            inode: root,
            entry_index: if self.metadata.is_legacy {
                entry_index
            } else {
                0
            },
        }
    }

    /// Returns the entry whose attributes are those of an inode in formats up to 2.2. Later, when it does not matter,
    /// the entry index is 0.
    ///
    /// # Errors
    /// `NotFound` if there is no such inode, `Corrupt` if a value in the metadata is wrong.
    pub fn canonical_entry(&self, inode: InodeNum) -> Result<EntryRef> {
        if inode.0 >= self.inode_count() {
            return Err(self.metadata.not_a(inode, "file"));
        }
        let entry_index = if self.metadata.is_legacy {
            self.metadata.element_of(inode)?
        } else {
            0
        };
        Ok(EntryRef { inode, entry_index })
    }

    /// Returns the directory entry with this index in formats up to 2.2; `None` if there is none or the format is
    /// younger, where attributes belong to inodes.
    ///
    /// # Errors
    /// `Corrupt` if a value in the metadata is wrong.
    pub fn entry_at(&self, entry_index: u32) -> Result<Option<EntryRef>> {
        if !self.metadata.is_legacy || entry_index >= self.entry_count() {
            return Ok(None);
        }
        let inode = self.metadata.inode_of_entry(entry_index)?;
        Ok(Some(EntryRef { inode, entry_index }))
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    pub(crate) fn positions(&self) -> &Positions {
        &self.positions
    }

    pub(crate) fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    pub(crate) fn walks(&self) -> &Walks {
        &self.walks
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("source", &self.source)
            .field("version", &self.version())
            .field("offset", &self.offset())
            .field("sections", &self.sections().len())
            .field("inodes", &self.inode_count())
            .finish_non_exhaustive()
    }
}

/// Finds the part of the file that is the image.
fn find_span(source: &dyn Source, options: &ImageOptions) -> Result<Span> {
    let start = match options.offset {
        ImageOffset::At(offset) => offset,
        ImageOffset::Auto => match find_image(source) {
            // What begins like an image is one with damage; opening it says more than that none was found.
            Err(error) if error.kind() == ErrorKind::NotFound && begins_with_magic(source) => 0,
            found => found?,
        },
    };
    let end = match options.image_size {
        Some(size) => start.saturating_add(size),
        None => source.len(),
    };
    if start > source.len() || end > source.len() {
        return Err(Error::invalid_input(format!(
            "image at {start} to {end} is not inside the file of {} bytes",
            source.len()
        )));
    }
    Ok(Span { start, end })
}

fn begins_with_magic(source: &dyn Source) -> bool {
    let mut magic = [0; MAGIC.len()];
    source.read_exact_at(0, &mut magic).is_ok() && magic == MAGIC
}
