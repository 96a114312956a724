//! What every source has to do, run over all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io;
use std::sync::Arc;

use durin_source::{Fault, FaultySource, MemorySource, OpenMode, Source, open};

fn bytes() -> Vec<u8> {
    (0..100_000_u32).flat_map(u32::to_le_bytes).collect()
}

fn each(check: impl Fn(&dyn Source, &[u8])) {
    let bytes = bytes();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let sources: Vec<Arc<dyn Source>> = vec![
        open(file.path(), OpenMode::Mmap).unwrap(),
        open(file.path(), OpenMode::Read).unwrap(),
        Arc::new(MemorySource::new(bytes.clone())),
        Arc::new(FaultySource::new(
            MemorySource::new(bytes.clone()),
            vec![Fault::ShortReads(7)],
        )),
    ];
    for source in sources {
        check(source.as_ref(), &bytes);
    }
}

#[test]
fn reads_any_range() {
    each(|source, bytes| {
        assert_eq!(source.len(), bytes.len() as u64);
        for (offset, len) in [
            (0, 1),
            (1, 70_000),
            (399_999, 1),
            (400_000, 0),
            (12_345, 4096),
        ] {
            let mut buf = vec![0; len];
            source.read_exact_at(offset as u64, &mut buf).unwrap();
            assert_eq!(
                buf,
                bytes[offset..offset + len],
                "{source:?}: {len} at {offset}"
            );
        }
    });
}

#[test]
fn the_end_is_an_end() {
    each(|source, bytes| {
        let mut buf = [0; 8];
        for offset in [bytes.len() as u64, u64::MAX - 3] {
            // The kernel refuses offsets beyond 2^63; both answers keep a reader from going on.
            assert!(
                !matches!(source.read_at(offset, &mut buf), Ok(1..)),
                "{source:?}"
            );
            source.read_exact_at(offset, &mut buf).unwrap_err();
        }
        let error = source
            .read_exact_at(bytes.len() as u64 - 4, &mut buf)
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{source:?}");
    });
}

#[test]
fn mappings_are_whole() {
    each(|source, bytes| {
        if let Some(map) = source.mapping() {
            assert_eq!(map, bytes);
        }
        assert_eq!(source.next_data(5), Some(5));
        assert_eq!(source.next_data(bytes.len() as u64), None);
    });
}

#[test]
fn a_cut_file_gives_an_error_and_no_signal() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![1; 1 << 20]).unwrap();
    let source = open(file.path(), OpenMode::Mmap).unwrap();
    file.as_file().set_len(10).unwrap();
    let error = source.read_exact_at(1 << 19, &mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn holes_are_skipped_or_given_as_data() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 30).unwrap();
    let source = open(file.path(), OpenMode::Read).unwrap();
    assert!(matches!(source.next_data(0), None | Some(0)));
}

#[test]
fn what_cannot_be_a_source_is_refused() {
    open(std::path::Path::new("."), OpenMode::Mmap).unwrap_err();
    open(std::path::Path::new("does-not-exist"), OpenMode::Read).unwrap_err();
    // Without waiting for somebody who writes.
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
    for mode in [OpenMode::Mmap, OpenMode::Read] {
        let error = open(&pipe, mode).unwrap_err().to_string();
        assert!(error.contains("pipe"), "{error}");
    }
    let empty = tempfile::NamedTempFile::new().unwrap();
    assert!(open(empty.path(), OpenMode::Mmap).unwrap().is_empty());
}

#[test]
fn faults_happen_where_they_were_put() {
    let source = FaultySource::new(MemorySource::new(bytes()), vec![Fault::Error(100..101)]);
    source.read_exact_at(0, &mut [0; 100]).unwrap();
    source.read_exact_at(101, &mut [0; 100]).unwrap();
    source.read_exact_at(90, &mut [0; 11]).unwrap_err();
}
