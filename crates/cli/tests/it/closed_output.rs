//! Standard output that nobody reads, or that is full: an end without a panic, and the right status.

use std::process::Stdio;

use durin_testkit::run::Run;

use crate::support::{Place, program};

/// Everything that writes results: a program and its arguments, where `IMAGE` and `TREE` stand for those.
const COMMANDS: [&str; 27] = [
    "durin --help",
    "durin completions bash",
    "durin ls -R IMAGE",
    "durin tree IMAGE",
    "durin find IMAGE",
    "durin cat IMAGE hello",
    "durin du IMAGE",
    "durin stat IMAGE hello",
    "durin info --json IMAGE",
    "durin grep h IMAGE",
    "durin diff IMAGE TREE/sub",
    "dwarfs --help",
    "dwarfsck -d7 IMAGE",
    "dwarfsck -l IMAGE",
    "dwarfsck --checksum=sha256 IMAGE",
    "dwarfsck --json IMAGE",
    "dwarfsck --export-metadata=- IMAGE",
    "dwarfsck --space IMAGE",
    "dwarfsck --html=- IMAGE",
    "dwarfsextract --man",
    "dwarfsextract -f pax -i IMAGE",
    "dwarfsextract -f zip -i IMAGE",
    "dwarfsextract -f mtree -i IMAGE",
    "mkdwarfs --long-help",
    "mkdwarfs -i TREE --debug-filter",
    "mkdwarfs -i TREE -o - --log-level=error",
    "mkdwarfs -i IMAGE -o - --recompress --log-level=error",
];

fn executable(name: &str) -> &'static str {
    match name {
        "durin" => env!("CARGO_BIN_EXE_durin"),
        "dwarfs" => env!("CARGO_BIN_EXE_dwarfs"),
        "dwarfsck" => env!("CARGO_BIN_EXE_dwarfsck"),
        "dwarfsextract" => env!("CARGO_BIN_EXE_dwarfsextract"),
        _ => env!("CARGO_BIN_EXE_mkdwarfs"),
    }
}

fn run(place: &Place, command: &str, output: Stdio) -> (Option<i32>, String) {
    let image = place.path("image.dwarfs").display().to_string();
    let tree = place.tree().display().to_string();
    let line = command.replace("IMAGE", &image).replace("TREE", &tree);
    let (name, arguments) = line.split_once(' ').unwrap();
    let child = program(executable(name))
        .args(arguments.split(' '))
        .env("PAGER", "cat")
        .into_command()
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), messages)
}

#[test]
fn nobody_reads() {
    let place = Place::new();
    place.image();
    for command in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, messages) = run(&place, command, writer.into());
        if command.contains("-o -") || command.starts_with("dwarfsextract -f") {
            // Half an image is none, and half an archive: whoever asked for it has to know.
            assert_eq!(code, Some(1), "{command}: {messages}");
            assert!(messages.contains("roken pipe"), "{command}: {messages}");
        } else {
            let is_quiet = messages.is_empty() || !messages.contains("E ");
            assert!(
                code == Some(0) && is_quiet,
                "{command}: {code:?} {messages}"
            );
        }
    }
}

#[test]
fn no_output_at_all() {
    let place = Place::new();
    place.image();
    let image = place.path("image.dwarfs").display().to_string();
    let tree = place.tree().display().to_string();
    for command in COMMANDS {
        let line = command.replace("IMAGE", &image).replace("TREE", &tree);
        let (name, arguments) = line.split_once(' ').unwrap();
        // Only a shell starts a program without a standard output.
        let script = r#"exec "$@" >&-"#;
        let run = Run::new("sh")
            .args(["-c", script, "sh"])
            .arg(executable(name))
            .args(arguments.split(' '))
            .env("PAGER", "cat");
        let expect = if command.contains("diff") { 2 } else { 1 };
        let messages = run.expect_code(expect).stderr;
        assert!(
            messages.contains("Bad file descriptor"),
            "{command}: {messages}"
        );
    }
}

#[test]
fn no_room_for_the_output() {
    let place = Place::new();
    place.image();
    for command in COMMANDS {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let (code, messages) = run(&place, command, full.unwrap().into());
        let says = messages.contains("No space left on device") && !messages.contains("panicked");
        // As that of diff(1): 1 is a difference.
        let expect = if command.contains("diff") { 2 } else { 1 };
        assert!(
            code == Some(expect) && says,
            "{command}: {code:?} {messages}"
        );
    }
}
