//! The help of every program, word for word, and the manual pages.

use std::fs;

use expect_test::expect_file;

use crate::support::{durin, dwarfs, dwarfsck, dwarfsextract, mkdwarfs, program, stdout};
use durin_testkit::run::Run;

#[track_caller]
fn check(run: Run, expect: &expect_test::ExpectFile) {
    expect.assert_eq(&stdout(&run.succeed()));
}

#[test]
fn help_of_each_program() {
    check(mkdwarfs().arg("--help"), &expect_file!["help/mkdwarfs.txt"]);
    check(dwarfs().arg("--help"), &expect_file!["help/dwarfs.txt"]);
    check(dwarfsck().arg("--help"), &expect_file!["help/dwarfsck.txt"]);
    check(
        dwarfsextract().arg("--help"),
        &expect_file!["help/dwarfsextract.txt"],
    );
    check(durin().arg("--help"), &expect_file!["help/durin.txt"]);
}

/// The subcommands of `durin` that look into images.
const EVERYDAY: [&str; 12] = [
    "info", "ls", "tree", "find", "stat", "du", "cat", "grep", "diff", "verify", "mounts",
    "unmount",
];

#[test]
fn help_of_each_everyday_command() {
    for name in EVERYDAY {
        let file = format!(
            "{}/tests/it/help/durin-{name}.txt",
            env!("CARGO_MANIFEST_DIR")
        );
        check(durin().args([name, "--help"]), &expect_file![file]);
        let manual = stdout(&durin().args([name, "--man"]).succeed());
        assert!(manual.starts_with("NAME\n"), "{manual}");
    }
}

#[test]
fn short_and_long_forms_of_help_agree() {
    for program in [mkdwarfs, dwarfs, dwarfsck, dwarfsextract, durin] {
        let long = program().arg("--help").succeed();
        assert_eq!(long.stdout, program().arg("-h").succeed().stdout);
        assert_eq!(long.stderr, "");
    }
}

#[test]
fn help_fits_a_screen() {
    for program in [mkdwarfs, dwarfs, dwarfsck, dwarfsextract] {
        let help = stdout(&program().arg("--help").succeed());
        assert!(help.lines().count() <= 50, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100));
    }
}

#[test]
fn long_help_has_everything() {
    let help = stdout(&mkdwarfs().arg("--long-help").succeed());
    for part in [
        "--num-scanner-workers",
        "--pack-metadata",
        "Compression levels:",
        "9      2^26 ",
        "ricepp",
        "pcmaudio/waveform",
        "Libraries: ",
    ] {
        assert!(help.contains(part), "{part}");
    }
    assert_eq!(help, stdout(&mkdwarfs().arg("-H").succeed()));
}

#[test]
fn versions() {
    let release = format!("(durin {}, DwarFS format 2.5)\n", env!("CARGO_PKG_VERSION"));
    for (program, name) in [
        (mkdwarfs as fn() -> Run, "mkdwarfs"),
        (dwarfs, "dwarfs"),
        (dwarfsck, "dwarfsck"),
        (dwarfsextract, "dwarfsextract"),
        (durin, "durin"),
    ] {
        for flag in ["--version", "-V"] {
            let version = stdout(&program().arg(flag).succeed());
            assert_eq!(version, format!("{name} {release}"));
        }
    }
}

#[test]
fn manual_is_shown() {
    for program in [mkdwarfs, dwarfs, dwarfsck, dwarfsextract] {
        let manual = stdout(&program().arg("--man").succeed());
        assert!(manual.starts_with("NAME\n"), "{manual}");
        assert!(!manual.contains('\\'), "{manual}");
        assert!(
            manual.lines().all(|line| line.chars().count() <= 100),
            "{manual}"
        );
    }
    let manual = stdout(&mkdwarfs().arg("--man").succeed());
    assert!(
        manual.contains("Threads that read and hash files"),
        "{manual}"
    );
}

#[test]
fn manual_pages_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("man1");
    durin().arg("man").arg(&target).succeed();
    let mut names: Vec<_> = fs::read_dir(&target)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(
        EVERYDAY
            .iter()
            .all(|name| names.contains(&format!("durin-{name}.1")))
    );
    names.retain(|name| !name.starts_with("durin-"));
    assert_eq!(
        names,
        [
            "durin.1",
            "dwarfs-env.7",
            "dwarfs-format.5",
            "dwarfs.1",
            "dwarfsck.1",
            "dwarfsextract.1",
            "mkdwarfs-script.7",
            "mkdwarfs.1"
        ]
    );
    let page = fs::read_to_string(target.join("mkdwarfs.1")).unwrap();
    assert!(
        page.contains(".TH mkdwarfs 1") && page.contains("file\\-hash"),
        "{page}"
    );
}

#[test]
fn completions_name_options_and_subcommands() {
    let dir = tempfile::tempdir().unwrap();
    for (shell, files) in [
        ("bash", ["mkdwarfs.bash", "durin.bash"]),
        ("zsh", ["_mkdwarfs", "_durin"]),
        ("fish", ["mkdwarfs.fish", "durin.fish"]),
    ] {
        let text = stdout(&durin().args(["completions", shell]).succeed());
        assert!(text.contains("compress-level"), "{shell}");
        durin()
            .args(["completions", shell])
            .arg(dir.path())
            .succeed();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(read(files[0]).contains("num-scanner-workers"), "{shell}");
        assert!(read(files[1]).contains("unmount"), "{shell}");
    }
    // The shell itself has to accept them.
    Run::new("bash")
        .arg("-n")
        .arg(dir.path().join("durin.bash"))
        .succeed();
    let unknown = durin().args(["completions", "csh"]).expect_code(1);
    assert!(
        unknown.stderr.contains("bash, zsh or fish"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn bash_completes() {
    let dir = tempfile::tempdir().unwrap();
    let run = durin().args(["completions", "bash"]);
    run.arg(dir.path()).succeed();
    // What the shell itself does when the key is pressed.
    let script = r#"
        for file in "$0"/*.bash; do . "$file"; done
        complete_line() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            local registered; registered=$(complete -p "$1")
            local function=${registered#*-F }
            "${function%% *}" "$1" "${@: -1}" "${@: -2:1}"
            echo "${COMPREPLY[@]}"
        }
        complete_line mkdwarfs --recompress
        complete_line dwarfsck --check
        complete_line dwarfsextract --skip
        complete_line dwarfs --auto
        complete_line durin gr
        complete_line durin grep --co
        complete_line dwarfsck --checksum sha25
        complete_line dwarfsextract -f p
        complete_line durin extract --format-filters z
        complete_line mkdwarfs --order re
        complete_line mkdwarfs -C lz
        complete_line mkdwarfs -l ''
    "#;
    let run = Run::new("bash").args(["-c", script]).arg(dir.path());
    assert_eq!(
        stdout(&run.succeed()),
        "--recompress --recompress-categories\n\
         --checksum --check-integrity\n\
         --skip-devices --skip-specials\n\
         --auto-mountpoint\n\
         grep\n\
         --count --context\n\
         sha256\n\
         pax paxr\n\
         zstd\n\
         revpath\n\
         lz4 lz4hc lzma\n\
         0 1 2 3 4 5 6 7 8 9\n"
    );
}

#[test]
fn usage_errors_exit_with_1() {
    for (run, part) in [
        (mkdwarfs(), "--input"),
        (mkdwarfs().args(["-i", "x", "-o", "y", "z"]), "'z'"),
        (
            mkdwarfs().args(["-i", "x", "-o", "y", "--frobnicate"]),
            "--frobnicate",
        ),
        (mkdwarfs().args(["-i", "x", "-o", "y", "-l", "10"]), "10"),
        (dwarfs(), "<IMAGE>"),
        (dwarfsck(), "IMAGE"),
        (dwarfsck().args(["image", "--checksum=crc"]), "sha256"),
        (dwarfsck().args(["image", "-l", "--json"]), "--json"),
        (
            dwarfsck().args(["image", "--check-integrity", "--no-check"]),
            "--no-check",
        ),
        (dwarfsextract(), "--input"),
        (durin().arg("frobnicate"), "frobnicate"),
    ] {
        let outcome = run.expect_code(1);
        assert!(outcome.stderr.starts_with("error: "), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
        assert!(outcome.stdout.is_empty());
    }
}

#[test]
fn numbers_that_are_none_are_told_with_what_is_expected() {
    for (run, part) in [
        (
            mkdwarfs().arg("-lx"),
            "'--compress-level <LEVEL>': a whole number from 0 to 9",
        ),
        (
            mkdwarfs().arg("-S31"),
            "'--block-size-bits <N>': a whole number from 10 to 30",
        ),
        (
            mkdwarfs().arg("--compress-niceness=20"),
            "a whole number from -20 to 19",
        ),
        (
            dwarfsck().args(["image", "--space=-1"]),
            "'--space[=<DEPTH>]': a whole number from 0 on",
        ),
        (
            dwarfsck().args(["image", "-nx"]),
            "'--num-workers <N>': a number of threads",
        ),
        (
            dwarfsextract().args(["-i", "image", "--num-disk-writers=257"]),
            "'--num-disk-writers <N>': a whole number from 0 to 256",
        ),
        (
            durin().args(["tree", "-Lx", "image"]),
            "'--level <N>': a whole number from 0 on",
        ),
        (
            durin().args(["du", "-d", "1.5", "image"]),
            "'--max-depth <N>': a whole number",
        ),
        (
            durin().args(["grep", "-Ax", "y", "image"]),
            "'--after-context <N>': a whole number",
        ),
        (
            durin().args(["find", "image", "-maxdepth", "x"]),
            "a whole number from 0 on",
        ),
    ] {
        let said = run.expect_code(1).stderr;
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    // The reader is gone before the program writes.
    let script = format!(
        "{{ sleep 0.3; {} --long-help; }} | true; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_mkdwarfs")
    );
    let outcome = program("/bin/bash").args(["-c", &script]).succeed();
    assert_eq!(outcome.stderr, "");
}
