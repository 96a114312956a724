//! Mistakes of scripts are errors that say what and where.

use durin_format::ErrorKind;

use crate::harness::{Inodes, OnDisk, Texts, file};

/// What happens to a script when all its hooks are called.
fn outcome(script: &OnDisk) -> Result<(), durin_format::Error> {
    let loaded = script.load_with("")?.script;
    let hooks = loaded.hooks();
    if hooks.filter {
        loaded.filter(&file(b"dir/a\nb"))?;
    }
    if hooks.transform {
        loaded.transform(&file(b"dir/a\nb"))?;
    }
    if hooks.order {
        loaded.order(&Inodes(vec![vec![b"a"], vec![b"b"]]))?;
    }
    Ok(())
}

fn check(lua: &'static str, python: &'static str, parts: &[&str]) {
    for script in (Texts { lua, python }).each() {
        let error = outcome(&script).expect_err("a mistake");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let message = error.to_string();
        assert!(message.starts_with("script '"), "{message}");
        for part in parts {
            let part = match part.split_once('|') {
                Some((lua, python)) => [python, lua][usize::from(script.is_lua())],
                None => part,
            };
            assert!(message.contains(part), "no '{part}' in: {message}");
        }
    }
}

#[test]
fn a_script_that_does_not_run() {
    check(
        "function (",
        "def (",
        &["top level", "script.lua:1:|script.py\", line 1"],
    );
    check(
        "local x = nil\nx.y = 1",
        "x = None\nx.y = 1",
        &["top level", "script.lua:2:|line 2", "nil|NoneType"],
    );
    check("x = 1", "x = 1", &["has none of the functions"]);
    check(
        "filter = 1",
        "filter = 1",
        &["'filter' is an integer|'filter' is a"],
    );
}

#[test]
fn errors_of_hooks_have_a_traceback_and_a_path() {
    check(
        "local function deep(e)\n  error('no luck')\nend\nfunction filter(e)\n  local x = deep(e)\n  return x\nend",
        "def deep(e):\n  raise ValueError('no luck')\ndef filter(e):\n  return deep(e)",
        &[
            "filter of 'dir/a\\nb': ",
            "no luck",
            "script.lua:2:|line 2",
            "script.lua:5:|line 4",
            "stack traceback|Traceback",
        ],
    );
    check(
        "function transform(e) error({}) end",
        "def transform(e): raise SystemExit(3)",
        &["transform of 'dir/a\\nb': ", "table|SystemExit"],
    );
    check(
        "function order(i) error('no order') end",
        "def order(i): raise KeyError('no order')",
        &["order: ", "no order"],
    );
}

#[test]
fn answers_of_the_wrong_type() {
    check(
        "function filter(e) end",
        "def filter(e): pass",
        &["filter returned nothing|filter returned None", "instead of"],
    );
    check(
        "function filter(e) return 1 end",
        "def filter(e): return 1",
        &["filter returned 1 instead of"],
    );
    check(
        "function transform(e) return true end",
        "def transform(e): return True",
        &[
            "transform returned true|transform returned True",
            "returns nothing",
        ],
    );
    check(
        "function order(i) return 5 end",
        "def order(i): return 5",
        &["order returned 5 instead of"],
    );
    check(
        "function order(i) return { i[1], 'b' } end",
        "def order(i): return [i[0], 'b']",
        &["none of the inodes"],
    );
    check(
        "function configure(args) return 'path' end",
        "def configure(args): return 'path'",
        &["configure: ", "instead of a table|instead of a dict"],
    );
    check(
        "function configure(args) return 5 end",
        "def configure(args): return 5",
        &[
            "configure: ",
            "an integer instead of a table|instead of a dict",
        ],
    );
    check(
        "function configure(args) return { order = print } end",
        "def configure(args): return {'order': print}",
        &["configure: ", "for the option 'order'"],
    );
    check(
        "function configure(args) return { [1] = 'x' } end",
        "def configure(args): return {1: 'x'}",
        &["configure: ", "names of options"],
    );
}

#[test]
fn only_attributes_can_be_changed() {
    check(
        "function transform(e) e.path = 'new' end",
        "def transform(e): e.path = 'new'",
        &["cannot rename"],
    );
    check(
        "function transform(e) e.name = 'new' end",
        "def transform(e): e.name = 'new'",
        &["cannot rename"],
    );
    check(
        "function transform(e) e.size = 1 end",
        "def transform(e): e.size = 1",
        &["stay as they are"],
    );
    check(
        "function transform(e) e.mode = 1 end",
        "def transform(e): e.mode = 1",
        &["no field 'mode'|'mode'"],
    );
    check(
        "function filter(e) e.uid = 0 return true end",
        "def filter(e):\n  e.uid = 0\n  return True",
        &["filter changed entry.uid, which only transform can"],
    );
    check(
        "function filter(e) e.ctime_ns = nil return true end",
        "def filter(e):\n  del e.ctime_ns\n  return True",
        &["filter changed entry.ctime_ns"],
    );
    check(
        "function filter(e) e.target = 'x' return true end",
        "def filter(e):\n  e.target = 'x'\n  return True",
        &["'target' to be set|filter changed entry.target"],
    );
    check(
        "function filter(e) return e.mtime > 0 end",
        "def filter(e): return e.mtime > 0",
        &["no field 'mtime'|'mtime'"],
    );
    check(
        "function order(i) return i[1].inode end",
        "def order(i): return i[0].inode",
        &["no field 'inode'|'inode'"],
    );
    check(
        "function order(i) i[1].size = 3 return i end",
        "def order(i):\n  i[0].size = 3\n  return i",
        &["'size'|size"],
    );
}

#[test]
fn values_out_of_range() {
    check(
        "function transform(e) e.permissions = 010000 end",
        "def transform(e): e.permissions = 10000",
        &["entry.permissions to 10000, which is not between 0 and 4095"],
    );
    check(
        "function transform(e) e.uid = -1 end",
        "def transform(e): e.uid = -1",
        &["entry.uid to -1, which is not between 0 and 4294967295"],
    );
    check(
        "function transform(e) e.gid = 'root' end",
        "def transform(e): e.gid = 'root'",
        &["entry.gid to", "root", "instead of a whole number"],
    );
    check(
        "function transform(e) e.mtime_ns = 0.5 end",
        "def transform(e): e.mtime_ns = 0.5",
        &["entry.mtime_ns to 0.5 instead of a whole number"],
    );
    check(
        "function transform(e) e.uid = nil end",
        "def transform(e): e.uid = None",
        &["entry.uid"],
    );
}

#[test]
fn files_that_are_not_there() {
    let script = OnDisk::new("script.lua", "");
    std::fs::remove_file(&script.path).unwrap();
    let error = script.load_with("").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("cannot read script"), "{error}");
}

#[cfg(not(feature = "python"))]
#[test]
fn a_language_that_is_not_built_in() {
    let script = OnDisk::new("script.py", "");
    let error = script.load_with("").unwrap_err();
    // No release does what this build does not.
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("feature 'python'"), "{error}");
}
