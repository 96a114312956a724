//! `--list`: the paths of an image, with `--verbose` in the way of `ls -l`.

use durin_format::Result;
use durin_reader::{FileKind, Image, WalkEntry};

use crate::common::exit::Failure;
use crate::common::logger::Logger;
use crate::common::output::{self, write_failed};
use crate::common::{clock, escape, mode};

/// What is shown of each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The path.
    Paths,
    /// Mode, owner, size, time, path and target.
    Long,
}

/// Prints the list; returns how many entries could not be read.
pub(super) fn print(
    image: &Image,
    form: Form,
    logger: &Logger,
) -> std::result::Result<u64, Failure> {
    let mut errors = 0;
    let widths = if form == Form::Long {
        Widths::of(image)
    } else {
        Widths::default()
    };
    output::to_stdout(|out| {
        // The root has no name.
        for entry in image.walk().filter(|entry| !is_root(entry)) {
            match entry.and_then(|entry| line(image, &entry, form, &widths)) {
                Ok(line) => writeln!(out, "{line}").map_err(write_failed)?,
                Err(error) => {
                    logger.error(error.to_string());
                    errors += 1;
                }
            }
        }
        Ok(())
    })?;
    Ok(errors)
}

fn is_root(entry: &Result<WalkEntry>) -> bool {
    entry.as_ref().is_ok_and(|entry| entry.path.is_empty())
}

fn line(image: &Image, entry: &WalkEntry, form: Form, widths: &Widths) -> Result<String> {
    let path = escape::bytes(&entry.path);
    if form == Form::Paths {
        return Ok(path);
    }
    let attr = &entry.attr;
    let owner = format!(
        "{:>uid$}/{:<gid$}",
        attr.uid,
        attr.gid,
        uid = widths.uid,
        gid = widths.gid
    );
    let size = format!("{:>width$}", size_column(entry), width = widths.size);
    let time = clock::local(attr.mtime.sec);
    let mut line = format!("{} {owner} {size} {time} {path}", mode::display(attr.mode));
    if attr.kind == FileKind::Symlink {
        line.push_str(" -> ");
        line.push_str(&escape::bytes(&image.read_link(attr.inode)?));
    }
    Ok(line)
}

/// The size, or for a device its numbers.
fn size_column(entry: &WalkEntry) -> String {
    let attr = &entry.attr;
    match attr.kind {
        FileKind::CharDevice | FileKind::BlockDevice => {
            format!(
                "{},{}",
                rustix::fs::major(attr.rdev),
                rustix::fs::minor(attr.rdev)
            )
        }
        _ => attr.size.to_string(),
    }
}

/// The widths of the columns.
#[derive(Debug, Default)]
struct Widths {
    uid: usize,
    gid: usize,
    size: usize,
}

impl Widths {
    /// Looks at every entry; errors are reported when the entry is printed.
    fn of(image: &Image) -> Self {
        let mut widths = Self::default();
        for entry in image.walk().flatten() {
            widths.uid = widths.uid.max(entry.attr.uid.to_string().len());
            widths.gid = widths.gid.max(entry.attr.gid.to_string().len());
            widths.size = widths.size.max(size_column(&entry).len());
        }
        widths
    }
}
