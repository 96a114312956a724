//! Scripts that would never end, or take all memory.

use std::sync::atomic::Ordering;
use std::time::Duration;

use durin_format::ErrorKind;

use crate::harness::{OnDisk, Texts, file};

#[test]
fn a_script_ends_when_the_user_wants() {
    let endless = Texts {
        lua: "function filter(e) while true do end end",
        python: "def filter(e):\n  while True: pass",
    };
    let stubborn = Texts {
        lua: "function filter(e) while true do pcall(function() while true do end end) end end",
        python: "def filter(e):\n  while True:\n    try:\n      while True: pass\n    except Exception: pass",
    };
    for script in endless.each().into_iter().chain(stubborn.each()) {
        let loaded = script.load().script;
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                script.host.cancel.store(true, Ordering::Relaxed);
            });
            loaded.filter(&file(b"a")).unwrap_err()
        });
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{:?}", script.path);
    }
}

#[test]
fn memory_is_bounded() {
    let mut script = OnDisk::new(
        "script.lua",
        "function filter(e) local all = {} while true do all[#all + 1] = ('x'):rep(1 << 20) .. #all end end",
    );
    script.host.memory_max = 64 << 20;
    let error = script.load().script.filter(&file(b"a")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("out of memory: it may use 64 MiB"),
        "{error}"
    );
}
