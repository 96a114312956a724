//! `--order`: how file contents follow each other in the image.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use durin_format::Error;
use durin_writer::Order;

use super::later::not_supported;
use crate::common::exit::Failure;

/// The order that a value of the option asks for, without categories.
pub(super) fn parse(spec: &str) -> Result<Order, Failure> {
    let (mode, option) = match spec.split_once(':') {
        Some((mode, option)) => (mode, Some(option)),
        None => (spec, None),
    };
    match (mode, option) {
        ("none", None) => Ok(Order::None),
        ("path", None) => Ok(Order::Path),
        ("revpath", None) => Ok(Order::Revpath),
        ("explicit", Some(option)) => explicit(option),
        ("explicit", None) => Err(Failure::Usage(
            "--order=explicit needs a file: explicit:file=FILE".to_owned(),
        )),
        ("similarity" | "nilsimsa", _) => Err(not_supported(&format!("--order={mode}"))),
        ("none" | "path" | "revpath", Some(_)) => {
            Err(Failure::Usage(format!("--order={mode} takes no options")))
        }
        _ => Err(Failure::Usage(format!(
            "unknown order '{spec}' (none, path, revpath, explicit:file=FILE)"
        ))),
    }
}

fn explicit(option: &str) -> Result<Order, Failure> {
    let Some(file) = option.strip_prefix("file=").filter(|file| !file.is_empty()) else {
        return Err(Failure::Usage(format!(
            "unknown option '{option}' of --order=explicit (file=FILE)"
        )));
    };
    let list = fs::read(file)
        .map_err(|error| Error::io(format!("cannot read order file '{file}'"), error))?;
    Ok(Order::Explicit(lines(&list)))
}

/// The lines of a list of paths that are not empty.
pub(super) fn lines(list: &[u8]) -> Vec<PathBuf> {
    list.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| PathBuf::from(OsString::from_vec(line.to_vec())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(spec: &str) -> Result<Order, String> {
        parse(spec).map_err(|failure| failure.message().unwrap_or_default())
    }

    #[test]
    fn plain_orders() {
        assert_eq!(order("none"), Ok(Order::None));
        assert_eq!(order("revpath"), Ok(Order::Revpath));
    }

    #[test]
    fn tells_unknown_from_not_supported() {
        let check = |spec: &str, message: &str| {
            let error = order(spec).err().unwrap_or_default();
            assert!(error.contains(message), "{spec}: {error}");
        };
        check("similarity", "not supported by this release yet");
        check(
            "nilsimsa:max-children=1k",
            "not supported by this release yet",
        );
        check("size", "unknown order");
        check("path:x=1", "takes no options");
        check("explicit", "needs a file");
        check("explicit:list=x", "unknown option");
        check("explicit:file=/nonexistent/list", "cannot read order file");
    }

    #[test]
    fn lines_may_hold_any_bytes() {
        let paths = lines(b"a\n\nb \xff\nlast");
        assert_eq!(paths.len(), 3);
        assert_eq!(paths[1].as_os_str().as_encoded_bytes(), b"b \xff");
    }
}
