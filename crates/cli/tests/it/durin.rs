//! The multi-call program.

use crate::support::{Place, durin, mkdwarfs, program, stdout};

#[test]
fn subcommands_and_names_of_tools() {
    for (names, version) in [
        (["build", "mkdwarfs", "--tool=mkdwarfs"], "mkdwarfs ("),
        (["mount", "dwarfs", "--tool=dwarfs"], "dwarfs ("),
        (["check", "dwarfsck", "--tool=dwarfsck"], "dwarfsck ("),
        (
            ["extract", "dwarfsextract", "--tool=dwarfsextract"],
            "dwarfsextract (",
        ),
    ] {
        for name in names {
            let text = stdout(&durin().args([name, "--version"]).succeed());
            assert!(text.starts_with(version), "{name}: {text}");
        }
    }
}

#[test]
fn called_by_the_name_of_a_tool() {
    let dir = tempfile::tempdir().unwrap();
    for (link, version) in [
        ("mkdwarfs", "mkdwarfs ("),
        ("dwarfsck-0.15.3", "dwarfsck ("),
        ("mount.dwarfs", "dwarfs ("),
    ] {
        let link = dir.path().join(link);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_durin"), &link).unwrap();
        let text = stdout(&program(&link).arg("--version").succeed());
        assert!(text.starts_with(version), "{}: {text}", link.display());
    }
}

#[test]
fn does_the_work() {
    let place = Place::new();
    let options = ["-i", "tree", "-o", "by-durin", "-l1"];
    durin()
        .current_dir(&place.path(""))
        .arg("build")
        .args(options)
        .succeed();
    let options = ["-i", "tree", "-o", "by-mkdwarfs", "-l1"];
    mkdwarfs()
        .current_dir(&place.path(""))
        .args(options)
        .succeed();
    let read = |name| std::fs::read(place.path(name)).unwrap();
    assert_eq!(read("by-durin"), read("by-mkdwarfs"));
    durin()
        .args(["check", "--check-integrity"])
        .arg(place.path("by-durin"))
        .succeed();
}

#[test]
fn without_arguments_it_helps() {
    let help = durin().arg("--help").succeed();
    assert_eq!(durin().succeed().stdout, help.stdout);
}
