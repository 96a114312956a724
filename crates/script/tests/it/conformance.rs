//! What hooks are given and what becomes of their answers.

use durin_script::{Setting, Value};
use durin_writer::script::{EntryKind, Hooks, ScriptEntry, Time};

use crate::harness::{ATTRIBUTES, Inodes, OnDisk, Texts, file};

#[test]
fn hooks_are_found() {
    let none = Hooks::default();
    let check = |lua, python, expect: Hooks| {
        for script in (Texts { lua, python }).each() {
            assert_eq!(script.load().script.hooks(), expect, "{:?}", script.path);
        }
    };
    check(
        "function filter() return true end local function order() end",
        "def filter(entry): return True",
        Hooks {
            filter: true,
            ..none
        },
    );
    check(
        "function transform() end function order() end",
        "def transform(entry): pass\ndef order(inodes): pass",
        Hooks {
            transform: true,
            order: true,
            ..none
        },
    );
    check(
        "function configure() return { similarity = true } end function order() end",
        "def configure(args): return {'similarity': True}\ndef order(inodes): pass",
        Hooks {
            order: true,
            similarity: true,
            ..none
        },
    );
}

#[test]
fn a_first_line_for_the_system_and_a_byte_order_mark_are_skipped() {
    for (before, line) in [
        ("#!/usr/bin/env engine\n", 2),
        ("\u{feff}", 1),
        ("\u{feff}#!/usr/bin/env engine\r\n", 2),
    ] {
        let lua = format!("{before}function filter(e) error('where') end");
        let python = format!("{before}def filter(e): raise ValueError('where')");
        let texts = Texts {
            lua: lua.leak(),
            python: python.leak(),
        };
        for script in texts.each() {
            let error = script.load().script.filter(&file(b"x")).unwrap_err();
            let message = error.to_string();
            let place = match script.is_lua() {
                true => format!("script.lua:{line}: where"),
                false => format!("line {line}"),
            };
            assert!(message.contains(&place), "no '{place}' in: {message}");
        }
    }
    let only = OnDisk::new("script.lua", "#!/usr/bin/lua");
    let error = only.load_with("").unwrap_err().to_string();
    assert!(error.contains("has none of the functions"), "{error}");
}

#[test]
fn an_entry_has_all_fields() {
    let texts = Texts {
        lua: r#"
            function filter(e)
                print(e.path, e.name, e.type, e.size, e.nlink, e.target, e.permissions, e.uid, e.gid)
                print(e.mtime_ns, e.atime_ns, e.ctime_ns)
                return e.target == nil
            end"#,
        python: r#"
def filter(e):
    text = lambda value: "nil" if value is None else str(value)
    print(*map(text, (e.path, e.name, e.type, e.size, e.nlink, e.target, e.permissions, e.uid, e.gid)), sep="\t")
    print(e.mtime_ns, e.atime_ns, e.ctime_ns, sep="\t")
    return e.target is None
"#,
    };
    for script in texts.each() {
        let loaded = script.load().script;
        assert!(loaded.filter(&file(b"dir/name")).unwrap());
        let link = ScriptEntry {
            kind: EntryKind::Symlink,
            target: b"../there",
            ..file(b"link")
        };
        assert!(!loaded.filter(&link).unwrap());
        assert_eq!(
            script.events.take(),
            [
                "info: dir/name\tname\tfile\t7\t2\tnil\t416\t1000\t4294967295",
                "info: 1577836800123456789\t-999999999\t0",
                "info: link\tlink\tsymlink\t7\t2\t../there\t416\t1000\t4294967295",
                "info: 1577836800123456789\t-999999999\t0",
            ]
        );
    }
}

#[test]
fn each_type_has_its_name() {
    let texts = Texts {
        lua: "function filter(e) print(e.type) return false end",
        python: "def filter(e):\n    print(e.type)\n    return False",
    };
    let kinds = [
        EntryKind::File,
        EntryKind::Dir,
        EntryKind::Symlink,
        EntryKind::CharDevice,
        EntryKind::BlockDevice,
        EntryKind::Fifo,
        EntryKind::Socket,
    ];
    for script in texts.each() {
        let loaded = script.load().script;
        for kind in kinds {
            assert!(!loaded.filter(&ScriptEntry { kind, ..file(b"x") }).unwrap());
        }
        assert_eq!(
            script.events.take().join(" ").replace("info: ", ""),
            "file dir symlink chardev blockdev fifo socket"
        );
    }
}

#[test]
fn a_transform_changes_attributes() {
    let texts = Texts {
        lua: r#"
            function transform(e)
                e.permissions = e.permissions | 0x9
                e.uid = 0
                e.gid = e.gid - 1
                e.mtime_ns = 1e9
                e.ctime_ns = -1
                if e.path == "" then return e end
            end"#,
        python: r#"
def transform(e):
    e.permissions |= 9
    e.uid = 0
    e.gid -= 1
    e.mtime_ns = 1e9
    e.ctime_ns = -1
    if e.path == "":
        return e
"#,
    };
    for script in texts.each() {
        let loaded = script.load().script;
        for path in [&b""[..], b"a"] {
            let changed = loaded.transform(&file(path)).unwrap();
            assert_eq!((changed.permissions, changed.uid), (0o651, 0));
            assert_eq!(changed.gid, 4_294_967_294);
            assert_eq!(changed.mtime, Time { sec: 1, nsec: 0 });
            assert_eq!(changed.atime, ATTRIBUTES.atime);
            let before_1970 = Time {
                sec: -1,
                nsec: 999_999_999,
            };
            assert_eq!(changed.ctime, before_1970);
        }
    }
}

#[test]
fn times_out_of_range_are_kept() {
    let texts = Texts {
        lua: "function transform(e) e.uid = 1 end",
        python: "def transform(e): e.uid = 1",
    };
    for script in texts.each() {
        let mut entry = file(b"a");
        entry.attributes.mtime = Time {
            sec: i64::MAX,
            nsec: 1,
        };
        let changed = script.load().script.transform(&entry).unwrap();
        assert_eq!(changed.mtime, entry.attributes.mtime);
    }
}

#[test]
fn names_may_have_any_bytes() {
    let texts = Texts {
        lua: r#"function filter(e) return e.name == "\xff \xc3\xa9\n" and #e.path == 7 end"#,
        python: r#"
import os
def filter(e):
    return e.name == "\udcff \u00e9\n" and os.fsencode(e.path) == b"d/\xff \xc3\xa9\n"
"#,
    };
    for script in texts.each() {
        let loaded = script.load().script;
        assert!(loaded.filter(&file(b"d/\xff \xc3\xa9\n")).unwrap());
    }
}

#[test]
fn an_order_sees_inodes_and_moves_them() {
    let texts = Texts {
        lua: r#"
            function order(inodes)
                for _, i in ipairs(inodes) do
                    print(i.path, i.name, table.concat(i.paths, "="), i.size, i.mtime_ns, i.category,
                        i.similarity and table.concat(i.similarity, "+"))
                end
                table.sort(inodes, function(a, b) return a.size > b.size end)
                return inodes
            end"#,
        python: r#"
def order(inodes):
    text = lambda value: "nil" if value is None else str(value)
    for i in inodes:
        similarity = None if i.similarity is None else "+".join(map(str, i.similarity))
        print(*map(text, (i.path, i.name, "=".join(i.paths), i.size, i.mtime_ns, i.category, similarity)), sep="\t")
    return sorted(inodes, key=lambda i: -i.size)
"#,
    };
    let inodes = Inodes(vec![
        vec![b"a"],
        vec![b"dir/name", b"other"],
        vec![b"dir/x"],
    ]);
    for script in texts.each() {
        let order = script.load().script.order(&inodes).unwrap();
        assert_eq!(order, Some(vec![1, 2, 0]));
        assert_eq!(
            script.events.take(),
            [
                "info: a\ta\ta\t1\t5\tnil\t0+4294967295",
                "info: dir/name\tname\tdir/name=other\t8\t1000000005\tsome/category\tnil",
                "info: dir/x\tx\tdir/x\t5\t2000000005\tsome/category\t2+4294967295",
            ]
        );
    }
}

#[test]
fn an_order_may_be_partial_or_none() {
    let check = |lua, python, expect: Option<Vec<u32>>| {
        for script in (Texts { lua, python }).each() {
            let inodes = Inodes(vec![vec![b"a"], vec![b"b"], vec![b"c"]]);
            let order = script.load().script.order(&inodes).unwrap();
            assert_eq!(order, expect, "{:?}", script.path);
        }
    };
    check(
        "function order(inodes) end",
        "def order(inodes): pass",
        None,
    );
    check(
        "function order(inodes) return {} end",
        "def order(inodes): return []",
        Some(vec![]),
    );
    check(
        "function order(inodes) return { inodes[2] } end",
        "def order(inodes): return (i for i in inodes if i.path == 'b')",
        Some(vec![1]),
    );
}

#[test]
fn configure_gets_arguments_and_returns_options() {
    let texts = Texts {
        lua: r#"
            local prefix
            function configure(args)
                prefix = args.prefix
                print(args.fast, args.prefix, args.missing)
                return { order = "path", chmod = { "u+r", "g-w" }, set_owner = 5, keep_all_times = args.fast }
            end
            function filter(e) return e.path:sub(1, #prefix) == prefix end"#,
        python: r#"
prefix = None
def configure(args):
    global prefix
    prefix = args["prefix"]
    print("true" if args["fast"] is True else "?", args["prefix"], "nil" if args.get("missing") is None else "?", sep="\t")
    return {"order": "path", "chmod": ["u+r", "g-w"], "set_owner": 5, "keep_all_times": args["fast"]}
def filter(e):
    return e.path.startswith(prefix)
"#,
    };
    for script in texts.each() {
        let loaded = script.load_with("prefix=a=\\,b,fast").unwrap();
        assert_eq!(script.events.take(), ["info: true\ta=,b\tnil"]);
        let setting = |name: &str, value| Setting {
            name: name.to_owned(),
            value,
        };
        let texts = |texts: &[&str]| Value::Texts(texts.iter().map(|&text| text.into()).collect());
        assert_eq!(
            loaded.settings,
            [
                setting("chmod", texts(&["u+r", "g-w"])),
                setting("keep_all_times", Value::Switch(true)),
                setting("order", texts(&["path"])),
                setting("set_owner", texts(&["5"])),
            ]
        );
        assert!(loaded.script.filter(&file(b"a=,b/x")).unwrap());
        assert!(!loaded.script.filter(&file(b"a")).unwrap());
    }
}

#[test]
fn a_script_finds_what_lies_beside_it() {
    for (name, text, beside, module) in [
        (
            "script.lua",
            "local m = require('durin_beside') function filter(e) return m.verdict end",
            "durin_beside.lua",
            "return { verdict = false }",
        ),
        (
            "script.py",
            "import durin_beside\ndef filter(e): return durin_beside.verdict",
            "durin_beside.py",
            "verdict = False",
        ),
    ] {
        let script = OnDisk::new(name, text);
        if script.is_lua() || cfg!(feature = "python") {
            std::fs::write(script.path.with_file_name(beside), module).unwrap();
            assert!(!script.load().script.filter(&file(b"a")).unwrap());
        }
    }
}

#[test]
fn messages_have_levels_and_nothing_reaches_standard_output() {
    let texts = Texts {
        lua: r#"
            print("a", 1)
            logger.error("b") logger.warn("c") logger.info("d")
            io.write("e", 2, "f\ng") io.write("\n")
            assert(io.stdout == io.stderr and io.output() == io.stderr)
            function filter() return true end"#,
        python: r#"
import sys
print("a", 1, sep="\t")
logger.error("b"); logger.warn("c"); logger.info("d")
sys.stdout.write("e2f\ng"); sys.stdout.write("\n")
assert sys.stdout is not sys.__stdout__
def filter(entry): return True
"#,
    };
    for script in texts.each() {
        script.load();
        assert_eq!(
            script.events.take(),
            [
                "info: a\t1",
                "error: b",
                "warn: c",
                "info: d",
                "info: e2f",
                "info: g"
            ]
        );
    }
}
