//! Where the image is in the file, and faults of the file itself.

use std::sync::Arc;

use durin_format::ErrorKind;
use durin_reader::{Image, ImageOffset, ImageOptions};
use durin_source::{Fault, FaultySource, MemorySource, Source};
use durin_testkit::require;
use durin_testkit::vectors::Vectors;

use crate::common::{open_bytes, quick, show};

fn base() -> Result<Vec<u8>, String> {
    Ok(std::fs::read(Vectors::find()?.image("handmade", "base")).unwrap())
}

#[test]
fn an_image_inside_a_file_is_found_with_offset_and_size() {
    let bytes = require!(base());
    let shown = show(&open_bytes(bytes.clone(), &quick()).unwrap()).unwrap();
    let mut file = b"#!/bin/sh\n# DWARFS\x02\x05 is what follows\n".to_vec();
    let start = file.len() as u64;
    file.extend_from_slice(&bytes);
    file.extend_from_slice(b"something else");
    let error = open_bytes(file.clone(), &quick()).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Corrupt,
        "bytes behind the image: {error}"
    );
    for offset in [ImageOffset::Auto, ImageOffset::At(start)] {
        let options = ImageOptions {
            offset,
            image_size: Some(bytes.len() as u64),
            ..quick()
        };
        let image = open_bytes(file.clone(), &options).unwrap();
        assert_eq!(image.offset(), start);
        assert_eq!(
            image.header_bytes().unwrap(),
            file[..usize::try_from(start).unwrap()]
        );
        assert_eq!(show(&image).unwrap(), shown);
    }
}

#[test]
fn an_image_cannot_be_outside_of_its_file() {
    let bytes = require!(base());
    let check = |offset, image_size| {
        let options = ImageOptions {
            offset,
            image_size,
            ..quick()
        };
        open_bytes(bytes.clone(), &options).unwrap_err().kind()
    };
    assert_eq!(
        check(ImageOffset::At(u64::MAX), None),
        ErrorKind::InvalidInput
    );
    assert_eq!(
        check(ImageOffset::At(1), Some(u64::MAX)),
        ErrorKind::InvalidInput
    );
    assert_eq!(check(ImageOffset::At(1), None), ErrorKind::Corrupt);
    assert_eq!(
        check(ImageOffset::At(bytes.len() as u64), None),
        ErrorKind::Corrupt
    );
    assert_eq!(check(ImageOffset::Auto, Some(10)), ErrorKind::Corrupt);
}

#[test]
fn metadata_larger_than_allowed_is_not_loaded() {
    let bytes = require!(base());
    let options = ImageOptions {
        metadata_bytes_max: 100,
        ..quick()
    };
    let error = open_bytes(bytes, &options).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Limit | ErrorKind::Corrupt),
        "{error}"
    );
}

#[test]
fn a_file_that_cannot_be_read_gives_errors_and_recovers() {
    let bytes = require!(base());
    let len = bytes.len() as u64;
    for at in (0..len).step_by(997) {
        let inner = MemorySource::new(bytes.clone());
        let source: Arc<dyn Source> =
            Arc::new(FaultySource::new(inner, vec![Fault::Error(at..at + 1)]));
        match Image::open(source, &quick()).and_then(|image| show(&image)) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
        }
    }
    let cut: Arc<dyn Source> = Arc::new(FaultySource::new(
        MemorySource::new(bytes),
        vec![Fault::CutAt(len / 2)],
    ));
    assert_eq!(
        Image::open(cut, &quick()).unwrap_err().kind(),
        ErrorKind::Io
    );
}

#[test]
fn requests_for_what_is_not_there_are_errors() {
    let image = open_bytes(require!(base()), &quick()).unwrap();
    let none = durin_format::InodeNum(image.inode_count());
    let root = image.root().inode;
    let mut name = Vec::new();
    assert_eq!(
        image.inode_attr(none).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(image.dir_len(none).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        image.read_link(root).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    assert_eq!(
        image.read_at(root, 0, &mut [0]).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    assert_eq!(
        image
            .dir_entry(root, u32::MAX, &mut name)
            .unwrap_err()
            .kind(),
        ErrorKind::NotFound
    );
    assert_eq!(image.parent(none).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(image.resolve(b"no/such/path").unwrap(), None);
    assert_eq!(image.resolve(b"//").unwrap(), Some(image.root()));
}
