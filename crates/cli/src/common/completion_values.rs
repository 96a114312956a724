//! What shells offer as values of options that take a text: the lists that their parsers know.

use clap::Command;
use clap::builder::PossibleValuesParser;
use durin_format::digest::Digest;

use crate::dwarfsextract::archive_spec;

/// The command with possible values wherever there is a list; only for completions, as more is parsed than these.
pub(crate) fn offered(mut command: Command) -> Command {
    for subcommand in command.get_subcommands_mut() {
        *subcommand = offered(std::mem::take(subcommand));
    }
    let name = command.get_name().to_owned();
    command.mut_args(|argument| {
        let values = values(&name, argument.get_id().as_str());
        if values.is_empty() {
            return argument;
        }
        // A parser brings an action of its own.
        let action = argument.get_action().clone();
        argument
            .value_parser(PossibleValuesParser::new(values))
            .action(action)
    })
}

/// The values of one option of a program, under either of its names.
fn values(program: &str, option: &str) -> Vec<&'static str> {
    match (program, option) {
        ("mkdwarfs" | "build", "compress_level") => {
            vec!["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
        }
        ("mkdwarfs" | "build", "order") => {
            vec!["none", "path", "revpath", "similarity", "nilsimsa"]
        }
        ("mkdwarfs" | "build", "file_hash") => with("none", Digest::names().to_vec()),
        (
            "mkdwarfs" | "build",
            "compression" | "schema_compression" | "metadata_compression" | "history_compression",
        ) => {
            let algorithms = durin_codec::algorithms().iter();
            algorithms.map(|algorithm| algorithm.name).collect()
        }
        ("dwarfsck" | "check", "checksum") => Digest::names().to_vec(),
        ("dwarfsextract" | "extract", "format") => with("auto", archive_spec::format_names()),
        ("dwarfsextract" | "extract", "format_filters") => archive_spec::filter_names(),
        _ => Vec::new(),
    }
}

fn with(first: &'static str, mut rest: Vec<&'static str>) -> Vec<&'static str> {
    rest.insert(0, first);
    rest
}
