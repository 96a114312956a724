//! Our symbol tables are at least as good as those of the reference for the same names.

use durin_format::fsst::SymbolTable;
use durin_format::metadata::{Metadata, StringTable};
use durin_format::string_table::{StringPacking, build};
use durin_testkit::vectors::Vectors;

use crate::image::metadata_sections;

fn unpack(table: &StringTable) -> Vec<Vec<u8>> {
    let symbols = SymbolTable::parse(table.symtab.as_ref().unwrap()).unwrap();
    let mut rest = table.buffer.as_slice();
    let mut start = 0;
    let lengths = table
        .index
        .iter()
        .skip(usize::from(!table.packed_index))
        .map(|value| {
            let len = value - if table.packed_index { 0 } else { start };
            start = *value;
            len as usize
        });
    let text = |len| {
        let (codes, after) = rest.split_at(len);
        rest = after;
        let mut text = Vec::new();
        symbols.decode(codes, &mut text).unwrap();
        text
    };
    lengths.map(text).collect()
}

fn stored_len(table: &StringTable) -> usize {
    table.buffer.len() + table.symtab.as_ref().map_or(0, Vec::len)
}

#[test]
fn names_of_the_references_images_become_smaller_than_there() {
    let vectors = durin_testkit::require!(Vectors::find());
    let packing = StringPacking {
        len_max: 512,
        force: false,
        packed_index: false,
        compress: true,
    };
    let mut tables_seen = 0;
    for image in [vectors.images("good"), vectors.images("generated")].concat() {
        let stored = metadata_sections(&image).unwrap();
        let metadata = Metadata::thaw(&stored.schema, &stored.data).unwrap();
        let tables = [metadata.compact_names, metadata.compact_symlinks];
        for theirs in tables
            .into_iter()
            .flatten()
            .filter(|table| table.symtab.is_some())
        {
            let names = unpack(&theirs);
            let ours = build(names.iter().map(Vec::as_slice), packing).unwrap();
            assert_eq!(unpack(&ours), names);
            assert!(
                stored_len(&ours) <= stored_len(&theirs),
                "{}",
                image.display()
            );
            tables_seen += 1;
        }
    }
    assert!(tables_seen >= 10, "only {tables_seen} tables with symbols");
}
