//! The messages of the libraries, as log lines.

use super::logger::{Level, Logger};

impl durin_writer::Events for Logger {
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

impl durin_extract::Events for Logger {
    fn error(&self, message: &str) {
        self.relay(Level::Error, message);
    }

    fn warn(&self, message: &str) {
        self.relay(Level::Warn, message);
    }
}

impl durin_fuse::Events for Logger {
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
