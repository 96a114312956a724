//! Where an archive is written to.

use std::io::Write;

use durin_format::{Error, Result};

/// Headers gather here before they are written; content goes past it.
const BUFFER_LEN: usize = 128 * 1024;

/// A writer that knows its position and says what failed.
pub(super) struct Output<'a> {
    target: &'a mut dyn Write,
    pending: Vec<u8>,
    position: u64,
    has_failed: bool,
}

impl<'a> Output<'a> {
    pub(super) fn new(target: &'a mut dyn Write) -> Self {
        Self {
            target,
            pending: Vec::with_capacity(BUFFER_LEN),
            position: 0,
            has_failed: false,
        }
    }

    /// Bytes written so far.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn write(&mut self, data: &[u8]) -> Result<()> {
        self.position += data.len() as u64;
        if self.pending.len() + data.len() > BUFFER_LEN {
            self.flush()?;
        }
        if data.len() >= BUFFER_LEN {
            return self.pass(data);
        }
        self.pending.extend_from_slice(data);
        Ok(())
    }

    /// Writes zeros up to the next multiple of `alignment`.
    pub(super) fn pad(&mut self, alignment: u64) -> Result<()> {
        let rest = self.position.next_multiple_of(alignment) - self.position;
        self.zeros(rest)
    }

    pub(super) fn zeros(&mut self, len: u64) -> Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut rest = len;
        while rest > 0 {
            let step = usize::try_from(rest).map_or(ZEROS.len(), |rest| rest.min(ZEROS.len()));
            self.write(ZEROS.get(..step).unwrap_or_default())?;
            rest -= step as u64;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.pass(&pending)?;
        self.pending = pending;
        self.pending.clear();
        Ok(())
    }

    /// Whether the archive cannot be written, so that nothing else is worth trying.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    fn pass(&mut self, data: &[u8]) -> Result<()> {
        self.target.write_all(data).map_err(|error| {
            self.has_failed = true;
            Error::io("cannot write the archive", error)
        })
    }
}
