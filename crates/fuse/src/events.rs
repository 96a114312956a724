//! What the driver has to say while it runs.

/// Takes the driver's messages; the caller decides where they go.
///
/// Called from every server thread.
pub trait Events: Send + Sync {
    /// Something failed that a reader was told about as an error number only.
    fn error(&self, message: &str);
    /// Something is odd, but the driver goes on.
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
