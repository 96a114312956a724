//! The schema of Frozen data: how wide every field is and where it is.
//!
//! Source: docs/format.md, "Schema encoding".

use crate::limits::{SCHEMA_BYTES_MAX, SCHEMA_LAYOUT_COUNT_MAX};
use crate::thrift::{Reader, Type, Writer};
use crate::{Error, Result};

/// The version of the schema format that we write, and the newest that we read.
const FILE_VERSION: i32 = 1;

/// All layouts, each referred to by its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Layout number `i` is element `i`.
    pub layouts: Vec<Layout>,
    /// The layout of the whole value.
    pub root: u16,
}

/// How one type is laid out at one place of the type tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Bytes; 0 for a layout that is pure bits.
    pub size: u32,
    /// Bits of the bit area; at most 32767.
    pub bits: u16,
    /// In ascending order of `id`.
    pub fields: Vec<Field>,
}

/// A field of a struct, or a part of an optional, string, list or map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Field {
    /// The id of the field in its type.
    pub id: i16,
    /// The number of its layout.
    pub layout: u16,
    /// Below 0: its distance in bits, negated. Otherwise in bytes.
    pub offset: i16,
}

/// In which order the fields of the schema itself are written; readers take any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// By id, as releases since 0.15 do.
    #[default]
    Ascending,
    /// The version first, as releases up to 0.14 did.
    VersionFirst,
}

impl Schema {
    /// Parses the payload of a section of type `METADATA_V2_SCHEMA`, after decompression.
    ///
    /// The numbers of all layouts are dense, and every number in a field and in `root` is that of a layout.
    /// Layouts may still refer to each other in circles: whoever follows them follows a finite type, too.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not such a schema, `Unsupported` if it has a newer version, `Limit` above
    /// [`SCHEMA_BYTES_MAX`].
    pub fn parse(payload: &[u8]) -> Result<Self> {
        if payload.len() as u64 > SCHEMA_BYTES_MAX {
            return Err(Error::limit(format!(
                "schema of {} bytes is longer than SCHEMA_BYTES_MAX = {SCHEMA_BYTES_MAX}",
                payload.len()
            )));
        }
        let mut reader = Reader::new(payload);
        let schema = read_schema(&mut reader).map_err(|error| error.context("schema"))?;
        if reader.remaining() > 0 {
            return Err(Error::corrupt(format!(
                "schema: {} bytes follow its end at byte {}",
                reader.remaining(),
                reader.pos()
            )));
        }
        schema.check_references()?;
        Ok(schema)
    }

    /// Returns a layout by its number.
    #[must_use]
    pub fn layout(&self, number: u16) -> Option<&Layout> {
        self.layouts.get(usize::from(number))
    }

    /// Builds the payload, before compression; every field is written, also those that are 0.
    ///
    /// # Panics
    /// If there are more than 32767 layouts, or a size of 2^31 or more: the caller made the schema.
    #[must_use]
    pub fn encode(&self, style: Style) -> Vec<u8> {
        let mut writer = Writer::new();
        let mut last_id = 0;
        if style == Style::VersionFirst {
            writer.i32_field(&mut last_id, 4, FILE_VERSION);
        }
        writer.bool_field(&mut last_id, 1, true);
        let count = self.layouts.len();
        writer.map_field(&mut last_id, 2, Type::I16, Type::Struct, count);
        for (number, layout) in self.layouts.iter().enumerate() {
            writer.i16(i16::try_from(number).expect("layout numbers have 15 bits"));
            write_layout(&mut writer, layout);
        }
        writer.i16_field(&mut last_id, 3, signed(self.root));
        if style == Style::Ascending {
            writer.i32_field(&mut last_id, 4, FILE_VERSION);
        }
        writer.stop();
        writer.into_bytes()
    }

    fn check_references(&self) -> Result<()> {
        let count = self.layouts.len();
        let missing = |what: &str, number: u16| {
            Error::corrupt(format!(
                "schema: {what} refers to layout {number}, but there are {count}"
            ))
        };
        for (number, layout) in self.layouts.iter().enumerate() {
            for field in &layout.fields {
                if self.layout(field.layout).is_none() {
                    let what = format!("field {} of layout {number}", field.id);
                    return Err(missing(&what, field.layout));
                }
            }
        }
        match self.layout(self.root) {
            Some(_) => Ok(()),
            None => Err(missing("the root", self.root)),
        }
    }
}

impl Layout {
    /// Returns the field with this id.
    #[must_use]
    pub fn field(&self, id: i16) -> Option<&Field> {
        let place = self.fields.binary_search_by_key(&id, |field| field.id);
        self.fields.get(place.ok()?)
    }
}

fn read_schema(reader: &mut Reader<'_>) -> Result<Schema> {
    let mut schema = Schema::default();
    let mut last_id = 0;
    while let Some(field) = reader.next_field(&mut last_id)? {
        match field {
            (2, Type::Map) => schema.layouts = read_layouts(reader)?,
            (3, Type::I16) => schema.root = unsigned(reader.read_i16()?, "number of the root")?,
            (4, Type::I32) => {
                let version = reader.read_i32()?;
                if version > FILE_VERSION {
                    return Err(Error::unsupported(format!(
                        "file version {version}: this release reads up to {FILE_VERSION}"
                    )));
                }
            }
            // Among them `relaxTypeChecks`, which is true in every image.
            (_, other) => reader.skip(other)?,
        }
    }
    Ok(schema)
}

fn read_layouts(reader: &mut Reader<'_>) -> Result<Vec<Layout>> {
    let Some((key, value, count)) = reader.map_header()? else {
        return Ok(Vec::new());
    };
    expect_types("layouts", key, value)?;
    if count > SCHEMA_LAYOUT_COUNT_MAX {
        return Err(Error::corrupt(format!(
            "{count} layouts: their numbers end at {}",
            SCHEMA_LAYOUT_COUNT_MAX - 1
        )));
    }
    // A map may hold its pairs in any order.
    let mut layouts = vec![None; count];
    for _ in 0..count {
        let number = reader.read_i16()?;
        let layout = read_layout(reader).map_err(|e| e.context(format!("layout {number}")))?;
        let slot = usize::try_from(number)
            .ok()
            .and_then(|number| layouts.get_mut(number))
            .ok_or_else(|| {
                Error::corrupt(format!(
                    "layout number {number}: expected 0 to {}",
                    count - 1
                ))
            })?;
        if slot.replace(layout).is_some() {
            return Err(Error::corrupt(format!("layout {number} is there twice")));
        }
    }
    // As many numbers below `count` as `count`, each different: none is missing.
    Ok(layouts.into_iter().flatten().collect())
}

fn read_layout(reader: &mut Reader<'_>) -> Result<Layout> {
    let mut layout = Layout::default();
    let mut last_id = 0;
    while let Some(field) = reader.next_field(&mut last_id)? {
        match field {
            (1, Type::I32) => {
                let size = reader.read_i32()?;
                layout.size = u32::try_from(size)
                    .map_err(|_| Error::corrupt(format!("size {size} is negative")))?;
            }
            (2, Type::I16) => layout.bits = unsigned(reader.read_i16()?, "number of bits")?,
            (3, Type::Map) => layout.fields = read_fields(reader)?,
            (_, other) => reader.skip(other)?,
        }
    }
    Ok(layout)
}

fn read_fields(reader: &mut Reader<'_>) -> Result<Vec<Field>> {
    let Some((key, value, count)) = reader.map_header()? else {
        return Ok(Vec::new());
    };
    expect_types("fields", key, value)?;
    let mut fields = Vec::new();
    for _ in 0..count {
        let id = reader.read_i16()?;
        fields.push(read_field(reader, id).map_err(|e| e.context(format!("field {id}")))?);
    }
    fields.sort_unstable_by_key(|field: &Field| field.id);
    let twice = fields.windows(2).find_map(|pair| match pair {
        [a, b] if a.id == b.id => Some(a.id),
        _ => None,
    });
    match twice {
        Some(id) => Err(Error::corrupt(format!("field {id} is there twice"))),
        None => Ok(fields),
    }
}

fn read_field(reader: &mut Reader<'_>, id: i16) -> Result<Field> {
    let mut result = Field {
        id,
        ..Field::default()
    };
    let mut last_id = 0;
    while let Some(field) = reader.next_field(&mut last_id)? {
        match field {
            (1, Type::I16) => result.layout = unsigned(reader.read_i16()?, "layout number")?,
            (2, Type::I16) => result.offset = reader.read_i16()?,
            (_, other) => reader.skip(other)?,
        }
    }
    Ok(result)
}

fn expect_types(what: &str, key: Type, value: Type) -> Result<()> {
    if (key, value) == (Type::I16, Type::Struct) {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "map of {what}: expected I16 to Struct, found {key:?} to {value:?}"
    )))
}

fn unsigned(value: i16, what: &str) -> Result<u16> {
    u16::try_from(value).map_err(|_| Error::corrupt(format!("{what} {value} is negative")))
}

fn signed(value: u16) -> i16 {
    i16::try_from(value).expect("the schema format has 15 bits for this")
}

fn write_layout(writer: &mut Writer, layout: &Layout) {
    let mut last_id = 0;
    let size = i32::try_from(layout.size).expect("sizes have 31 bits");
    writer.i32_field(&mut last_id, 1, size);
    writer.i16_field(&mut last_id, 2, signed(layout.bits));
    let count = layout.fields.len();
    writer.map_field(&mut last_id, 3, Type::I16, Type::Struct, count);
    for field in &layout.fields {
        writer.i16(field.id);
        let mut inner_id = 0;
        writer.i16_field(&mut inner_id, 1, signed(field.layout));
        writer.i16_field(&mut inner_id, 2, field.offset);
        writer.stop();
    }
    // `typeName`, which no reader looks at.
    writer.binary_field(&mut last_id, 4, b"");
    writer.stop();
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn sample() -> Schema {
        let bits = |bits| Layout {
            bits,
            ..Layout::default()
        };
        let field = |id, layout, offset| Field { id, layout, offset };
        let root = Layout {
            size: 27,
            bits: 211,
            fields: vec![field(1, 0, 0), field(2, 1, -5), field(9, 0, 3)],
        };
        Schema {
            layouts: vec![bits(5), bits(1), root],
            root: 2,
        }
    }

    #[test]
    fn both_styles_come_back() {
        for style in [Style::Ascending, Style::VersionFirst] {
            assert_eq!(Schema::parse(&sample().encode(style)).unwrap(), sample());
        }
        // Source: docs/format.md, "Schema encoding".
        assert_eq!(sample().encode(Style::Ascending)[..2], [0x11, 0x1b]);
        assert_eq!(
            sample().encode(Style::VersionFirst)[..5],
            [0x45, 2, 1, 2, 0x1b]
        );
    }

    #[test]
    fn fields_are_found_by_id() {
        let schema = sample();
        let root = schema.layout(schema.root).unwrap();
        assert_eq!(root.field(2).unwrap().offset, -5);
        assert_eq!(root.field(3), None);
        assert_eq!(schema.layout(3), None);
    }

    #[test]
    fn hostile_schemas_are_refused() {
        let check = |change: &dyn Fn(&mut Schema), expect: &str| {
            let mut schema = sample();
            change(&mut schema);
            let error = Schema::parse(&schema.encode(Style::Ascending)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert_eq!(error.to_string(), expect);
        };
        check(
            &|schema| schema.root = 3,
            "schema: the root refers to layout 3, but there are 3",
        );
        check(
            &|schema| schema.layouts[2].fields[1].layout = 77,
            "schema: field 2 of layout 2 refers to layout 77, but there are 3",
        );
        check(
            &|schema| schema.layouts[2].fields[1].id = 1,
            "schema: layout 2: field 1 is there twice",
        );
        check(
            &|schema| schema.layouts.clear(),
            "schema: the root refers to layout 2, but there are 0",
        );
    }

    #[test]
    fn bytes_behind_the_schema_and_newer_versions_are_refused() {
        let mut bytes = sample().encode(Style::Ascending);
        bytes.push(0);
        let message = Schema::parse(&bytes).unwrap_err().to_string();
        assert!(
            message.starts_with("schema: 1 bytes follow its end"),
            "{message}"
        );

        let mut bytes = sample().encode(Style::VersionFirst);
        bytes[1] = 4;
        let error = Schema::parse(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn too_long_a_schema_is_not_looked_at() {
        let bytes = vec![0; usize::try_from(SCHEMA_BYTES_MAX).unwrap() + 1];
        assert_eq!(Schema::parse(&bytes).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn every_cut_is_corrupt_and_no_flip_panics() {
        let bytes = sample().encode(Style::VersionFirst);
        for at in 0..bytes.len() {
            assert!(Schema::parse(&bytes[..at]).is_err());
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                drop(Schema::parse(&flipped));
            }
        }
    }
}
