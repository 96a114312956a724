//! `--script`: running the script, and options that it sets where the command line does not.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches as _};
use durin_format::events::Events;
use durin_script::{Host, Setting, Spec, Value};
use durin_writer::script::Script;

use super::Mkdwarfs;
use super::options::{MemoryLimit, Options};
use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::program::{self, Program};

/// Options that a script may set: those that decide about the image and name no file to write.
const SETTABLE: [&str; 28] = [
    "block_size_bits",
    "bloom_filter_size",
    "categorize",
    "chmod",
    "compress_level",
    "compression",
    "file_hash",
    "filter",
    "header",
    "keep_all_times",
    "max_lookback_blocks",
    "metadata_compression",
    "no_create_timestamp",
    "no_hardlink_table",
    "no_history",
    "no_history_command_line",
    "no_history_timestamps",
    "no_sparse_files",
    "order",
    "pack_metadata",
    "remove_empty_dirs",
    "set_group",
    "set_owner",
    "set_time",
    "time_resolution",
    "window_size",
    "with_devices",
    "with_specials",
];

/// A script and the options of the command line and its own.
pub(super) struct Scripted {
    pub(super) options: Options,
    pub(super) script: Arc<dyn Script>,
}

/// Runs the script of the command line, if there is one.
pub(super) fn load(
    options: &Options,
    matches: &ArgMatches,
    logger: &Logger,
    cancel: &Arc<AtomicBool>,
) -> Result<Option<Scripted>, Failure> {
    let Some(text) = &options.filter.script else {
        return Ok(None);
    };
    let memory_max = match options.advanced.memory_limit {
        MemoryLimit::Auto => durin_writer::automatic_memory_limit(),
        MemoryLimit::Bytes(bytes) => bytes,
    } / 2;
    let host = Host {
        events: Arc::new(logger.sharing_screen()) as Arc<dyn Events>,
        cancel: Arc::clone(cancel),
        memory_max: usize::try_from(memory_max).unwrap_or(usize::MAX),
    };
    let loaded = durin_script::load(&Spec::parse(text)?, host)?;
    let command = program::command::<Mkdwarfs>();
    let arguments = arguments_with(&command, matches, &loaded.settings)?;
    let options = command
        .try_get_matches_from(arguments)
        .and_then(|matches| Options::from_arg_matches(&matches))
        .map_err(|error| {
            let text = error.render().to_string();
            let text = text.trim_start_matches("error: ").trim_end();
            Failure::Usage(format!(
                "with what configure of the script returned: {text}"
            ))
        })?;
    Ok(Some(Scripted {
        options,
        script: loaded.script,
    }))
}

/// The command line with those settings that it does not have itself.
fn arguments_with(
    command: &Command,
    matches: &ArgMatches,
    settings: &[Setting],
) -> Result<Vec<OsString>, Failure> {
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let mut arguments = vec![OsString::from(Mkdwarfs::NAME)];
    for setting in settings {
        if !SETTABLE.contains(&setting.name.as_str()) {
            return Err(Failure::Usage(format!(
                "configure of the script returned '{}', which is no option that a script may set ({})",
                setting.name,
                SETTABLE.join(", ")
            )));
        }
        if is_given(&setting.name) {
            continue;
        }
        let name = setting.name.replace('_', "-");
        match &setting.value {
            Value::Switch(false) => {}
            Value::Switch(true) => arguments.push(format!("--{name}").into()),
            Value::Texts(texts) => {
                arguments.extend(texts.iter().map(|text| with_value(&name, text.as_ref())));
            }
        }
    }
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let Some(name) = argument.get_long().filter(|_| is_given(id)) else {
            continue;
        };
        if argument.get_action().takes_values() {
            let values = matches.get_raw(id).into_iter().flatten();
            arguments.extend(values.map(|value| with_value(name, value)));
        } else {
            arguments.push(format!("--{name}").into());
        }
    }
    Ok(arguments)
}

fn with_value(name: &str, value: &OsStr) -> OsString {
    let mut argument = OsString::from(format!("--{name}="));
    argument.push(value);
    argument
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(line: &str, settings: &[(&str, Value)]) -> Result<String, String> {
        let command = program::command::<Mkdwarfs>();
        let matches = command
            .clone()
            .try_get_matches_from(line.split_whitespace())
            .map_err(|error| error.to_string())?;
        let settings: Vec<_> = settings
            .iter()
            .map(|(name, value)| Setting {
                name: (*name).to_owned(),
                value: value.clone(),
            })
            .collect();
        let arguments = arguments_with(&command, &matches, &settings)
            .map_err(|failure| failure.message().unwrap_or_default())?;
        let shown: Vec<_> = arguments
            .iter()
            .map(|argument| argument.to_string_lossy())
            .collect();
        Ok(shown.join(" "))
    }

    fn texts(texts: &[&str]) -> Value {
        Value::Texts(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn the_command_line_has_the_last_word() {
        let settings = [
            ("chmod", texts(&["u+r", "norm"])),
            ("order", texts(&["path"])),
            ("keep_all_times", Value::Switch(true)),
            ("set_owner", texts(&["0"])),
            ("with_devices", Value::Switch(false)),
        ];
        assert_eq!(
            with(
                "mkdwarfs -i t -ox --script a.lua --order=revpath --no-history",
                &settings
            )
            .as_deref(),
            Ok(
                "mkdwarfs --chmod=u+r --chmod=norm --keep-all-times --set-owner=0 --input=t --output=x \
                 --order=revpath --script=a.lua --no-history"
            )
        );
    }

    #[test]
    fn only_some_options_can_be_set() {
        let error = with("mkdwarfs -i t -o x", &[("output", texts(&["y"]))]);
        let error = error.expect_err("no such setting");
        assert!(error.contains("'output', which is no option"), "{error}");
    }

    #[test]
    fn the_document_lists_what_can_be_set() {
        let text = include_str!("../../../../docs/scripting.md");
        let line = text.lines().find(|line| line.starts_with("It may set "));
        let names: Vec<&str> = line
            .unwrap_or_default()
            .split('`')
            .skip(1)
            .step_by(2)
            .collect();
        assert_eq!(names, SETTABLE);
    }

    #[test]
    fn each_settable_name_is_an_option() {
        let command = program::command::<Mkdwarfs>();
        for name in SETTABLE {
            let long = name.replace('_', "-");
            assert!(
                command
                    .get_arguments()
                    .any(|argument| argument.get_id() == name
                        && argument.get_long() == Some(&long)),
                "{name}"
            );
        }
    }
}
