//! Links the unwinder of the C compiler (`libgcc_eh.a`) into the programs, where there is one.
//!
//! The standard library asks for it as a shared library, `libgcc_s.so.1`: one more file to find and to load from the disk
//! whenever a program starts, which a mount has to wait for, and one that small systems do not have.
//!
//! The linker that Rust brings for x86-64 leaves the shared library out then; GNU's links as well, and goes on naming it.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let Some(unwinder) = unwinder() else {
        return;
    };
    // The linker has met the shared library by then: only what is linked as a whole takes the place of what that has, and
    // what nobody calls is left out again.
    for argument in ["-Wl,--whole-archive", &unwinder, "-Wl,--no-whole-archive"] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}

/// The path of the unwinder that belongs to the C compiler for the target, if it is one of GNU's systems.
fn unwinder() -> Option<String> {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    // With the C library in the program, so is the unwinder.
    let is_static = features.split(',').any(|feature| feature == "crt-static");
    if is_static || !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return None;
    }
    let compiler = cc::Build::new().try_get_compiler().ok()?;
    let asked = Command::new(compiler.path())
        .args(compiler.args())
        .arg("-print-file-name=libgcc_eh.a")
        .output();
    let printed = String::from_utf8(asked.ok()?.stdout).ok()?;
    // A compiler without it prints the name alone.
    let path = PathBuf::from(printed.trim());
    (path.is_absolute() && path.is_file()).then(|| printed.trim().to_owned())
}
