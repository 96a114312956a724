//! A small tree, an image of it, and the programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use durin_format::metadata::Metadata;
use durin_format::section::{CompressionType, SectionType, encode_header};
use durin_testkit::run::{Outcome, Run};
use tempfile::TempDir;

/// 2020-01-01 00:00:00 UTC, the time of everything in the image.
pub(crate) const TIME: &str = "1577836800";

pub(crate) fn mkdwarfs() -> Run {
    program(env!("CARGO_BIN_EXE_mkdwarfs"))
}

pub(crate) fn dwarfs() -> Run {
    program(env!("CARGO_BIN_EXE_dwarfs"))
}

pub(crate) fn dwarfsck() -> Run {
    program(env!("CARGO_BIN_EXE_dwarfsck"))
}

pub(crate) fn dwarfsextract() -> Run {
    program(env!("CARGO_BIN_EXE_dwarfsextract"))
}

pub(crate) fn durin() -> Run {
    program(env!("CARGO_BIN_EXE_durin"))
}

/// A program in an environment that does not depend on who runs the tests.
pub(crate) fn program(path: impl AsRef<Path>) -> Run {
    Run::new(path.as_ref())
        .env("COLUMNS", "100")
        .env("TZ", "UTC")
        .env("TERM", "dumb")
        .env("SOURCE_DATE_EPOCH", TIME)
}

/// A directory that goes away, with a tree `tree` in it.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    /// Makes the tree: two equal files, a hard link, a symlink, an empty directory, and a name with a line break.
    pub(crate) fn new() -> Self {
        let place = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let tree = place.tree();
        fs::create_dir_all(tree.join("sub/empty")).unwrap();
        fs::write(tree.join("hello"), "hello\n").unwrap();
        fs::write(tree.join("sub/copy"), "hello\n").unwrap();
        fs::write(tree.join("sub/odd\nname"), "odd").unwrap();
        fs::hard_link(tree.join("hello"), tree.join("sub/hard")).unwrap();
        std::os::unix::fs::symlink("../hello", tree.join("sub/soft")).unwrap();
        fs::set_permissions(tree.join("hello"), fs::Permissions::from_mode(0o640)).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.path("tree")
    }

    /// Names in the directory, without the tree, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "tree")
            .collect();
        names.sort();
        names
    }

    /// mkdwarfs from the tree to `image`, both within the directory, fast and the same everywhere.
    pub(crate) fn build(&self, image: &str) -> Run {
        mkdwarfs()
            .current_dir(self.dir.path())
            .args(["-i", "tree", "-l1", "-o", image])
            .args(["--set-owner=1000", "--set-group=100"])
            .arg(format!("--set-time={TIME}"))
    }

    /// An image of the tree.
    pub(crate) fn image(&self) -> PathBuf {
        self.build("image.dwarfs").arg("--force").succeed();
        self.path("image.dwarfs")
    }
}

/// Standard output as text.
pub(crate) fn stdout(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

/// Runs to exit code 1 and looks for a part of the message.
#[track_caller]
pub(crate) fn fails_with(run: Run, part: &str) {
    let outcome = run.expect_code(1);
    assert!(
        outcome.stderr.contains(part),
        "no '{part}' in: {}",
        outcome.stderr
    );
}

/// An image of metadata alone, in a place.
pub(crate) fn image_of_metadata(place: &Place, metadata: &Metadata) -> PathBuf {
    let frozen = metadata.freeze().unwrap();
    let sections = [
        (SectionType::MetadataV2Schema, &frozen.schema),
        (SectionType::MetadataV2, &frozen.data),
    ];
    let mut bytes = Vec::new();
    for (number, (kind, payload)) in (0..).zip(sections) {
        bytes.extend(encode_header(number, kind, CompressionType::None, payload));
        bytes.extend_from_slice(payload);
    }
    let image = place.path("made.dwarfs");
    fs::write(&image, bytes).unwrap();
    image
}

/// What dwarfsck lists of an image.
pub(crate) fn listing(place: &Place, image: &str) -> Vec<String> {
    let outcome = dwarfsck().arg(place.path(image)).arg("--list").succeed();
    let mut paths: Vec<_> = stdout(&outcome).lines().map(str::to_owned).collect();
    paths.sort();
    paths
}
