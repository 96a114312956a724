//! The history entry of a build: with what, how and when the image was made.

use std::collections::BTreeSet;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use durin_format::history::{DwarfsVersion, HistoryEntry};

use super::Mkdwarfs;
use super::options::Content;
use crate::common::program::{self, Program};

/// Options that cannot change a byte of the image. They are not recorded, so that the same tree and the same options
/// give the same image whatever it is called and however many processors built it.
const WITHOUT_EFFECT_ON_THE_IMAGE: [&str; 15] = [
    "output",
    "force",
    "dry_run",
    "num_workers",
    "num_scanner_workers",
    "num_segmenter_workers",
    "compress_niceness",
    "memory_limit",
    "progress",
    "progress_workers",
    "no_progress",
    "json",
    "no_check",
    "log_level",
    "log_with_context",
];

/// The entry to record; `None` when there is to be no history.
pub(super) fn entry(
    content: &Content,
    arguments: Vec<String>,
    seconds: u64,
) -> Option<HistoryEntry> {
    (!content.no_history).then(|| HistoryEntry {
        version: own_version(),
        system_id: format!("{} [{}]", std::env::consts::OS, std::env::consts::ARCH),
        compiler_id: "rustc".to_owned(),
        arguments: (!content.no_history_command_line).then_some(arguments),
        timestamp: (!content.no_history_timestamps).then_some(seconds),
        library_versions: Some(
            durin_codec::library_versions()
                .into_iter()
                .collect::<BTreeSet<_>>(),
        ),
    })
}

fn own_version() -> DwarfsVersion {
    let part = |text: &str| text.parse().unwrap_or_default();
    DwarfsVersion {
        major: part(env!("CARGO_PKG_VERSION_MAJOR")),
        minor: part(env!("CARGO_PKG_VERSION_MINOR")),
        patch: part(env!("CARGO_PKG_VERSION_PATCH")),
        is_release: env!("CARGO_PKG_VERSION_PRE").is_empty(),
        git_rev: None,
        git_branch: None,
        git_desc: Some(concat!("durin-", env!("CARGO_PKG_VERSION")).to_owned()),
    }
}

/// The command line in one way of writing it: long names in the order of the help, without what has no effect.
pub(super) fn arguments(matches: &ArgMatches) -> Vec<String> {
    canonical(&program::command::<Mkdwarfs>(), matches)
}

fn canonical(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let mut arguments = vec![Mkdwarfs::NAME.to_owned()];
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let given = matches.value_source(id) == Some(ValueSource::CommandLine);
        let Some(name) = argument
            .get_long()
            .filter(|_| given && !WITHOUT_EFFECT_ON_THE_IMAGE.contains(&id))
        else {
            continue;
        };
        if argument.get_action().takes_values() {
            let values = matches.get_raw(id).into_iter().flatten();
            arguments.extend(values.map(|value| format!("--{name}={}", value.to_string_lossy())));
        } else {
            arguments.push(format!("--{name}"));
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical_of(line: &str) -> String {
        let command = program::command::<Mkdwarfs>();
        match command
            .clone()
            .try_get_matches_from(line.split_whitespace())
        {
            Ok(matches) => canonical(&command, &matches).join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn leaves_out_what_cannot_change_the_image() {
        let expect = "mkdwarfs --input=tree --compress-level=9 --no-create-timestamp";
        assert_eq!(
            canonical_of("mkdwarfs -i tree -o a.dwarfs -l9 --no-create-timestamp"),
            expect
        );
        assert_eq!(
            canonical_of(
                "/usr/bin/mkdwarfs --no-create-timestamp -N 3 --num-scanner-workers=2 -L 1g --progress=none --progress-workers --json \
                 --log-level=warn --compress-niceness=7 -fo b.dwarfs --compress-level 9 --input=tree"
            ),
            expect
        );
    }

    #[test]
    fn every_name_left_out_is_an_option() {
        let command = program::command::<Mkdwarfs>();
        for id in WITHOUT_EFFECT_ON_THE_IMAGE {
            assert!(
                command
                    .get_arguments()
                    .any(|argument| argument.get_id() == id),
                "{id}"
            );
        }
    }

    #[test]
    fn repeated_options_keep_their_order() {
        assert_eq!(
            canonical_of("mkdwarfs -i t -o x --chmod=go-w --chmod D+x"),
            "mkdwarfs --input=t --chmod=go-w --chmod=D+x"
        );
    }
}
