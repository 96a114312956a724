//! What a build tells while it runs.

/// Takes the messages of a build; called from several threads.
///
/// Messages are lower case, without a full stop and without a path of the machine other than those of the input.
pub trait Events: Sync {
    /// Something is missing from the image, or is not what it should be.
    fn error(&self, message: &str);
    /// Something may not be what the user wants.
    fn warn(&self, message: &str);
    /// A stage begins, or has something to say about what it did.
    fn info(&self, message: &str);
}

/// Takes messages and drops them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Events for Silent {
    fn error(&self, _: &str) {}
    fn warn(&self, _: &str) {}
    fn info(&self, _: &str) {}
}
