//! No archive at all: the content of one file.

use durin_format::{Error, Result};
use durin_reader::FileKind;

use super::member::{Body, Format, Links, Member};
use super::output::Output;
use super::prepare::Prepared;

/// The content of one file.
#[derive(Default)]
pub(super) struct Raw {
    has_file: bool,
}

impl Format for Raw {
    fn links(&self) -> Links {
        Links::Named
    }

    fn holds(&self, kind: FileKind) -> bool {
        matches!(kind, FileKind::Directory | FileKind::Regular)
    }

    fn begin(&mut self, member: &Member<'_>, _out: &mut Output<'_>) -> Result<()> {
        // The directories above the file, and its other names, add nothing to its content.
        if !matches!(member.body, Body::Data(_)) {
            return Ok(());
        }
        if std::mem::replace(&mut self.has_file, true) {
            return Err(Error::invalid_input(
                "the format raw is for the content of one file, and the patterns match several",
            ));
        }
        Ok(())
    }

    fn data(&mut self, piece: Prepared, out: &mut Output<'_>) -> Result<()> {
        out.write(&piece.data)
    }

    fn end(&mut self, _member: &Member<'_>, _out: &mut Output<'_>) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _out: &mut Output<'_>) -> Result<()> {
        if self.has_file {
            return Ok(());
        }
        Err(Error::not_found("there is no regular file to write as raw"))
    }
}
