//! Log lines on standard error, in the reference's format: `L HH:MM:SS.uuuuuu [context] message`.
//!
//! The logger owns standard error while a program works: the progress display draws through it, so that a message
//! never ends up in the middle of a bar.

use std::io::Write as _;
use std::panic::Location;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::progress::columns;
use super::{clock, system_log, terminal};

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    /// Only what made the program fail.
    Error,
    /// What the user should look at.
    Warn,
    /// What is being done.
    Info,
    /// What is being done, in more detail.
    Verbose,
    /// What a developer wants to know.
    Debug,
    /// Everything.
    Trace,
}

impl Level {
    fn letter(self) -> char {
        match self {
            Self::Error => 'E',
            Self::Warn => 'W',
            Self::Info => 'I',
            Self::Verbose => 'V',
            Self::Debug => 'D',
            Self::Trace => 'T',
        }
    }

    /// Its name in events.
    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Verbose => "verbose",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// The event that a message becomes.
    fn event(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warning",
            _ => "message",
        }
    }

    /// The escape sequence that starts this level's colour; empty for the terminal's own.
    fn colour(self) -> &'static str {
        match self {
            Self::Error => "\x1b[1;31m",
            Self::Warn => "\x1b[1;33m",
            Self::Info => "",
            Self::Verbose => "\x1b[2;36m",
            Self::Debug => "\x1b[2;33m",
            Self::Trace => "\x1b[90m",
        }
    }
}

/// Erases from the cursor to the end of the screen, and to the end of the line.
const ERASE_BELOW: &str = "\x1b[J";
const ERASE_LINE_END: &str = "\x1b[K";

const CONTEXT_COLOUR: &str = "\x1b[2;35m";
const COLOUR_END: &str = "\x1b[0m";

/// Writes messages of a level and up to standard error.
#[derive(Debug)]
pub(crate) struct Logger {
    threshold: Level,
    with_context: bool,
    with_colour: bool,
    form: Form,
    started: Instant,
    screen: Arc<Mutex<Screen>>,
    /// The name by which the system's log knows the program, once messages go there.
    system_name: Arc<OnceLock<&'static str>>,
}

/// In which form messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As lines for people.
    Lines,
    /// As events, one JSON object a line; docs/progress.md says which there are.
    Events,
}

/// What stands below the last message.
#[derive(Debug, Default)]
struct Screen {
    progress: Vec<String>,
    /// The program has ended for whoever reads.
    is_closed: bool,
}

impl Logger {
    /// A logger for messages of `threshold` and more important ones; `with_context` puts the place in our source in
    /// front, by default from verbose on.
    pub(crate) fn new(threshold: Level, with_context: Option<bool>) -> Self {
        Self {
            threshold,
            with_context: with_context.unwrap_or(threshold >= Level::Verbose),
            with_colour: terminal::stderr_has_colours(),
            form: Form::Lines,
            started: Instant::now(),
            screen: Arc::default(),
            system_name: Arc::default(),
        }
    }

    /// The same logger, but what it writes are events for programs.
    pub(crate) fn with_events(self) -> Self {
        Self {
            form: Form::Events,
            ..self
        }
    }

    /// Whether standard error belongs to events, and nothing else may be written there.
    pub(crate) fn sends_events(&self) -> bool {
        self.form == Form::Events
    }

    /// Sends an event with its own fields (an object); nothing happens if messages are lines.
    pub(crate) fn event(&self, name: &str, fields: Value) {
        if self.sends_events() {
            self.write_above_progress(&self.event_line(name, fields));
        }
    }

    fn event_line(&self, name: &str, fields: Value) -> String {
        let mut event = Map::new();
        event.insert("event".to_owned(), json!(name));
        let elapsed = self.started.elapsed().as_secs_f64();
        event.insert("elapsed_seconds".to_owned(), json!(elapsed));
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        format!("{}\n", Value::Object(event))
    }

    /// Removes the progress display and sends the last event. Nothing is written after it: threads may still be at work.
    pub(crate) fn end(&self, code: u8) {
        let Ok(mut screen) = self.screen.lock() else {
            return;
        };
        let mut text = screen.go_up();
        if !screen.progress.is_empty() {
            text.push_str(ERASE_BELOW);
        }
        if self.sends_events() {
            text.push_str(&self.event_line("end", json!({ "status": code })));
        }
        *screen = Screen {
            is_closed: true,
            ..Screen::default()
        };
        write_stderr(&text);
    }

    /// A logger with the same settings, for a thread that outlives this one's borrow. It knows nothing of progress.
    pub(crate) fn duplicate(&self) -> Self {
        let Self {
            threshold,
            with_context,
            with_colour,
            form,
            started,
            screen: _,
            ref system_name,
        } = *self;
        Self {
            threshold,
            with_context,
            with_colour,
            form,
            started,
            screen: Arc::default(),
            system_name: Arc::clone(system_name),
        }
    }

    /// A logger with another threshold.
    pub(crate) fn at(&self, threshold: Level) -> Self {
        Self {
            threshold,
            with_context: threshold >= Level::Verbose,
            ..self.duplicate()
        }
    }

    /// A logger for the same screen, so that its messages keep clear of the progress, too.
    pub(crate) fn sharing_screen(&self) -> Self {
        Self {
            screen: Arc::clone(&self.screen),
            ..self.duplicate()
        }
    }

    /// Sends messages to the system's log from now on, those of all loggers made from this one, too: nobody sees standard
    /// error any more. `name` is that of the program.
    pub(crate) fn enter_background(&self, name: &'static str) {
        // It enters once.
        self.system_name.set(name).ok();
    }

    /// Whether messages of `level` are shown.
    pub(crate) fn shows(&self, level: Level) -> bool {
        level <= self.threshold
    }

    #[track_caller]
    pub(crate) fn error(&self, message: impl AsRef<str>) {
        self.log(Level::Error, message.as_ref(), Location::caller());
    }

    #[track_caller]
    pub(crate) fn warn(&self, message: impl AsRef<str>) {
        self.log(Level::Warn, message.as_ref(), Location::caller());
    }

    #[track_caller]
    pub(crate) fn info(&self, message: impl AsRef<str>) {
        self.log(Level::Info, message.as_ref(), Location::caller());
    }

    #[track_caller]
    pub(crate) fn verbose(&self, message: impl AsRef<str>) {
        self.log(Level::Verbose, message.as_ref(), Location::caller());
    }

    /// Logs a message of a library, which was said at `place`.
    pub(crate) fn relay(&self, level: Level, message: &str, place: &Location<'_>) {
        self.log(level, message, place);
    }

    fn log(&self, level: Level, message: &str, place: &Location<'_>) {
        if !self.shows(level) {
            return;
        }
        if let Some(name) = self.system_name.get() {
            return system_log::send(name, level, message);
        }
        if self.sends_events() {
            return self.event(
                level.event(),
                json!({ "level": level.name(), "message": message }),
            );
        }
        let mut text = String::new();
        let context = self
            .with_context
            .then(|| format!("[{}:{}]", short_file(place.file()), place.line()));
        self.format(&mut text, level, &local_time(), context.as_deref(), message);
        self.write_above_progress(&text);
    }

    fn format(
        &self,
        text: &mut String,
        level: Level,
        time: &str,
        context: Option<&str>,
        message: &str,
    ) {
        let (colour, end) = match (self.with_colour, level.colour()) {
            (true, colour) if !colour.is_empty() => (colour, COLOUR_END),
            _ => ("", ""),
        };
        let dots = ".".repeat(time.len());
        for (index, line) in message.lines().enumerate() {
            let stamp = if index == 0 { time } else { &dots };
            text.push_str(colour);
            text.push(level.letter());
            text.push(' ');
            text.push_str(stamp);
            match context {
                Some(context) if self.with_colour => {
                    text.push_str(end);
                    text.push_str(&format!(" {CONTEXT_COLOUR}{context}{COLOUR_END}{colour}"));
                }
                Some(context) => text.push_str(&format!(" {context}")),
                None => {}
            }
            text.push(' ');
            text.push_str(line);
            text.push_str(end);
            text.push('\n');
        }
    }

    /// Writes whole lines to standard error as they are, above the progress display.
    pub(crate) fn write_above_progress(&self, lines: &str) {
        let Ok(screen) = self.screen.lock() else {
            return;
        };
        if screen.is_closed {
            return;
        }
        let mut text = screen.go_up();
        if !screen.progress.is_empty() {
            text.push_str(ERASE_BELOW);
        }
        text.push_str(lines);
        screen.push_progress(&mut text);
        write_stderr(&text);
    }

    /// Replaces the progress display below the messages; no lines remove it.
    ///
    /// Lines are written over the old ones, which does not flicker as erasing them first would.
    pub(crate) fn draw_progress(&self, lines: Vec<String>) {
        let Ok(mut screen) = self.screen.lock() else {
            return;
        };
        if screen.is_closed || (lines.is_empty() && screen.progress.is_empty()) {
            return;
        }
        let mut text = screen.go_up();
        screen.progress = lines;
        screen.push_progress(&mut text);
        text.push_str(ERASE_BELOW);
        write_stderr(&text);
    }
}

impl Screen {
    /// The escape sequences that move the cursor to the beginning of the progress display.
    fn go_up(&self) -> String {
        if self.progress.is_empty() {
            return String::new();
        }
        // A terminal that became narrower since has broken the lines.
        let (width, _) = terminal::stderr_size();
        let rows_of = |line: &String| columns(line).div_ceil(width.max(1)).max(1);
        let rows: usize = self.progress.iter().map(rows_of).sum();
        format!("\x1b[{rows}A\r")
    }

    fn push_progress(&self, text: &mut String) {
        for line in &self.progress {
            text.push_str(line);
            text.push_str(ERASE_LINE_END);
            text.push('\n');
        }
    }
}

/// Standard error that cannot be written to (closed, a full disk) is no reason to fail, and there is nowhere to say so.
fn write_stderr(text: &str) {
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
}

/// The name of a source file: below the crate's `src` for a program, beginning with the crate for a library.
fn short_file(file: &str) -> String {
    let Some((folder, name)) = file.rsplit_once("/src/") else {
        return file.to_owned();
    };
    match folder.rsplit('/').next() {
        None | Some("cli") => name.to_owned(),
        Some(library) => format!("{library}/{name}"),
    }
}

/// The local time of day with microseconds.
pub(crate) fn local_time() -> String {
    let now = clock::since_1970();
    let calendar = clock::local(i64::try_from(now.as_secs()).unwrap_or_default());
    format!(
        "{:02}:{:02}:{:02}.{:06}",
        calendar.hour,
        calendar.minute,
        calendar.second,
        now.subsec_micros()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(with_colour: bool, level: Level, context: Option<&str>, message: &str) -> String {
        let mut logger = Logger::new(Level::Trace, None);
        logger.with_colour = with_colour;
        let mut text = String::new();
        logger.format(&mut text, level, "12:00:00.000001", context, message);
        text
    }

    #[test]
    fn lines_look_like_the_reference() {
        assert_eq!(
            formatted(false, Level::Info, None, "hello"),
            "I 12:00:00.000001 hello\n"
        );
        assert_eq!(
            formatted(false, Level::Warn, Some("[a.rs:1]"), "one\ntwo"),
            "W 12:00:00.000001 [a.rs:1] one\nW ............... [a.rs:1] two\n"
        );
    }

    #[test]
    fn colours_enclose_the_line() {
        assert_eq!(
            formatted(true, Level::Error, None, "bad"),
            "\x1b[1;31mE 12:00:00.000001 bad\x1b[0m\n"
        );
        assert_eq!(
            formatted(true, Level::Info, None, "plain"),
            "I 12:00:00.000001 plain\n"
        );
    }

    #[test]
    fn places_are_short() {
        let check = |file, expect| assert_eq!(short_file(file), expect);
        check("crates/cli/src/mkdwarfs/mod.rs", "mkdwarfs/mod.rs");
        check(
            "/home/a/src/durin/crates/writer/src/emit.rs",
            "writer/emit.rs",
        );
        check("main.rs", "main.rs");
    }

    #[test]
    fn threshold_lets_more_important_levels_through() {
        let logger = Logger::new(Level::Warn, None);
        assert!(
            logger.shows(Level::Error) && logger.shows(Level::Warn) && !logger.shows(Level::Info)
        );
    }
}
