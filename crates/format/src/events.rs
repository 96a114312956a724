//! What a library says while it works; the program decides where it goes.

/// Takes messages. Called from several threads.
///
/// Messages are lower case, without a full stop.
pub trait Events: Send + Sync {
    /// Something is missing or failed, and the work goes on without it.
    fn error(&self, message: &str);
    /// Something may not be what the user wants.
    fn warn(&self, message: &str);
    /// Something worth knowing happened.
    fn info(&self, message: &str);
}

/// Throws all messages away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Events for Quiet {
    fn error(&self, _message: &str) {}
    fn warn(&self, _message: &str) {}
    fn info(&self, _message: &str) {}
}
