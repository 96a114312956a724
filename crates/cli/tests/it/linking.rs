//! What the programs need from the system when they start.

use std::process::Command;

/// The shared libraries that a program names, as `readelf` of the binary utilities lists them.
fn needed(program: &str) -> Vec<String> {
    let output = Command::new("readelf")
        .args(["--dynamic", "--wide", program])
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    assert!(output.status.success(), "readelf of {program}");
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter(|line| line.contains("(NEEDED)"));
    names
        .map(|line| {
            let (_, name) = line.split_once('[').unwrap();
            name.trim_end_matches(']').to_owned()
        })
        .collect()
}

#[test]
// Elsewhere the linker may be GNU's, which names the shared unwinder in any case (build.rs).
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    target_arch = "x86_64",
    not(feature = "python")
))]
fn programs_need_the_c_library_alone() {
    let programs = [
        env!("CARGO_BIN_EXE_durin"),
        env!("CARGO_BIN_EXE_dwarfs"),
        env!("CARGO_BIN_EXE_dwarfsck"),
        env!("CARGO_BIN_EXE_dwarfsextract"),
        env!("CARGO_BIN_EXE_mkdwarfs"),
    ];
    for program in programs {
        let needed = needed(program);
        assert!(needed.iter().any(|name| name.starts_with("libc.so")));
        let others = needed.iter().filter(|name| {
            let of_c = ["libc.so", "libm.so", "ld-linux"];
            !of_c.iter().any(|library| name.starts_with(library))
        });
        assert_eq!(
            others.collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "{program}"
        );
    }
}
