//! What a library says while it works; the program decides where it goes.

use std::panic::Location;

/// Takes messages. Called from several threads.
pub trait Events: Send + Sync {
    /// Takes a message.
    fn message(&self, message: &Message<'_>);
}

/// A message of a library.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// How bad it is.
    pub severity: Severity,
    /// Lower case, without a full stop.
    pub text: &'a str,
    /// Where in our source it was said.
    pub place: &'static Location<'static>,
}

/// How bad it is what a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something is missing or failed, and the work goes on without it.
    Error,
    /// Something may not be what the user wants.
    Warn,
    /// Something worth knowing happened.
    Info,
}

// Not methods of the trait: called through `dyn`, those would not see the place of their caller.
impl dyn Events + '_ {
    /// Something is missing or failed, and the work goes on without it.
    #[track_caller]
    pub fn error(&self, text: &str) {
        self.say(Severity::Error, text);
    }

    /// Something may not be what the user wants.
    #[track_caller]
    pub fn warn(&self, text: &str) {
        self.say(Severity::Warn, text);
    }

    /// Something worth knowing happened.
    #[track_caller]
    pub fn info(&self, text: &str) {
        self.say(Severity::Info, text);
    }

    #[track_caller]
    fn say(&self, severity: Severity, text: &str) {
        self.message(&Message {
            severity,
            text,
            place: Location::caller(),
        });
    }
}

/// Throws all messages away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Events for Quiet {
    fn message(&self, _message: &Message<'_>) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Places(Mutex<Vec<(Severity, u32)>>);

    impl Events for Places {
        fn message(&self, message: &Message<'_>) {
            let mut places = self.0.lock().expect("no thread panicked");
            places.push((message.severity, message.place.line()));
        }
    }

    #[test]
    fn messages_know_where_they_were_said() {
        let places = Places::default();
        let events: &dyn Events = &places;
        let line = line!();
        events.error("a");
        events.warn("b");
        events.info("c");
        let expect = [Severity::Error, Severity::Warn, Severity::Info]
            .into_iter()
            .zip(line + 1..);
        assert!(
            places
                .0
                .into_inner()
                .expect("no thread panicked")
                .into_iter()
                .eq(expect)
        );
    }
}
