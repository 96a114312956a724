//! The messages of the libraries, as log lines.

use durin_format::events::Events;

use super::logger::{Level, Logger};

impl Events for Logger {
    fn error(&self, message: &str) {
        self.relay(Level::Error, message);
    }

    fn warn(&self, message: &str) {
        self.relay(Level::Warn, message);
    }

    fn info(&self, message: &str) {
        self.relay(Level::Info, message);
    }
}
