//! Progress: events for programs, and the live display on a real terminal.

use std::fs;
use std::time::Duration;

use durin_testkit::json;
use durin_testkit::random::Random;
use serde_json::Value;

use crate::support::{Place, mkdwarfs, stdout};
use crate::terminal::{Screen, Terminal};

/// Makes the tree of a place take some seconds to compress, in blocks of 1 MiB.
fn make_large(place: &Place) {
    let mut random = Random::new(11);
    for number in 0..5 {
        fs::write(
            place.tree().join(format!("large{number}")),
            random.text(1 << 20),
        )
        .unwrap();
    }
}

const SLOW: [&str; 4] = ["-C", "zstd:level=22", "-S", "20"];

fn events(stderr: &str) -> Vec<Value> {
    stderr
        .lines()
        .map(|line| json::parse(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn named<'a>(events: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["event"] == name)
}

#[test]
fn events_of_a_build() {
    let place = Place::new();
    make_large(&place);
    let run = place.build("image").args(SLOW);
    let outcome = run
        .args(["--progress=json", "--progress-workers", "-N2"])
        .succeed();
    let events = events(&outcome.stderr);
    assert_eq!(events[0]["event"], "start");
    assert_eq!(events[0]["schema"], 1);
    assert_eq!(events[0]["output"], "image");
    assert!(events[0]["input"].as_str().unwrap().ends_with("tree"));
    let last = events.last().unwrap();
    assert_eq!(
        (&last["event"], &last["status"]),
        (&"end".into(), &0.into())
    );

    let phases: Vec<_> = named(&events, "phase")
        .map(|event| event["phase"].as_str().unwrap())
        .collect();
    assert_eq!(
        phases,
        ["scanning", "hashing", "writing", "metadata", "finished"]
    );
    let progress: Vec<_> = named(&events, "progress").collect();
    assert!(progress.len() >= 3, "{}", outcome.stderr);
    let mut before = (0.0, 0);
    for event in &progress {
        let elapsed = event["elapsed_seconds"].as_f64().unwrap();
        let written = event["compressed_block_bytes"].as_u64().unwrap();
        assert!(elapsed >= before.0 && written >= before.1, "{event}");
        assert!(
            (0.0..=1.0).contains(&event["fraction"].as_f64().unwrap()),
            "{event}"
        );
        before = (elapsed, written);
    }
    assert!(
        progress.iter().any(|event| {
            let workers = event["workers"].as_array().unwrap();
            let compresses = |worker: &&Value| worker["doing"] == "compressing";
            workers
                .iter()
                .find(compresses)
                .is_some_and(|worker| worker["what"].as_str().unwrap().contains("zstd:level=22"))
        }),
        "a worker was seen: {}",
        outcome.stderr
    );
    let done = progress.last().unwrap();
    assert_eq!(done["fraction"], 1.0);
    assert_eq!(done["segmented_bytes"], done["segment_bytes_total"]);

    let report = named(&events, "report").next().unwrap();
    let len = fs::metadata(place.path("image")).unwrap().len();
    assert_eq!(report["image_bytes"].as_u64(), Some(len));
    assert!(named(&events, "message").next().is_some(), "log lines");
}

#[test]
fn events_tell_warnings_errors_and_failures() {
    let place = Place::new();
    fs::write(place.path("list"), "hello\nmissing\n").unwrap();
    let outcome = place
        .build("image")
        .arg("--input-list")
        .arg(place.path("list"))
        .args(["--hollow", "--progress=json", "--log-level=warn"])
        .expect_code(2);
    let seen = events(&outcome.stderr);
    assert!(named(&seen, "message").next().is_none(), "{outcome}");
    let text = |name: &str| {
        let event = named(&seen, name).next().unwrap();
        event["message"].as_str().unwrap().to_owned()
    };
    assert!(text("warning").contains("hollow"));
    assert!(text("error").contains("missing"));
    assert_eq!(seen.last().unwrap()["status"], 2);

    let outcome = place
        .build("no/such/dir/image")
        .arg("--progress=json")
        .expect_code(1);
    let seen = events(&outcome.stderr);
    assert!(
        named(&seen, "error").any(|event| event["message"].as_str().unwrap().contains("no/such")),
        "{outcome}"
    );
    let last = seen.last().unwrap();
    assert_eq!(
        (&last["event"], &last["status"]),
        (&"end".into(), &1.into())
    );
}

#[test]
fn events_leave_standard_output_to_the_image() {
    let place = Place::new();
    place.build("file").succeed();
    let piped = place
        .build("-")
        .args(["--json", "--progress=json"])
        .succeed();
    assert!(piped.stdout == fs::read(place.path("file")).unwrap());
    let events = events(&piped.stderr);
    assert_eq!(named(&events, "report").count(), 1);
}

#[test]
fn the_report_divides_the_time_among_the_stages() {
    let place = Place::new();
    make_large(&place);
    let outcome = place
        .build("image")
        .args(SLOW)
        .args(["--json", "-N2"])
        .succeed();
    let report = json::parse(&stdout(&outcome)).unwrap();
    let seconds = |value: &Value, name: &str| value[name].as_f64().unwrap();
    let stages = report["times"]["stages"].as_array().unwrap();
    let stage = |name: &str| {
        let mut stages = stages.iter();
        stages.find(|stage| stage["name"] == name).unwrap()
    };
    for name in ["scan", "read", "segment", "compress", "emit", "metadata"] {
        let stage = stage(name);
        let parts = ["busy", "input_wait", "output_wait", "other"];
        let parts = parts.map(|part| seconds(stage, &format!("{part}_seconds")));
        let whole = seconds(stage, "thread_seconds");
        let sum: f64 = parts.iter().sum();
        assert!(parts.iter().all(|part| *part >= 0.0), "{stage}");
        assert!(sum >= whole * 0.99, "{stage}");
    }
    let compress = stage("compress");
    assert_eq!(compress["threads"], 2);
    assert_eq!(compress["items"], report["blocks"]);
    let busy: f64 = stages
        .iter()
        .map(|stage| seconds(stage, "busy_seconds"))
        .sum();
    let cpu = seconds(&report, "cpu_user_seconds") + seconds(&report, "cpu_system_seconds");
    assert!(
        busy <= cpu + 0.1 && busy >= cpu * 0.8,
        "{busy} s of stages, {cpu} s of the process"
    );
    let critical = report["times"]["critical_path"].as_array().unwrap();
    let writing = critical.iter().find(|at| at["phase"] == "writing").unwrap();
    assert_eq!(writing["stage"], "compress");
    assert_eq!(report["blocks_per_small_file"], 1.0);
}

/// A build on a terminal, and the screen in the end.
fn on_terminal(
    place: &Place,
    size: (u16, u16),
    arguments: &[&str],
    locale: &str,
    during: impl FnOnce(&mut Terminal),
) -> (Option<i32>, Screen) {
    let mut terminal = Terminal::new(size);
    let mut child = terminal.start(
        std::process::Command::new(env!("CARGO_BIN_EXE_mkdwarfs"))
            .current_dir(place.path(""))
            .args(["-i", "tree", "-o", "image"])
            .args(SLOW)
            .args(arguments)
            .env("TERM", "xterm")
            .env("LC_ALL", locale)
            .env_remove("NO_COLOR"),
    );
    during(&mut terminal);
    let code = terminal.finish(&mut child);
    (code, terminal.screen())
}

#[test]
fn a_terminal_shows_a_bar_and_workers_and_gets_them_removed() {
    let place = Place::new();
    make_large(&place);
    for (locale, bar) in [("C.UTF-8", "\u{2588}"), ("C", "[=")] {
        let arguments = ["-f", "--progress-workers", "-N2"];
        let (code, screen) = on_terminal(&place, (250, 30), &arguments, locale, |_| {});
        assert_eq!(code, Some(0), "{screen}");
        let seen = |part: &str| screen.history.iter().any(|frame| frame.contains(part));
        for part in [
            bar,
            "%  ",
            "saved by deduplication: ",
            "compressed filesystem: ",
            "[compressing] block ",
            "(zstd:level=22)",
        ] {
            assert!(seen(part), "no '{part}' with {locale}: {screen}");
        }
        let left = screen.lines();
        assert!(
            left.iter().all(|line| line.starts_with("I ")),
            "only messages are left: {screen}"
        );
        assert!(left.last().unwrap().contains("created without errors"));
        if locale == "C" {
            assert!(screen.raw.is_ascii());
        }
        assert!(!seen("WRAPPED"), "no line was broken: {screen}");
    }
}

#[test]
fn narrow_low_and_resized_terminals() {
    let place = Place::new();
    make_large(&place);
    let arguments = ["-f", "--progress-workers", "-N2", "--log-level=error"];
    for size in [(20, 24), (9, 3), (200, 4)] {
        let (code, screen) = on_terminal(&place, size, &arguments, "C.UTF-8", |_| {});
        assert_eq!(code, Some(0), "{screen}");
        // At least one picture, and its removal: how many there are depends on the machine.
        assert!(screen.history.len() > 1, "nothing was drawn: {screen}");
        assert!(screen.lines().is_empty(), "{size:?}: {screen}");
        assert!(!screen.history.iter().any(|frame| frame.contains("WRAPPED")));
    }
    let (code, screen) = on_terminal(&place, (100, 24), &arguments, "C.UTF-8", |terminal| {
        terminal.read_for(Duration::from_millis(700));
        terminal.resize((40, 24));
        terminal.read_for(Duration::from_millis(700));
        terminal.resize((80, 24));
    });
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.lines().is_empty(), "{screen}");
}

#[test]
fn a_signal_leaves_the_terminal_clean() {
    let place = Place::new();
    make_large(&place);
    let mut terminal = Terminal::new((80, 24));
    let mut child = terminal.start(
        std::process::Command::new(env!("CARGO_BIN_EXE_mkdwarfs"))
            .current_dir(place.path(""))
            .args(["-i", "tree", "-o", "image", "-N1", "-l9"])
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8"),
    );
    terminal.read_for(Duration::from_millis(900));
    assert!(terminal.screen().history.len() > 1, "{}", terminal.screen());
    terminal.interrupt(&child);
    let code = terminal.finish(&mut child);
    let screen = terminal.screen();
    assert_eq!(code, Some(128 + 2), "{screen}");
    for line in screen.lines() {
        // Messages are cut at the width of the terminal and go on in the next line.
        assert!(
            !line.contains('\u{2588}') && !line.contains('\u{23af}'),
            "{screen}"
        );
    }
    assert!(screen.is_cursor_shown);
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn plain_lines_come_seldom() {
    let place = Place::new();
    make_large(&place);
    let outcome = place
        .build("image")
        .args(SLOW)
        .arg("-N1")
        .args([
            "--progress=simple",
            "--progress-workers",
            "--log-level=error",
        ])
        .succeed();
    let lines: Vec<_> = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("- "))
        .collect();
    let seconds = outcome.wall.as_secs();
    assert!(lines.len() as u64 <= 1 + seconds * 4, "{outcome}");
    if seconds >= 3 {
        assert!(
            lines.iter().any(|line| line.contains("% done, ")),
            "{outcome}"
        );
    }
}

#[test]
fn a_dry_run_comes_close_and_writes_nothing() {
    let place = Place::new();
    let mut random = Random::new(3);
    for number in 0..40 {
        let path = place.tree().join(format!("file{number}"));
        let text = random.text(200 << 10);
        let noise = random.bytes(usize::try_from(number % 7).unwrap() * 20_000);
        fs::write(path, [text, noise].concat()).unwrap();
    }
    let options = ["-C", "zstd:level=15", "-S", "18", "--set-time=0"];
    let run = mkdwarfs().arg("-i").arg(place.tree()).args(options);
    let outcome = run.args(["--dry-run", "--json"]).succeed();
    assert_eq!(place.names(), [""; 0]);
    let report = json::parse(&stdout(&outcome)).unwrap();
    let estimate = &report["estimate"];
    let bytes = |name: &str| estimate[name].as_u64().unwrap();
    assert!(bytes("sampled_blocks") * 3 <= bytes("blocks"), "{estimate}");

    let run = mkdwarfs().arg("-i").arg(place.tree()).args(options);
    run.arg("-o").arg(place.path("image")).succeed();
    let real = fs::metadata(place.path("image")).unwrap().len();
    let off = bytes("image_bytes").abs_diff(real);
    assert!(off * 20 <= real, "{real} bytes in fact: {estimate}");
    assert!(
        (bytes("image_bytes_low")..=bytes("image_bytes_high")).contains(&real),
        "{real} bytes in fact: {estimate}"
    );
    let seconds = estimate["cpu_seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && bytes("memory_bytes") > 0);

    let text = stdout(
        &mkdwarfs()
            .arg("-i")
            .arg(place.tree())
            .args(["-l1", "--dry-run"])
            .succeed(),
    );
    for part in ["image size: ", "CPU time: ", "memory: "] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_dry_run_says_the_same_each_time() {
    let place = Place::new();
    make_large(&place);
    let estimate = |workers: &str| {
        let run = mkdwarfs().arg("-i").arg(place.tree());
        let run = run.args(["-l5", "-S", "18", "--dry-run", "--json", workers]);
        let report = json::parse(&stdout(&run.succeed())).unwrap();
        let estimate = &report["estimate"];
        ["image_bytes", "image_bytes_low", "image_bytes_high"].map(|name| estimate[name].as_u64())
    };
    assert_eq!(estimate("-N1"), estimate("-N4"));
}
