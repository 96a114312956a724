//! Completions as the shells themselves make them, and manual pages as the programs that show them judge them.

use std::path::Path;

use durin_testkit::run::Run;
use durin_testkit::skip::has_program;

use crate::support::{durin, stdout};

/// Lines as somebody types them, and what must be offered for each.
const LINES: [(&str, &[&str]); 10] = [
    (
        "mkdwarfs --recompr",
        &["--recompress", "--recompress-categories"],
    ),
    ("dwarfsck --check", &["--checksum", "--check-integrity"]),
    (
        "dwarfsextract --skip",
        &["--skip-devices", "--skip-specials"],
    ),
    ("dwarfs --auto", &["--auto-mountpoint"]),
    ("durin gr", &["grep"]),
    ("durin grep --co", &["--count", "--context"]),
    ("dwarfsck --checksum sha25", &["sha256"]),
    ("dwarfsextract -f p", &["pax", "paxr"]),
    ("mkdwarfs --order re", &["revpath"]),
    ("mkdwarfs -C lz", &["lz4", "lz4hc", "lzma"]),
];

#[test]
fn fish_completes() {
    if !has_program("fish") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    durin()
        .args(["completions", "fish"])
        .arg(dir.path())
        .succeed();
    let script = "for file in $argv[1]/*.fish; source $file; end; complete -C $argv[2]";
    for (line, wanted) in LINES {
        let run = Run::new("fish").args(["--no-config", "-c", script]);
        let run = run.env("HOME", dir.path()).arg(dir.path()).arg(line);
        let text = stdout(&run.succeed());
        // A tab and a description follow each.
        let mut found: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split('\t').next())
            .collect();
        found.sort_unstable();
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{line}");
    }
}

/// Types `$2` and two tabs into a shell that uses the completions in `$1`, as zsh completes for terminals only.
const ZSH: &str = r#"
    zmodload zsh/zpty
    wait_for() {
        local text all=; local -i tries
        for ((tries = 0; tries < 600; tries++)); do
            if zpty -r -t shell text; then all+=$text; else sleep 0.05; fi
            [[ $all == *$1* ]] && { print -rn -- $all; return 0 }
        done
        print -rn -- $all
        return 1
    }
    zpty -b shell zsh -f -i
    zpty -w shell "PROMPT=; unsetopt zle_bracketed_paste prompt_sp prompt_cr; stty -echo cols 150
        fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; bindkey '^I' complete-word; LISTMAX=1000
        report() { print -r -- \"<<\$BUFFER>>\" }; zle -N report; bindkey '^X' report; print rea''dy"
    wait_for ready >/dev/null || exit 3
    zpty -w -n shell "$2"$'\t\t\C-X'
    wait_for '>>'
"#;

#[test]
fn zsh_completes() {
    if !has_program("zsh") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    durin()
        .args(["completions", "zsh"])
        .arg(dir.path())
        .succeed();
    for (line, wanted) in LINES {
        let run = Run::new("zsh").args(["-f", "-c", ZSH, "zsh"]);
        let run = run.env("HOME", dir.path()).env("TERM", "dumb");
        let text = stdout(&run.arg(dir.path()).arg(line).succeed());
        for wanted in wanted {
            assert!(text.contains(wanted), "{line}: {wanted}: {text}");
        }
    }
}

#[test]
fn manual_pages_are_well_formed() {
    let dir = tempfile::tempdir().unwrap();
    durin().arg("man").arg(dir.path()).succeed();
    let pages: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(pages.len() > 8);
    if has_program("groff") {
        each(&pages, &["groff", "-man", "-ww", "-Tutf8", "-z"]);
    }
    if has_program("mandoc") {
        each(&pages, &["mandoc", "-T", "lint", "-W", "error"]);
    }
}

/// None of the pages makes a program say anything.
fn each(pages: &[impl AsRef<Path>], command: &[&str]) {
    for page in pages {
        let page = page.as_ref();
        let outcome = Run::new(command[0]).args(&command[1..]).arg(page).succeed();
        let said = format!("{}{}", stdout(&outcome), outcome.stderr);
        assert_eq!(said, "", "{}", page.display());
    }
}
