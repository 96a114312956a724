//! Small schemas made by hand, and data for them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;
use crate::frozen::schema::Field;

fn layout(size: u32, bits: u16, fields: &[(i16, u16, i16)]) -> Layout {
    let field = |&(id, layout, offset): &(i16, u16, i16)| Field { id, layout, offset };
    Layout {
        size,
        bits,
        fields: fields.iter().map(field).collect(),
    }
}

fn schema(layouts: Vec<Layout>) -> Schema {
    let root = u16::try_from(layouts.len() - 1).unwrap();
    Schema { layouts, root }
}

/// A root with a list of pairs (3 bits, 5 bits), bit-packed.
fn packed_pairs() -> Schema {
    schema(vec![
        layout(0, 3, &[]),
        layout(0, 5, &[]),
        layout(0, 8, &[(1, 0, 0), (2, 1, -3)]),
        layout(0, 8, &[(1, 0, 0), (2, 1, -3), (3, 2, 0)]),
        layout(1, 8, &[(7, 3, 0)]),
    ])
}

#[test]
fn columns_of_a_bit_packed_list() {
    // distance 2, count 3; one unused byte; the pairs.
    let data = [2 | 3 << 3, 0xff, 1 | 21 << 3, 7, 31 << 3];
    let schema = packed_pairs();
    let list = Object::root(&schema, &data)
        .unwrap()
        .field(7)
        .list()
        .unwrap();
    let first: Vec<u64> = list.field_column(1, 32).unwrap().iter(&data).collect();
    let second = list.field_column(2, 32).unwrap();
    assert_eq!(first, [1, 7, 0]);
    assert_eq!(second.iter(&data).collect::<Vec<_>>(), [21, 0, 31]);
    assert_eq!((second.len(), second.bits()), (3, 5));
    assert_eq!(second.get(&data, 3), None);
    let missing = list.field_column(9, 32).unwrap();
    assert_eq!(missing.iter(&data).collect::<Vec<_>>(), [0, 0, 0]);
    let items: Vec<u64> = list
        .items()
        .map(|item| item.field(2).u64().unwrap())
        .collect();
    assert_eq!(items, [21, 0, 31]);
}

#[test]
fn lists_that_end_outside_are_refused() {
    let schema = packed_pairs();
    let data = [2 | 3 << 3, 0, 0, 0];
    let root = Object::root(&schema, &data).unwrap();
    let message = root.read(7, "pairs", |o| o.list()).unwrap_err().to_string();
    assert_eq!(
        message,
        "pairs: 3 bytes at distance 2 from byte 0 lie outside the 4 bytes of data"
    );
    assert!(Object::root(&schema, &[]).is_err());
}

#[test]
fn byte_sized_items_have_their_own_start() {
    // A list of two strings in items of 2 bytes: distance at byte 0, count at byte 1.
    let schema = schema(vec![
        layout(1, 8, &[]),
        layout(2, 0, &[(1, 0, 0), (2, 0, 1)]),
        layout(2, 0, &[(1, 0, 0), (2, 0, 1), (3, 1, 0)]),
    ]);
    let mut data = vec![3, 2, 0xee, 4, 2, 4, 1];
    data.extend_from_slice(b"hi!");
    let list = Object::root(&schema, &data).unwrap().list().unwrap();
    let strings = list.string_columns().unwrap();
    let text = |index| {
        strings
            .get(&data, index)
            .map(|span| span.map(|s| s.bytes(&data)))
    };
    assert_eq!(text(0).unwrap(), Some(b"hi".as_slice()));
    assert_eq!(text(1).unwrap(), Some(b"!".as_slice()));
    assert_eq!(text(2).unwrap(), None);
    assert_eq!(list.item(1).unwrap().string().unwrap().bytes(&data), b"!");
    data[6] = 2;
    assert!(strings.get(&data, 1).is_err());
}

#[test]
fn strings_of_bit_packed_items_count_from_the_array() {
    let schema = schema(vec![
        layout(0, 4, &[]),
        layout(0, 8, &[(1, 0, 0), (2, 0, -4)]),
        layout(1, 8, &[(1, 0, 0), (2, 0, -4), (3, 1, 0)]),
    ]);
    let mut data = vec![1 | 2 << 4, 2 | 1 << 4, 3 | 2 << 4];
    data.extend_from_slice(b"abc");
    let list = Object::root(&schema, &data).unwrap().list().unwrap();
    let strings = list.string_columns().unwrap();
    assert_eq!(strings.get(&data, 0).unwrap().unwrap().bytes(&data), b"a");
    assert_eq!(strings.get(&data, 1).unwrap().unwrap().bytes(&data), b"bc");
    assert_eq!(list.item(1).unwrap().string().unwrap().bytes(&data), b"bc");
}

#[test]
fn integers_wider_than_their_type_are_corrupt() {
    let schema = schema(vec![layout(5, 33, &[])]);
    let data = [0xff; 5];
    let root = Object::root(&schema, &data).unwrap();
    let message = root.u32().unwrap_err().to_string();
    assert_eq!(message, "33 bits for an integer of 32");
    assert_eq!(root.u64().unwrap(), (1 << 33) - 1);
    assert!(root.bool().unwrap());
}

#[test]
fn items_of_no_bits_are_many_but_not_endless() {
    let schema = schema(vec![layout(0, 64, &[]), layout(8, 64, &[(2, 0, 0)])]);
    let list = |count: u64| {
        let data = count.to_le_bytes();
        let list = Object::root(&schema, &data).unwrap().list();
        list.map(|list| list.column(32).unwrap().get(&data, count - 1))
    };
    assert_eq!(list(1 << 32).unwrap(), Some(0));
    assert!(list((1 << 32) + 1).is_err());
}

#[test]
fn fields_far_away_do_not_overflow() {
    let schema = schema(vec![
        layout(0, 1, &[]),
        layout(1, 1, &[(1, 0, i16::MAX), (2, 0, i16::MIN)]),
    ]);
    let root = Object::root(&schema, &[0]).unwrap();
    assert!(root.field(1).u64().is_err());
    assert!(root.field(2).bool().is_err());
    assert_eq!(root.field(3).u64().unwrap(), 0);
}
