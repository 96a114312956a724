//! From a command line to an exit code: what the `main` of every program does.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind as ClapErrorKind;
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _, Parser};

use super::exit::{self, Failure};
use super::logger::{Level, Logger};
use super::{arguments, banner, man, output, system, terminal};

/// A program: its options, and what it does with them.
pub(crate) trait Program {
    /// The parsed command line.
    type Options: Parser;

    /// The name it is known by.
    const NAME: &'static str;

    /// Whether it compresses blocks, whose tables are faster to look into in huge pages, and within a limit of memory.
    const COMPRESSES: bool = false;

    /// The logger that the options ask for.
    fn logger(options: &Self::Options) -> Logger;

    /// Does the work; the result is the exit code. `matches` tells which options were given.
    fn run(options: &Self::Options, matches: &ArgMatches, logger: &Logger) -> Result<u8, Failure>;

    /// Text for the long help that does not come from the definition of an option.
    fn after_long_help() -> Option<String> {
        None
    }
}

/// Runs `P` with `arguments`, the first of which is the name it was called by.
pub(crate) fn main<P: Program>(arguments: &[OsString]) -> ExitCode {
    exit::exit_code(match parse::<P>(arguments) {
        Ok(Some((options, matches))) => run::<P>(&options, &matches),
        Ok(None) => exit::SUCCESS,
        Err(failure) => report(&Logger::new(Level::Error, None), &failure),
    })
}

fn run<P: Program>(options: &P::Options, matches: &ArgMatches) -> u8 {
    if !P::COMPRESSES {
        system::refuse_huge_pages();
        system::keep_freed_memory();
    }
    let logger = P::logger(options);
    arguments::warn_of_bad_processor_count(&logger);
    let code = match P::run(options, matches, &logger) {
        Ok(code) => code,
        Err(failure) => report(&logger, &failure),
    };
    logger.end(code);
    code
}

/// Tells the user about a failure; returns its exit code.
pub(crate) fn report(logger: &Logger, failure: &Failure) -> u8 {
    match (failure, failure.message()) {
        // What the user typed needs no time stamp.
        (Failure::Usage(_), Some(message)) if !logger.sends_events() => {
            logger.write_above_progress(&format!("error: {message}\n"))
        }
        (_, Some(message)) => logger.error(message),
        (_, None) => {}
    }
    failure.code()
}

/// The complete definition of a program's command line.
pub(crate) fn command<P: Program>() -> Command {
    let command = P::Options::command()
        .name(P::NAME)
        // A subcommand is known by a dash, as in the name of its manual page, and called with a space.
        .bin_name(P::NAME.replacen("durin-", "durin ", 1))
        .version(format!("({})", banner::release()))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .term_width(terminal::text_width());
    match P::after_long_help() {
        Some(text) => command.after_long_help(text),
        None => command,
    }
}

/// Parses the command line; `None` when it only asked for help, which has been given.
fn parse<P: Program>(arguments: &[OsString]) -> Result<Option<(P::Options, ArgMatches)>, Failure> {
    let matches = match command::<P>().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return answer_parse_error(&error).map(|()| None),
    };
    if asks_for_manual(&matches) {
        man::show(&command::<P>())?;
        return Ok(None);
    }
    match P::Options::from_arg_matches(&matches) {
        Ok(options) => Ok(Some((options, matches))),
        Err(error) => Err(usage_failure(&error)),
    }
}

fn asks_for_manual(matches: &ArgMatches) -> bool {
    matches
        .try_get_one::<bool>("man")
        .ok()
        .flatten()
        .is_some_and(|man| *man)
}

/// Help and version come as "errors" from the parser; they go to standard output and are none.
fn answer_parse_error(error: &clap::Error) -> Result<(), Failure> {
    match error.kind() {
        ClapErrorKind::DisplayHelp | ClapErrorKind::DisplayVersion => {
            output::print(&error.render().to_string())
        }
        _ => Err(usage_failure(error)),
    }
}

fn usage_failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    Failure::Usage(text.trim_start_matches("error: ").trim_end().to_owned())
}
