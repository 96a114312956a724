//! Options that change how entries are described.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use durin_format::history::{DwarfsVersion, HistoryEntry};
use durin_format::section::SectionType;
use durin_testkit::made_tree::set_times;
use durin_writer::mode::ChmodRule;
use durin_writer::{PackOptions, TimeResolution};

use crate::harness::{build, options, put};

#[test]
fn owner_time_and_mode() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("file", b"x"), ("dir/tool", b"#!")]);
    fs::set_permissions(dir.path().join("dir/tool"), Permissions::from_mode(0o4710)).unwrap();
    symlink("file", dir.path().join("link")).unwrap();
    let mut options = options(dir.path());
    options.set_owner = Some(70_000);
    options.set_group = Some(4_294_967_294);
    options.set_time = Some(-5);
    options.chmod = ChmodRule::parse("norm", 0o022).unwrap();
    let image = build(&options).image();
    for step in image.walk() {
        let attr = step.unwrap().attr;
        assert_eq!((attr.uid, attr.gid), (70_000, 4_294_967_294));
        assert_eq!(
            (attr.mtime.sec, attr.atime.sec, attr.ctime.sec),
            (-5, -5, -5)
        );
    }
    let mode = |path: &[u8]| {
        let entry = image.resolve(path).unwrap().unwrap();
        format!("{:o}", image.attr(entry).unwrap().mode)
    };
    assert_eq!(mode(b"file"), "100444");
    assert_eq!(mode(b"dir"), "40555");
    assert_eq!(mode(b"dir/tool"), "100555");
    assert_eq!(mode(b"link"), "120777");
}

#[test]
fn times_at_the_resolution_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let times = [
        ("before", -1_500, 123_456_789),
        ("epoch", 0, 0),
        ("late", 7_258_118_400, 999_999_999),
    ];
    for (name, sec, nsec) in times {
        put(dir.path(), &[(name, name.as_bytes())]);
        set_times(&dir.path().join(name), sec, nsec).unwrap();
    }
    for unit in [
        1,
        1000,
        100_000_000,
        1_000_000_000,
        7_000_000_000,
        3_600_000_000_000,
    ] {
        let mut options = options(dir.path());
        options.time_resolution = TimeResolution::from_ns(unit).unwrap();
        let image = build(&options).image();
        for (name, sec, nsec) in times {
            let entry = image.resolve(name.as_bytes()).unwrap().unwrap();
            let found = image.attr(entry).unwrap().mtime;
            let found = i128::from(found.sec) * 1_000_000_000 + i128::from(found.nsec);
            let exact = i128::from(sec) * 1_000_000_000 + i128::from(nsec);
            assert_eq!(
                found,
                exact - exact.rem_euclid(i128::from(unit)),
                "{name} in {unit} ns"
            );
        }
    }
}

#[test]
fn tables_are_distinct_and_ordered() {
    let dir = tempfile::tempdir().unwrap();
    put(
        dir.path(),
        &[("b/x", b"1"), ("b/y", b"2"), ("a/x", b"3"), ("z", b"4")],
    );
    for name in ["l1", "l2", "l3"] {
        symlink("b/x", dir.path().join(name)).unwrap();
    }
    let mut options = options(dir.path());
    options.pack = PackOptions::parse("plain").unwrap();
    let metadata = build(&options).metadata();
    let names: Vec<&[u8]> = metadata.names.iter().map(Vec::as_slice).collect();
    assert_eq!(
        names,
        [&b"a"[..], b"b", b"l1", b"l2", b"l3", b"x", b"y", b"z"]
    );
    assert_eq!(metadata.symlinks, [b"b/x"]);
    assert_eq!(metadata.symlink_table, [0, 0, 0]);
    assert_eq!((metadata.uids.len(), metadata.gids.len()), (1, 1));
    assert_eq!(metadata.dwarfs_version.unwrap(), b"libdurin v0.1.0");
    let first: Vec<u32> = metadata
        .directories
        .iter()
        .map(|dir| dir.first_entry)
        .collect();
    assert_eq!(first, [1, 7, 8, 10]);
}

#[test]
fn sections_come_in_order() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("file", &[1; 10_000])]);
    let mut options = options(dir.path());
    options.create_timestamp = Some(1_700_000_000);
    options.history = Some(HistoryEntry {
        version: DwarfsVersion::default(),
        system_id: "Linux".to_owned(),
        compiler_id: "rustc".to_owned(),
        arguments: None,
        timestamp: None,
        library_versions: None,
    });
    let built = build(&options);
    let image = built.image();
    assert!(image.has_section_index());
    let kinds: Vec<SectionType> = image
        .sections()
        .iter()
        .map(|section| section.section_type)
        .collect();
    assert_eq!(
        kinds,
        [
            SectionType::Block,
            SectionType::Block,
            SectionType::Block,
            SectionType::MetadataV2Schema,
            SectionType::MetadataV2,
            SectionType::History,
            SectionType::SectionIndex,
        ]
    );
    assert_eq!(image.history().unwrap().entries.len(), 1);
    assert_eq!(built.metadata().create_timestamp, Some(1_700_000_000));
}
