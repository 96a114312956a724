//! Reports of [`Perfmon`]: figures on standard error and a trace in a file, when the work is done.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use durin_format::Error;
use durin_reader::perfmon::Perfmon;

use super::escape;
use super::logger::Logger;

/// What is measured, and where it goes.
pub(crate) struct Measuring {
    perfmon: Arc<Perfmon>,
    trace: Option<File>,
}

impl Measuring {
    /// Opens the file of the trace, so that a bad name is found at once. Nothing if nothing is measured.
    pub(crate) fn start(
        perfmon: Option<&Arc<Perfmon>>,
        trace: Option<&Path>,
    ) -> Result<Option<Self>, Error> {
        let Some(perfmon) = perfmon else {
            return Ok(None);
        };
        let create = |path: &Path| {
            File::create(path)
                .map_err(|error| Error::io(format!("cannot make '{}'", escape::path(path)), error))
        };
        Ok(Some(Self {
            perfmon: Arc::clone(perfmon),
            trace: trace.map(create).transpose()?,
        }))
    }

    /// Prints the figures and writes the trace.
    pub(crate) fn report(self, logger: &Logger) {
        let summary = self.perfmon.summary();
        // In the background nobody reads it; then there is the attribute of the root.
        drop(std::io::stderr().lock().write_all(summary.as_bytes()));
        let Some(trace) = self.trace else { return };
        match self.perfmon.write_trace(&mut BufWriter::new(trace)) {
            Ok(0) => {}
            Ok(lost) => logger.warn(format!("the trace is cut short: {lost} more operations")),
            Err(error) => logger.error(format!("cannot write the trace: {error}")),
        }
    }
}
