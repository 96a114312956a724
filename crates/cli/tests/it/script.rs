//! `mkdwarfs --script`; what scripts themselves can do is tested with the crate that runs them.

use std::fs;
use std::time::Duration;

use durin_testkit::run::{Run, pid_of};

use crate::support::{Place, dwarfsck, fails_with, program, stdout};

fn script(place: &Place, text: &str) -> Run {
    fs::write(place.path("script.lua"), text).unwrap();
    place.build("image").arg("--script=script.lua")
}

fn listing(place: &Place) -> Vec<String> {
    let outcome = dwarfsck().arg(place.path("image")).arg("--list").succeed();
    let mut paths: Vec<_> = stdout(&outcome).lines().map(str::to_owned).collect();
    paths.sort();
    paths
}

#[test]
fn rules_script_and_empty_directories_work_together() {
    let place = Place::new();
    script(
        &place,
        "function configure() return { remove_empty_dirs = true } end
         function filter(entry) return entry.name ~= 'copy' end",
    )
    .args(["-F", "- soft", "-F", "- hard"])
    .succeed();
    assert_eq!(listing(&place), ["hello", "sub", "sub/odd\\nname"]);
}

#[test]
fn lists_and_scripts_work_together() {
    let place = Place::new();
    fs::write(place.path("list"), "hello\nsub/copy\nsub/soft\n").unwrap();
    script(&place, "function filter(e) return e.type ~= 'symlink' end")
        .args(["--input-list", "list"])
        .succeed();
    assert_eq!(listing(&place), ["hello", "sub", "sub/copy"]);
}

#[test]
fn the_filter_can_be_tried() {
    let place = Place::new();
    let text = "function filter(e) return e.path ~= 'sub' end";
    let outcome = script(&place, text)
        .args(["-F", "- hello", "--debug-filter"])
        .succeed();
    assert_eq!(stdout(&outcome), "- /hello\n- /sub/\n");
    assert_eq!(place.names(), ["script.lua"]);
}

#[test]
fn the_command_line_wins_over_configure() {
    let place = Place::new();
    let text = "function configure(args)
                    return { chmod = args.chmod, set_owner = 5, header = 'script.lua' }
                end
                function transform(e) logger.info(e.uid .. ' ' .. e.permissions) end";
    fs::write(place.path("script.lua"), text).unwrap();
    let outcome = place
        .build("image")
        .arg("--script=script.lua:chmod=ug=rw\\,o=")
        .succeed();
    // The command line sets the owner.
    assert!(outcome.stderr.contains(" 1000 432\n"), "{}", outcome.stderr);
    let image = fs::read(place.path("image")).unwrap();
    assert!(image.starts_with(text.as_bytes()));

    let run = script(&place, "function configure() return { output = 'x' } end");
    fails_with(run.arg("--force"), "'output', which is no option");
    let run = script(&place, "function configure() return { order = 'x' } end");
    fails_with(run.arg("--force"), "unknown order 'x'");
}

#[test]
fn the_history_names_the_script_and_not_what_it_sets() {
    let place = Place::new();
    script(&place, "function configure() return { order = 'path' } end").succeed();
    let info = dwarfsck().arg(place.path("image")).arg("--json").succeed();
    let info = stdout(&info);
    assert!(info.contains("--script=script.lua"), "{info}");
    assert!(!info.contains("--order"), "{info}");
}

#[cfg(not(feature = "python"))]
#[test]
fn a_program_without_python_says_so() {
    let place = Place::new();
    fs::write(place.path("script.py"), "def filter(e): return True").unwrap();
    let outcome = place
        .build("image")
        .args(["--script", "script.py"])
        .expect_code(1);
    let message = outcome.stderr;
    assert!(message.contains("the feature 'python'"), "{message}");
    assert!(!message.contains("newer release"), "{message}");
}

/// What a script starts may be old, and rely on few descriptors.
#[test]
fn a_script_has_the_descriptors_that_the_program_was_given() {
    let place = Place::new();
    let text =
        "function filter(e) print('may have ' .. io.popen('ulimit -Sn'):read('a')) return true end";
    fs::write(place.path("script.lua"), text).unwrap();
    let outcome = program("sh")
        .current_dir(&place.path(""))
        .args(["-c", "ulimit -Sn 100 && exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_mkdwarfs"))
        .args(["-i", "tree", "-l1", "-o", "image", "--script=script.lua"])
        .succeed();
    assert!(outcome.stderr.contains("may have 100"), "{outcome}");
}

#[test]
fn an_error_leaves_no_image() {
    let place = Place::new();
    let text = "function transform(e)\n  if e.name == 'copy' then error('no copies') end\nend";
    let outcome = script(&place, text).expect_code(1);
    let parts = [
        "script 'script.lua', transform of 'sub/copy': script.lua:2: no copies",
        "stack traceback:",
        "in function 'transform'",
    ];
    for part in parts {
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
    assert_eq!(place.names(), ["script.lua"]);
    let missing = place.build("image").arg("--script=missing.lua");
    fails_with(missing, "cannot read script 'missing.lua'");
}

#[test]
fn a_script_cannot_end_the_program() {
    let place = Place::new();
    for text in [
        "os.exit(0)",
        "function configure() os.exit() end",
        "function filter(e) os.exit(true, true) end",
    ] {
        fails_with(
            script(&place, text),
            "script.lua:1: os.exit would end mkdwarfs",
        );
    }
    assert_eq!(place.names(), ["script.lua"]);
}

#[test]
fn an_image_on_standard_output_stays_whole() {
    let place = Place::new();
    let text = "function filter(e)
                    print(e.path) io.write('x') io.stdout:write('y')
                    return true
                end";
    script(&place, text).succeed();
    let piped = place.build("-").arg("--script=script.lua").succeed();
    assert!(fs::read(place.path("image")).unwrap() == piped.stdout);
}

#[test]
fn a_signal_ends_a_script() {
    let place = Place::new();
    fs::write(
        place.path("script.lua"),
        "function filter(e) while true do pcall(function() while true do end end) end end",
    )
    .unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_mkdwarfs"))
        .current_dir(place.path(""))
        .args(["-i", "tree", "-o", "image", "--script=script.lua"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let pid = pid_of(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.names(), ["script.lua"]);
}
