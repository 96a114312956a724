//! Arguments that several programs have, and the value parsers that clap calls.

use std::ffi::OsString;

use clap::{ArgAction, Args};
use durin_reader::ImageOffset;

use super::logger::{Level, Logger};
use super::{escape, size};

/// How much a program says.
#[derive(Args, Debug)]
#[command(next_help_heading = "Messages")]
pub(crate) struct LogArguments {
    /// error, warn, info, verbose, debug or trace
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "info",
        ignore_case = true,
        hide_possible_values = true
    )]
    pub(crate) log_level: Level,

    /// Put the place in the source before each message [default: from 'verbose' on]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", hide_short_help = true)]
    pub(crate) log_with_context: Option<bool>,
}

impl LogArguments {
    /// The logger that was asked for.
    pub(crate) fn logger(&self) -> Logger {
        Logger::new(self.log_level, self.log_with_context)
    }
}

/// Help, version and manual, which every program has. None of the fields is read: `common::program` acts on them
/// before the options of a program exist.
#[derive(Args, Debug)]
#[command(next_help_heading = "Help")]
pub(crate) struct HelpArguments {
    /// Show this help
    #[arg(short = 'h', long = "help", action = ArgAction::HelpShort)]
    help: Option<bool>,

    /// Show the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,

    /// Show the manual
    #[arg(long, exclusive = true)]
    man: bool,
}

/// `auto` or a number of bytes.
pub(crate) fn image_offset(text: &str) -> Result<ImageOffset, String> {
    if text == "auto" {
        return Ok(ImageOffset::Auto);
    }
    text.parse()
        .map(ImageOffset::At)
        .map_err(|_| "an image offset is 'auto' or a number of bytes".to_owned())
}

/// A size in bytes with an optional suffix.
pub(crate) fn byte_size(text: &str) -> Result<u64, String> {
    size::parse(text)
}

/// A parser for whole numbers that says what is expected.
pub(crate) fn number<T>(
    range: std::ops::RangeInclusive<i128>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: TryFrom<i128> + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| match (range.start(), range.end()) {
                (start, &i128::MAX) => format!("a whole number from {start} on is expected"),
                (start, end) => format!("a whole number from {start} to {end} is expected"),
            })
    }
}

/// A parser for numbers without an upper limit.
pub(crate) fn count<T: TryFrom<i128> + 'static>(text: &str) -> Result<T, String> {
    number(0..=i128::MAX)(text)
}

/// More threads than any machine has processors only cost memory.
const WORKERS_MAX: usize = 1024;

/// A number of threads.
pub(crate) fn worker_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=WORKERS_MAX) => Ok(count),
        _ => Err(format!(
            "a number of threads is between 1 and {WORKERS_MAX}"
        )),
    }
}

/// The variable that replaces the number of processors.
const PROCESSORS_VARIABLE: &str = "DWARFS_OVERRIDE_HARDWARE_CONCURRENCY";

/// The number of processors this process may use; `DWARFS_OVERRIDE_HARDWARE_CONCURRENCY` replaces it.
pub(crate) fn processor_count() -> usize {
    pretended_processor_count()
        .and_then(Result::ok)
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1)
}

/// What the environment says, or the text that is no number of processors.
fn pretended_processor_count() -> Option<Result<usize, OsString>> {
    let text = std::env::var_os(PROCESSORS_VARIABLE).filter(|text| !text.is_empty())?;
    let count = text.to_str().and_then(|text| worker_count(text).ok());
    Some(count.ok_or(text))
}

/// Says that a number of processors in the environment cannot be used.
pub(crate) fn warn_of_bad_processor_count(logger: &Logger) {
    if let Some(Err(text)) = pretended_processor_count() {
        let text = escape::bytes(text.as_encoded_bytes());
        logger.warn(format!(
            "{PROCESSORS_VARIABLE} is '{text}', which is no number from 1 to {WORKERS_MAX}"
        ));
    }
}

/// The arguments of the process.
pub(crate) fn of_process() -> Vec<OsString> {
    std::env::args_os().collect()
}
