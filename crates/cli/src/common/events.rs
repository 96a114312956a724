//! The messages of the libraries, as log lines.

use durin_format::events::{Events, Message, Severity};

use super::logger::{Level, Logger};

impl Events for Logger {
    fn message(&self, message: &Message<'_>) {
        let level = match message.severity {
            Severity::Error => Level::Error,
            Severity::Warn => Level::Warn,
            Severity::Info => Level::Info,
        };
        self.relay(level, message.text, message.place);
    }
}
