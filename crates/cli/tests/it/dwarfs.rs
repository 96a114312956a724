//! The FUSE driver as a program. What a mount shows is tested with the driver's library.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use durin_testkit::mount::{self, Mount};
use durin_testkit::require;

use crate::support::{Place, dwarfs, fails_with, mkdwarfs};

fn driver() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_BIN_EXE_dwarfs"))
}

#[test]
fn returns_when_the_mount_is_usable() {
    require!(mount::available());
    let place = Place::new();
    let mounted = Mount::new(driver(), &place.image(), &[]);
    assert_eq!(fs::read(mounted.path().join("hello")).unwrap(), b"hello\n");
    assert_eq!(mounted.unmount(), None);
}

#[test]
fn options_are_wired() {
    require!(mount::available());
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    let options = [
        "uid=70000,gid=5",
        "readonly",
        "cachesize=16m,workers=1,mlock=try",
    ];
    let mounted = Mount::new(driver(), &place.image(), &options);
    let found = fs::metadata(mounted.path().join("hello")).unwrap();
    assert_eq!(
        (found.uid(), found.gid(), found.mode() & 0o777),
        (70_000, 5, 0o440)
    );
}

#[test]
fn foreground_ends_with_the_mount() {
    require!(mount::available());
    let place = Place::new();
    let mounted = Mount::foreground(driver(), &place.image(), &[]);
    assert!(mounted.path().join("sub").is_dir());
    assert_eq!(mounted.unmount(), Some(0));
}

#[test]
fn an_image_cut_short_under_a_mount_gives_errors() {
    require!(mount::available());
    let place = Place::new();
    let image = place.path("cut.dwarfs");
    mkdwarfs()
        .arg("-i")
        .arg(place.tree())
        .arg("-o")
        .arg(&image)
        .arg("-l0")
        .succeed();
    let mounted = Mount::foreground(driver(), &image, &[]);
    fs::File::options()
        .write(true)
        .open(&image)
        .unwrap()
        .set_len(0)
        .unwrap();
    // Names and attributes are in memory, contents are gone.
    assert_eq!(fs::read_dir(mounted.path().join("sub")).unwrap().count(), 5);
    let error = fs::read(mounted.path().join("hello")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5));
    assert_eq!(mounted.unmount(), Some(0));
}

#[test]
fn nohup_is_respected() {
    require!(mount::available());
    let place = Place::new();
    let point = place.path("mnt");
    fs::create_dir_all(&point).unwrap();
    let mut driver = Command::new("nohup")
        .arg(driver())
        .args([&place.image(), &point])
        .arg("-f")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| mount::is_mount_point(&point));
    let kill = |signal: &str| {
        let mut kill = Command::new("kill");
        kill.args(["-s", signal, &driver.id().to_string()]);
        assert!(kill.status().unwrap().success());
    };
    kill("HUP");
    std::thread::sleep(Duration::from_millis(200));
    assert!(mount::is_mount_point(&point));
    kill("TERM");
    assert_eq!(driver.wait().unwrap().code(), Some(8));
}

#[test]
fn signals_unmount() {
    require!(mount::available());
    let place = Place::new();
    let image = place.image();
    for signal in ["INT", "TERM", "HUP"] {
        let point = place.path("mnt");
        fs::create_dir_all(&point).unwrap();
        // Whoever started the tests with nohup does not mean these drivers.
        let mut driver = Command::new("env")
            .arg("--default-signal=HUP")
            .arg(driver())
            .arg(&image)
            .arg(&point)
            .arg("-f")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until(|| mount::is_mount_point(&point));
        let kill = Command::new("kill")
            .args(["-s", signal, &driver.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        assert_eq!(driver.wait().unwrap().code(), Some(8), "{signal}");
        assert!(!mount::is_mount_point(&point), "{signal}");
    }
}

/// Starts a driver in the foreground with its mount at `point`.
fn foreground(place: &Place, point: &Path) -> Child {
    fs::create_dir_all(point).unwrap();
    let driver = Command::new(driver())
        .args([&place.image(), point])
        .arg("-f")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| mount::is_mount_point(point));
    driver
}

fn terminate(driver: &Child) {
    let mut kill = Command::new("kill");
    let killed = kill.args(["-s", "TERM", &driver.id().to_string()]).status();
    assert!(killed.unwrap().success());
}

#[test]
fn signals_unmount_what_was_moved_or_covered() {
    require!(mount::available());
    let place = Place::new();
    let (before, after) = (place.path("before"), place.path("after"));
    let mut driver = foreground(&place, &before.join("mnt"));
    fs::rename(&before, &after).unwrap();
    terminate(&driver);
    assert_eq!(driver.wait().unwrap().code(), Some(8));
    assert!(!mount::is_mount_point(&after.join("mnt")));

    let point = place.path("mnt");
    let mut lower = foreground(&place, &point);
    dwarfs().args([&place.image(), &point]).succeed();
    terminate(&lower);
    std::thread::sleep(Duration::from_millis(1200));
    terminate(&lower);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(lower.try_wait().unwrap(), None, "it is covered, and stays");
    mount::unmount(&point).unwrap();
    assert!(mount::is_mount_point(&point));
    terminate(&lower);
    assert_eq!(lower.wait().unwrap().code(), Some(8));
    assert!(!mount::is_mount_point(&point));
}

/// Whoever still has a file open of what was taken out of sight is served, until somebody insists.
#[test]
fn a_mount_out_of_sight_ends_with_another_signal() {
    require!(mount::available());
    let place = Place::new();
    let point = place.path("mnt");
    let mut driver = foreground(&place, &point);
    let held = fs::File::open(point.join("hello")).unwrap();
    terminate(&driver);
    wait_until(|| !mount::is_mount_point(&point));
    terminate(&driver);
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(driver.try_wait().unwrap(), None, "two at once are one");
    terminate(&driver);
    assert_eq!(driver.wait().unwrap().code(), Some(8));
    drop(held);
}

#[test]
fn without_a_mount_point_the_exit_status_is_2() {
    let place = Place::new();
    let outcome = dwarfs().arg(place.image()).expect_code(2);
    assert!(outcome.stderr.contains("--auto-mountpoint"), "{outcome}");
}

#[test]
fn automatic_mount_point_comes_and_goes() {
    require!(mount::available());
    let place = Place::new();
    let image = place.image();
    dwarfs().arg("--auto-mountpoint").arg(&image).succeed();
    let point = place.path("image");
    assert!(point.join("hello").is_file());
    mount::unmount(&point).unwrap();
    wait_until(|| !point.exists());
}

#[test]
fn an_image_behind_a_header_is_found() {
    require!(mount::available());
    let place = Place::new();
    let image = fs::read(place.image()).unwrap();
    let behind = place.path("behind");
    fs::write(&behind, [b"header".as_slice(), &image].concat()).unwrap();
    for options in [[].as_slice(), &["offset=auto"], &["offset=6"]] {
        let mounted = Mount::new(driver(), &behind, options);
        assert!(mounted.path().join("hello").is_file());
    }
    fails_with(
        dwarfs()
            .arg(&behind)
            .arg(place.tree())
            .args(["-o", "offset=0"]),
        "behind",
    );
}

#[test]
fn options_may_come_first_as_mount_writes_them() {
    require!(mount::available());
    let place = Place::new();
    let image = place.image();
    let point = place.path("mnt");
    fs::create_dir(&point).unwrap();
    let run = dwarfs().args(["-n", "-o", "rw,noauto,user,x-systemd.automount,allow_other"]);
    run.arg(&image).arg(&point).succeed();
    assert!(point.join("hello").is_file());
    mount::unmount(&point).unwrap();
}

#[test]
fn failures_have_their_codes() {
    let place = Place::new();
    let image = place.image();
    let tree = place.tree();
    for foreground in [[].as_slice(), &["-f"]] {
        let run = || dwarfs().args(foreground);
        fails_with(run().arg(tree.join("hello")).arg(&tree), "hello");
        fails_with(run().arg(place.path("nowhere")).arg(&tree), "cannot open");
        for (point, why) in [
            (place.path("nowhere"), "No such file"),
            (tree.join("hello"), "is not a directory"),
        ] {
            let outcome = run().arg(&image).arg(point).expect_code(2);
            assert!(outcome.stderr.contains(why), "{outcome}");
        }
        fails_with(
            run().arg(&image).arg(&tree).args(["-o", "frobnicate"]),
            "'frobnicate'",
        );
        fails_with(
            run().arg(&image).arg(&tree).args(["-o", "cachesize=x"]),
            "cachesize=x",
        );
        fails_with(
            run()
                .arg(&image)
                .arg(&tree)
                .args(["-o", "analysis_file=/nowhere/list"]),
            "/nowhere/list",
        );
    }
    assert_eq!(place.names(), ["image.dwarfs"]);
}

#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a file has some lines, and returns them.
fn lines_of(path: &std::path::Path, count: usize) -> Vec<String> {
    let lines = || -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    wait_until(|| lines().len() >= count);
    lines()
}

#[test]
fn an_analysis_file_lists_what_is_used() {
    require!(mount::available());
    let place = Place::new();
    let list = place.path("list");
    let option = format!("analysis_file={}", list.display());
    let mounted = Mount::new(driver(), &place.image(), &[&option]);
    let read = |name: &str| fs::read(mounted.path().join(name)).unwrap();
    for name in ["sub/odd\nname", "sub/soft", "hello", "sub/copy", "hello"] {
        read(name);
    }
    assert_eq!(mounted.unmount(), None);
    // Names of the same inode are one file, and no line is two.
    let lines = lines_of(&list, 2);
    assert_eq!(lines, ["hello", "sub/copy"]);
}

#[test]
fn a_killed_driver_has_listed_what_was_used() {
    require!(mount::available());
    let place = Place::new();
    let list = place.path("list");
    let option = format!("analysis_file={}", list.display());
    let mounted = Mount::foreground(driver(), &place.image(), &[&option]);
    fs::read(mounted.path().join("sub/copy")).unwrap();
    assert_eq!(lines_of(&list, 1), ["sub/copy"]);
    let pid = mounted.driver_pid().unwrap().to_string();
    Command::new("kill").args(["-9", &pid]).status().unwrap();
    drop(mounted);
    assert_eq!(lines_of(&list, 1), ["sub/copy"]);
}

#[test]
fn names_in_any_case() {
    require!(mount::available());
    let place = Place::new();
    let top = place.tree();
    fs::write(top.join("Stra\u{df}e \u{c4}\u{d6}"), "1").unwrap();
    fs::write(top.join("TWICE"), "upper").unwrap();
    fs::write(top.join("twice"), "lower").unwrap();
    let image = place.image();
    let read = |mounted: &Mount, name: &str| fs::read_to_string(mounted.path().join(name)).ok();
    let plain = Mount::new(driver(), &image, &[]);
    assert_eq!(read(&plain, "HELLO"), None);
    drop(plain);
    let mounted = Mount::new(driver(), &image, &["case_insensitive"]);
    assert_eq!(read(&mounted, "HELLO").as_deref(), Some("hello\n"));
    assert_eq!(read(&mounted, "SUB/Copy").as_deref(), Some("hello\n"));
    assert_eq!(
        read(&mounted, "STRA\u{df}E \u{e4}\u{f6}").as_deref(),
        Some("1")
    );
    assert_eq!(read(&mounted, "absent"), None);
    // Exact names first; then the first in order.
    assert_eq!(read(&mounted, "twice").as_deref(), Some("lower"));
    assert_eq!(read(&mounted, "TWICE").as_deref(), Some("upper"));
    assert_eq!(read(&mounted, "Twice").as_deref(), Some("upper"));
    let names = fs::read_dir(mounted.path()).unwrap();
    assert_eq!(names.count(), 5);
}

#[test]
fn measurements_are_reported() {
    require!(mount::available());
    let place = Place::new();
    let (point, trace) = (place.path("mnt"), place.path("trace.json"));
    fs::create_dir_all(&point).unwrap();
    let options = format!("perfmon=fuse+block_cache,perfmon_trace={}", trace.display());
    let driver = Command::new(driver())
        .args([&place.image(), &point])
        .args(["-f", "-o", &options])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(|| mount::is_mount_point(&point));
    fs::read(point.join("hello")).unwrap();
    let mut live = [0; 4096];
    let name = "user.dwarfs.driver.perfmon";
    // As `getfattr` does it: the first request is measured, too, and makes the value longer.
    let size = rustix::fs::getxattr_query(&point, name).unwrap();
    let len = rustix::fs::getxattr(&point, name, &mut live[..size]).unwrap();
    assert!(String::from_utf8_lossy(&live[..len]).contains("[fuse.op_read]"));
    mount::unmount(&point).unwrap();
    let output = driver.wait_with_output().unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    for part in [
        "[fuse.op_lookup]",
        "[fuse.op_read]",
        "[block_cache.",
        "p50 latency",
        "p99 latency",
    ] {
        assert!(report.contains(part), "no {part} in {report}");
    }
    assert!(!report.contains("[filesystem_v2"), "{report}");
    let trace = fs::read_to_string(trace).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(
        events
            .iter()
            .any(|event| event["name"] == "op_read" && event["ph"] == "X")
    );
}

#[test]
fn an_image_without_the_category_is_mounted() {
    require!(mount::available());
    let place = Place::new();
    for option in ["preload_category=hotness", "preload_all"] {
        let mounted = Mount::new(driver(), &place.image(), &[option]);
        assert!(mounted.path().join("hello").is_file());
    }
    let point = place.path("mnt");
    fs::create_dir(&point).unwrap();
    let run = dwarfs().args([&place.image(), &point]);
    let ran = run.args(["-o", "preload_category=hotness"]).succeed();
    let warned = mount::unmount(&point).map(|()| ran.stderr).unwrap();
    assert!(warned.contains("no category 'hotness'"), "{warned}");
}
