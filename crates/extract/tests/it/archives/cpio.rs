//! The cpio family.

use std::path::Path;

use durin_extract::ArchiveFormat;
use durin_testkit::run::Run;
use durin_testkit::skip::has_program;

use super::{Kept, every_image};

const KEPT: Kept = Kept {
    mtime_ns: 1_000_000_000,
    sockets: true,
    links: true,
    holes: false,
    nodes: true,
    dir_times: true,
    devices: true,
    names: true,
};

fn gnu_cpio(archive: &Path, target: &Path) -> Run {
    Run::new("cpio")
        .current_dir(target)
        .args(["-i", "-d", "-m", "--quiet", "--numeric-uid-gid", "-F"])
        .arg(archive)
}

fn bsdtar(archive: &Path, target: &Path) -> Run {
    let run = Run::new("bsdtar").args(["--numeric-owner", "-xpf"]);
    run.arg(archive).arg("-C").arg(target)
}

fn check(format: ArchiveFormat, kept: Kept) {
    if has_program("bsdtar") {
        every_image(format, "cpio", kept, bsdtar);
    }
    if has_program("cpio") {
        let kept = Kept {
            dir_times: false,
            ..kept
        };
        every_image(format, "cpio", kept, gnu_cpio);
    }
}

#[test]
fn newc() {
    check(ArchiveFormat::CpioNewc, KEPT);
}

#[test]
fn odc() {
    let kept = Kept {
        devices: false,
        ..KEPT
    };
    check(ArchiveFormat::CpioOdc, kept);
}
