//! The tar family.

use std::path::Path;

use durin_extract::ArchiveFormat;
use durin_testkit::run::Run;
use durin_testkit::skip::has_program;

use super::{Kept, every_image};

const PAX: Kept = Kept {
    mtime_ns: 1,
    sockets: false,
    links: true,
    holes: true,
    nodes: true,
    dir_times: true,
    devices: true,
    names: true,
};

const GNU: Kept = Kept {
    mtime_ns: 1_000_000_000,
    ..PAX
};

const USTAR: Kept = Kept {
    holes: false,
    names: false,
    ..GNU
};

fn gnu_tar(archive: &Path, target: &Path) -> Run {
    // Without it times of directories are set before the last file is in them, as their files do not follow them at once.
    let run = Run::new("tar").args(["--delay-directory-restore", "--numeric-owner", "-xpf"]);
    run.arg(archive).arg("-C").arg(target)
}

fn bsdtar(archive: &Path, target: &Path) -> Run {
    let run = Run::new("bsdtar").args(["--numeric-owner", "-xpf"]);
    run.arg(archive).arg("-C").arg(target)
}

fn check(format: ArchiveFormat, kept: Kept) {
    if has_program("tar") {
        every_image(format, "tar", kept, gnu_tar);
    }
    if has_program("bsdtar") {
        every_image(format, "tar", kept, bsdtar);
    }
}

#[test]
fn pax() {
    check(ArchiveFormat::Pax, PAX);
}

#[test]
fn restricted_pax() {
    check(ArchiveFormat::PaxRestricted, GNU);
}

#[test]
fn gnutar() {
    check(ArchiveFormat::Gnutar, GNU);
}

#[test]
fn ustar() {
    check(ArchiveFormat::Ustar, USTAR);
}

#[test]
fn v7() {
    let kept = Kept {
        nodes: false,
        ..USTAR
    };
    check(ArchiveFormat::V7, kept);
}
