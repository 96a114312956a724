//! Opening an image from a command line: where it is, and how its bytes are read.

use std::path::Path;
use std::sync::Arc;

use durin_format::Error;
use durin_reader::{Image, ImageOptions};
use durin_source::{OpenMode, Source};

use super::escape;
use super::logger::Logger;
use super::output;
use super::size;
use super::system;

/// The environment variable that chooses how images are read.
const IO_LAYER_VARIABLE: &str = "DWARFS_IOLAYER_OPTS";

/// Metadata of up to so many bytes is read into memory by programs that use an image for long, so that an image cut short
/// meanwhile gives I/O errors. That takes as long as verifying its checksum, which is done anyway. Only trees of millions
/// of files have more; theirs is used where it is mapped, and can leave memory again.
pub(crate) const METADATA_COPY_MAX: u64 = 64 << 20;

/// Opens the image at `path`.
pub(crate) fn open(path: &Path, options: &ImageOptions, logger: &Logger) -> Result<Image, Error> {
    let source = open_source(path, logger)?;
    // As text, so that the path stands before the place in the image and not in the middle of the message.
    system::with_huge_pages(|| Image::open(source, options))
        .map_err(|error| Error::new(error.kind(), format!("{}: {error}", escape::path(path))))
}

/// Opens the file at `path`, as the environment says. It must not be standard output, whatever is printed there.
pub(crate) fn open_source(path: &Path, logger: &Logger) -> Result<Arc<dyn Source>, Error> {
    output::refuse_own_input(path, [Path::new("-")])?;
    let mode = match std::env::var(IO_LAYER_VARIABLE) {
        Ok(text) => parse_io_layer(&text, &mut |warning| logger.warn(warning)),
        Err(_) => OpenMode::Mmap,
    };
    durin_source::open(path, mode)
        .map_err(|error| Error::io(format!("cannot open '{}'", escape::path(path)), error))
}

/// Reads `open_mode=mmap|read,max_eager_map_size=SIZE|unlimited`; what it does not know is only warned about.
fn parse_io_layer(text: &str, warn: &mut dyn FnMut(String)) -> OpenMode {
    let mut mode = OpenMode::Mmap;
    for item in text.split(',').filter(|item| !item.is_empty()) {
        match item.split_once('=') {
            Some(("open_mode", "mmap")) => mode = OpenMode::Mmap,
            Some(("open_mode", "read")) => mode = OpenMode::Read,
            // We always map the whole image lazily, so that there is nothing to limit.
            Some(("max_eager_map_size", value))
                if value == "unlimited" || size::parse(value).is_ok() => {}
            _ => warn(format!("{IO_LAYER_VARIABLE}: ignoring '{item}'")),
        }
    }
    mode
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_layer_options() {
        let check = |text: &str, read: bool, warnings: usize| {
            let mut found = Vec::new();
            let mode = parse_io_layer(text, &mut |warning| found.push(warning));
            assert_eq!(
                (matches!(mode, OpenMode::Read), found.len()),
                (read, warnings),
                "{text}"
            );
        };
        check("", false, 0);
        check("open_mode=read", true, 0);
        check("max_eager_map_size=32m,open_mode=read", true, 0);
        check("max_eager_map_size=unlimited", false, 0);
        check("open_mode=fast,colour=red,open_mode", false, 3);
    }
}
