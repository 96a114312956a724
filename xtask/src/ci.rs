//! `cargo xtask ci`: what must pass before anything is merged, here and on every machine.
//!
//! Steps run in order and the first that fails ends it, but for the tests, which all run, and for the counts of
//! instructions after them, whose failure is told last.
//! What this machine cannot do (no FUSE, no vectors, no Python) is named at the start and counted at the end; where
//! everything is there, the variable `CI` is set for the tests, so that none of them may skip itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use durin_testkit::{mount, python::Decoder, skip::is_root, vectors::Vectors};

use crate::say::say;
use crate::workspace::{cargo, succeed};
use crate::{icount, install, tidy, workspace};

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    workspace::check_options(arguments, &[])?;
    let start = Instant::now();
    component("fmt", &["fmt", "--all", "--check"])?;
    component(
        "clippy",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    step("tidy");
    tidy::run(&[])?;
    let missing = prepare();
    let no_python = python_scripts()?;
    step("test");
    let outcome = run_tests(missing.is_empty())?;
    step("icount");
    let counted = icount::check();
    let not_counted = counted.as_ref().ok().and_then(Option::as_ref);
    for why in missing.iter().chain(&no_python).chain(not_counted) {
        say!("SKIPPED on this machine: {why}");
    }
    if outcome.skipped > 0 {
        say!("{} tests said SKIPPED, see above", outcome.skipped);
    }
    // The closing line of the test runner, over all its runs.
    say!(
        "\ntest result: {}. {} passed; {} failed; {} ignored; {} measured; {} filtered out; finished in {:.2}s",
        if outcome.is_ok { "ok" } else { "FAILED" },
        outcome.counts[0],
        outcome.counts[1],
        outcome.counts[2],
        outcome.counts[3],
        outcome.counts[4],
        start.elapsed().as_secs_f64(),
    );
    ensure!(outcome.is_ok, "tests failed");
    counted.map(drop)
}

fn step(name: &str) {
    say!("\n=== {name}");
}

/// Runs a step that needs a component of the tool chain.
fn component(name: &str, arguments: &[&str]) -> Result<()> {
    step(name);
    let probe = cargo(&[name, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if probe.is_ok_and(|status| status.success()) {
        return succeed(&mut cargo(arguments));
    }
    if std::env::var_os("CI").is_some_and(|value| !value.is_empty()) {
        let rustup = Command::new("rustup")
            .args(["component", "add", component_name(name)])
            .status();
        if rustup.is_ok_and(|status| status.success()) {
            return succeed(&mut cargo(arguments));
        }
        bail!("cargo {name} is not installed");
    }
    say!("SKIPPED: cargo {name} is not installed");
    Ok(())
}

fn component_name(tool: &str) -> &str {
    if tool == "fmt" { "rustfmt" } else { tool }
}

/// Lints and tests scripts in Python, a feature that the other steps leave out; returns why if that cannot be done.
fn python_scripts() -> Result<Option<String>> {
    step("scripts in Python");
    let probe = "import sysconfig as s; v = s.get_config_var; \
                 from os.path import exists, join; d = v('LIBDIR') or ''; \
                 print(d) if exists(join(v('INCLUDEPY') or '', 'Python.h')) and v('Py_ENABLE_SHARED') \
                 or exists(join(d, v('MULTIARCH') or '', v('LDLIBRARY') or '-')) else exit(1)";
    let candidates = ["python3", "/usr/bin/python3"];
    let found = candidates.iter().find_map(|python| {
        let output = Command::new(python).args(["-c", probe]).output().ok()?;
        let dir = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some((*python, dir))
    });
    let Some((python, library_dir)) = found else {
        let why = "no Python with development files and a shared library: scripts in Python are not tested";
        return Ok(Some(why.to_owned()));
    };
    for arguments in [&["clippy", "--all-targets"][..], &["test"]] {
        let packages = ["--locked", "--package=durin-script", "--features=python"];
        let mut command = cargo(&[arguments, &packages].concat());
        if arguments.contains(&"clippy") {
            command.args(["--", "-D", "warnings"]);
        }
        command.env("PYO3_PYTHON", python);
        let paths = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        command.env("LD_LIBRARY_PATH", format!("{library_dir}:{paths}"));
        succeed(&mut command)?;
    }
    Ok(None)
}

/// Installs what the tests use, and returns what stays missing.
fn prepare() -> Vec<String> {
    step("prepare");
    let attempts = [
        install::program("fusermount3", "fuse3"),
        install::program("python3", "python3"),
        install::program("bsdtar", "libarchive-tools"),
        install::program("cpio", "cpio"),
        install::program("unzip", "unzip"),
        install::program("bzip2", "bzip2"),
        install::program("xz", "xz-utils"),
        install::program("zstd", "zstd"),
        install::program("lz4", "lz4"),
        install::program("fish", "fish"),
        install::program("zsh", "zsh"),
        install::program("groff", "groff-base"),
        install::program("mandoc", "mandoc"),
        install::program("chromium", "chromium"),
        python_venv(),
    ];
    for error in attempts.into_iter().filter_map(Result::err) {
        say!("{error:#}");
    }
    let not_root = "owners, devices and full disks need root".to_owned();
    let missing: Vec<String> = [
        (!is_root()).then_some(not_root),
        mount::available().err(),
        Vectors::find().err(),
        Decoder::find().err(),
        (!install::has("chromium")).then(|| "pages are looked at with chromium".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    for why in &missing {
        say!("missing: {why}");
    }
    missing
}

fn python_venv() -> Result<()> {
    let probe = Command::new("python3")
        .args(["-c", "import ensurepip, venv"])
        .output();
    match probe {
        Ok(output) if output.status.success() => Ok(()),
        _ => install::package("python3-venv"),
    }
}

/// What all test binaries together said.
struct TestOutcome {
    is_ok: bool,
    /// Passed, failed, ignored, measured, filtered out.
    counts: [u64; 5],
    skipped: u64,
}

/// Runs all tests, passing through what they say.
fn run_tests(nothing_is_missing: bool) -> Result<TestOutcome> {
    let mut command = cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    if nothing_is_missing {
        command.env("CI", "1");
    } else {
        command.env_remove("CI");
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot run cargo test")?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = (stdout.context("no stdout")?, stderr.context("no stderr")?);
    let tally = Mutex::new(TestOutcome {
        is_ok: false,
        counts: [0; 5],
        skipped: 0,
    });
    std::thread::scope(|scope| {
        scope.spawn(|| pass_through(stderr, std::io::stderr(), &tally));
        pass_through(stdout, std::io::stdout(), &tally);
    });
    let mut outcome = tally
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    outcome.is_ok = child.wait()?.success() && outcome.counts[1] == 0;
    Ok(outcome)
}

/// Copies lines, and counts those that matter.
fn pass_through(from: impl Read, mut to: impl Write, tally: &Mutex<TestOutcome>) {
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let text = String::from_utf8_lossy(&line);
        // A closed terminal must not stop the tests.
        drop(writeln!(to, "{text}"));
        let mut tally = tally
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        tally.skipped += u64::from(text.starts_with("SKIPPED"));
        if let Some(counts) = parse_closing_line(&text) {
            for (sum, count) in tally.counts.iter_mut().zip(counts) {
                *sum += count;
            }
        }
    }
}

/// Parses `test result: ok. 10 passed; 0 failed; ...`.
fn parse_closing_line(line: &str) -> Option<[u64; 5]> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut parsed = [0; 5];
    for (slot, part) in parsed.iter_mut().zip(counts.split("; ")) {
        *slot = part.split(' ').next()?.parse().ok()?;
    }
    Some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_counted() {
        let line = "test result: FAILED. 10 passed; 2 failed; 3 ignored; 0 measured; 4 filtered out; \
                    finished in 0.55s";
        assert_eq!(parse_closing_line(line), Some([10, 2, 3, 0, 4]));
        assert_eq!(parse_closing_line("test result of something else"), None);
        assert_eq!(parse_closing_line("running 4 tests"), None);
    }
}
