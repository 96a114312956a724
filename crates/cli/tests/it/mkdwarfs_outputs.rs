//! What mkdwarfs writes: where images and summaries may go, and what the exit code says of them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Stdio;

use durin_testkit::run::Run;
use durin_testkit::skip;

use crate::support::{Place, dwarfsck, fails_with, program, stdout};

/// mkdwarfs as somebody who is not root, with everything in the directory open to that user.
fn unprivileged(place: &Place) -> Run {
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(
        place.tree().join("hello"),
        fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    let mkdwarfs = env!("CARGO_BIN_EXE_mkdwarfs");
    let run = if skip::is_root() {
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        program("setpriv").args(user).arg(mkdwarfs)
    } else {
        program(mkdwarfs)
    };
    run.current_dir(&place.path(""))
}

#[test]
fn a_directory_that_cannot_be_listed_takes_an_image() {
    let place = Place::new();
    fs::create_dir(place.path("drop")).unwrap();
    let probe = unprivileged(&place).arg("--version").output();
    fs::set_permissions(place.path("drop"), fs::Permissions::from_mode(0o1733)).unwrap();
    if !skip::is_root() {
        fs::set_permissions(place.path("drop"), fs::Permissions::from_mode(0o300)).unwrap();
    }
    if probe.code != Some(0) {
        skip::skipped(&format!("no program runs as another user: {probe}"));
        return;
    }
    let run = unprivileged(&place).args(["-i", "tree", "-l1", "-o", "drop/image"]);
    run.succeed();
    assert!(
        fs::read(place.path("drop/image"))
            .unwrap()
            .starts_with(b"DWARFS")
    );
}

#[test]
fn a_summary_without_a_place_is_refused_before_the_build() {
    let place = Place::new();
    let run = place.build("image").arg("--json=no/such/summary");
    fails_with(run, "cannot write 'no/such/summary'");
    fails_with(
        place.build("image").arg("--json=tree"),
        "cannot write 'tree'",
    );
    assert_eq!(place.names(), [""; 0]);
    place.image();
    let rewrite = program(env!("CARGO_BIN_EXE_mkdwarfs"))
        .current_dir(&place.path(""))
        .args(["-i", "image.dwarfs", "-o", "new", "--recompress"])
        .arg("--json=no/such/summary");
    fails_with(rewrite, "cannot write 'no/such/summary'");
    // What is found out beforehand leaves nothing behind when the build fails.
    fails_with(place.build("no/image").arg("--json=summary"), "no/image");
    assert_eq!(place.names(), ["image.dwarfs"]);
}

#[test]
fn a_summary_that_fails_after_the_build_is_told() {
    let place = Place::new();
    let outcome = place
        .build("image")
        .args(["--json=/dev/full", "--log-level=error"])
        .expect_code(2);
    let message = "cannot write '/dev/full': No space left";
    assert!(outcome.stderr.contains(message), "{outcome}");
    assert_eq!(place.names(), ["image"]);
}

#[test]
fn a_summary_that_nobody_reads_hides_no_errors() {
    let place = Place::new();
    fs::write(place.path("list"), "hello\nmissing\n").unwrap();
    for (list, expect) in [(true, 2), (false, 0)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let run = place.build("image").args(["--json", "-f"]);
        let run = if list {
            run.arg("--input-list=list")
        } else {
            run
        };
        let status = run
            .into_command()
            .stdout(writer)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(expect));
    }
}

#[test]
fn who_may_read_an_image_stays_when_it_is_replaced() {
    let place = Place::new();
    place.image();
    for arguments in [
        &["-i", "tree", "-l1"][..],
        &["-i", "image.dwarfs", "--recompress"],
    ] {
        let old = place.path("old");
        fs::write(&old, "old").unwrap();
        let (owner, group) = match skip::is_root() {
            true => (12, 34),
            false => {
                let own = fs::metadata(&old).unwrap();
                (own.uid(), own.gid())
            }
        };
        std::os::unix::fs::chown(&old, Some(owner), Some(group)).unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).unwrap();
        program(env!("CARGO_BIN_EXE_mkdwarfs"))
            .current_dir(&place.path(""))
            .args(arguments)
            .args(["-f", "-o", "old"])
            .succeed();
        let new = fs::metadata(&old).unwrap();
        assert!(new.len() > 3);
        assert_eq!(
            (new.mode() & 0o7777, new.uid(), new.gid()),
            (0o600, owner, group)
        );
    }
}

#[test]
fn an_image_is_not_packed_into_itself() {
    let place = Place::new();
    let size = |name: &str| fs::metadata(place.path(name)).unwrap().len();
    place.build("tree/image").succeed();
    let first = size("tree/image");
    place.build("tree/image").arg("-f").succeed();
    assert_eq!(size("tree/image"), first);
    fs::remove_file(place.path("tree/image")).unwrap();

    let output = fs::File::create(place.path("tree/piped")).unwrap();
    let run = place.build("-").arg("--log-level=error");
    let run = run.into_command().stdout(output).status();
    assert!(run.unwrap().success());
    let listing = dwarfsck().arg(place.path("tree/piped")).arg("-l").succeed();
    assert!(!stdout(&listing).contains("piped"), "{listing}");
}

#[test]
fn names_that_no_file_can_have_are_refused_before_the_build() {
    let place = Place::new();
    let long = "n".repeat(256);
    for (name, message) in [
        ("newdir/", "is the name of a directory"),
        ("newdir/.", "is the name of a directory"),
        (&long, "File name too long"),
    ] {
        // Nothing is scanned.
        let run = place.build(name).args(["-f", "--progress=json"]);
        let outcome = run.expect_code(1);
        assert!(outcome.stderr.contains(message), "{outcome}");
        assert!(!outcome.stderr.contains("\"phase\""), "{outcome}");
    }
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_mount_point_is_refused_before_the_build() {
    let place = Place::new();
    fs::write(place.path("image"), "old").unwrap();
    let script = r#"mount --bind image image && touch mounted && "$@""#;
    let outcome = program("unshare")
        .current_dir(&place.path(""))
        .args(["-rm", "sh", "-c", script, "sh"])
        .arg(env!("CARGO_BIN_EXE_mkdwarfs"))
        .args(["-i", "tree", "-f", "-o", "image", "--progress=json"])
        .output();
    if !place.path("mounted").exists() {
        skip::skipped(&format!("no mounts: {outcome}"));
        return;
    }
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stderr.contains("is a mount point"), "{outcome}");
    assert!(!outcome.stderr.contains("\"phase\""), "{outcome}");
    assert_eq!(fs::read(place.path("image")).unwrap(), b"old");
}

#[test]
fn a_summary_does_not_take_the_place_of_the_image() {
    let place = Place::new();
    let both = |image: &str, json: &str| {
        let run = place.build(image).arg(format!("--json={json}"));
        fails_with(run.arg("-f"), "is wanted for two outputs");
    };
    both("image", "image");
    both("image", "./tree/../image");
    std::os::unix::fs::symlink("image", place.path("link")).unwrap();
    both("image", "link");
    both("link", "image");
    assert_eq!(place.names(), ["link"]);
    fs::write(place.path("image"), "old").unwrap();
    both("image", "image");
    both("image", "link");
    assert_eq!(fs::read(place.path("image")).unwrap(), b"old");
    let run = place.build("/dev/null").arg("--json=/dev/null");
    run.succeed();
}

/// These are links that lead to a pipe and say something else.
#[test]
fn names_of_standard_output_stand_for_it() {
    let place = Place::new();
    let script = "set -o pipefail; \"$@\" -o /dev/stdout | cat > piped; \"$@\" -o /proc/self/fd/1 -f | cat > again
        exec 5> >(cat > other; echo > done); \"$@\" -o /dev/fd/5; exec 5>&-; while [ ! -e done ]; do sleep .01; done";
    let program = env!("CARGO_BIN_EXE_mkdwarfs");
    let build = ["-c", script, "bash", program, "-l1", "-i", "tree"];
    let run = program_of_bash(&place).args(build);
    run.succeed();
    let image = fs::read(place.path("piped")).unwrap();
    assert!(image.starts_with(b"DWARFS"));
    for name in ["again", "other"] {
        assert!(fs::read(place.path(name)).unwrap() == image, "{name}");
    }
}

fn program_of_bash(place: &Place) -> Run {
    program("bash").current_dir(&place.path(""))
}

#[test]
fn a_link_that_leads_nowhere_gets_an_image_there() {
    let place = Place::new();
    fs::create_dir(place.path("far")).unwrap();
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, place.path(name)).unwrap();
    };
    link("far/other", "link");
    link("../image", "far/other");
    place.build("link").succeed();
    assert!(place.path("link").is_symlink() && place.path("far/other").is_symlink());
    assert!(
        fs::read(place.path("image"))
            .unwrap()
            .starts_with(b"DWARFS")
    );
    assert_eq!(place.names(), ["far", "image", "link"]);
    fails_with(place.build("link"), "already exists; --force replaces it");
    link("circle", "circle");
    fails_with(place.build("circle").arg("-f"), "cannot follow the link");
    assert!(place.path("circle").is_symlink());
}

#[test]
fn a_link_of_somebody_else_is_followed_where_the_kernel_does() {
    let place = Place::new();
    if !skip::is_root() {
        skip::skipped("only root makes links of somebody else");
        return;
    }
    fs::create_dir(place.path("shared")).unwrap();
    fs::set_permissions(place.path("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
    let link = place.path("shared/image");
    std::os::unix::fs::symlink("../planted", &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(12345), Some(12345)).unwrap();
    let protected = fs::read_to_string("/proc/sys/fs/protected_symlinks").unwrap();
    if protected.trim() == "0" {
        place.build("shared/image").succeed();
        assert_eq!(place.names(), ["planted", "shared"]);
        return;
    }
    fails_with(place.build("shared/image"), "cannot follow the link");
    assert_eq!(place.names(), ["shared"]);
}

#[test]
fn a_filter_that_could_not_see_all_says_so() {
    let place = Place::new();
    let probe = unprivileged(&place).arg("--version").output();
    fs::set_permissions(place.tree().join("sub"), fs::Permissions::from_mode(0o000)).unwrap();
    if probe.code == Some(0) {
        let run = unprivileged(&place).args(["-i", "tree", "-F", "- x", "--debug-filter"]);
        let outcome = run.expect_code(2);
        assert_eq!(stdout(&outcome), "+ /hello\n+ /sub/\n");
        let message = "cannot read directory 'sub'";
        assert!(outcome.stderr.contains(message), "{outcome}");
    } else {
        skip::skipped(&format!("no program runs as another user: {probe}"));
    }
    fs::set_permissions(place.tree().join("sub"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn too_few_descriptors_cost_no_contents() {
    let place = Place::new();
    for dir in 0..40 {
        let dir = place.tree().join(format!("sub/{dir}/below"));
        fs::create_dir_all(&dir).unwrap();
        for file in 0..50 {
            let path = dir.join(format!("{file}"));
            fs::write(&path, path.as_os_str().as_encoded_bytes()).unwrap();
        }
    }
    let build = |limit: &str, image: &str| {
        program("sh")
            .current_dir(&place.path(""))
            .args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")])
            .arg(env!("CARGO_BIN_EXE_mkdwarfs"))
            .args(["-i", "tree", "-l1", "-N8", "-o", image])
            .output()
    };
    let whole = build("-Sn 1024", "whole");
    assert_eq!(whole.code, Some(0), "{whole}");
    let whole = fs::read(place.path("whole")).unwrap();
    let raised = build("-Sn 8", "raised");
    assert_eq!(raised.code, Some(0), "{raised}");
    assert!(whole == fs::read(place.path("raised")).unwrap());
    // With these, threads have to wait for each other; with too few of them, in vain.
    for limit in [14, 12, 7] {
        let name = format!("of-{limit}");
        let outcome = build(&format!("-n {limit}"), &name);
        if outcome.code == Some(0) && limit > 7 {
            assert!(whole == fs::read(place.path(&name)).unwrap(), "{limit}");
            continue;
        }
        assert_eq!(outcome.code, Some(1), "{outcome}");
        assert!(!outcome.stderr.contains("stored as empty"), "{outcome}");
        assert!(outcome.stderr.contains("Too many open files"), "{outcome}");
        assert!(!place.path(&name).exists());
    }
}
