//! `--order`: how file contents follow each other in the image.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use durin_format::Error;
use durin_writer::{NilsimsaOptions, Order};

use crate::common::exit::Failure;
use crate::common::size;

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
        ("similarity", None) => Ok(Order::Similarity),
        ("nilsimsa", options) => nilsimsa(options),
        ("none" | "path" | "revpath" | "similarity", Some(_)) => {
            Err(Failure::Usage(format!("--order={mode} takes no options")))
        }
        _ => Err(Failure::Usage(format!(
            "unknown order '{spec}' (none, path, revpath, similarity, nilsimsa, explicit:file=FILE)"
        ))),
    }
}

/// Options of the form `max-children=N:max-cluster-size=N`.
fn nilsimsa(options: Option<&str>) -> Result<Order, Failure> {
    let mut limits = NilsimsaOptions::default();
    let mut given = Vec::new();
    for option in options.into_iter().flat_map(|options| options.split(':')) {
        let unknown = || {
            Failure::Usage(format!(
                "unknown option '{option}' of --order=nilsimsa (max-children=N, max-cluster-size=N)"
            ))
        };
        let (name, value) = option.split_once('=').ok_or_else(unknown)?;
        let limit = match name {
            "max-children" => &mut limits.max_children,
            "max-cluster-size" => &mut limits.max_cluster_size,
            _ => return Err(unknown()),
        };
        if given.contains(&name) {
            return Err(Failure::Usage(format!(
                "--order=nilsimsa: {name} is given twice"
            )));
        }
        given.push(name);
        let number = size::parse(value).map_err(Failure::Usage)?;
        // More than there can be files is no limit.
        *limit = u32::try_from(number).unwrap_or(u32::MAX);
        if *limit == 0 {
            return Err(Failure::Usage(format!(
                "--order=nilsimsa: {name} must be at least 1"
            )));
        }
    }
    Ok(Order::Nilsimsa(limits))
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
    fn limits_of_nilsimsa() {
        let limits = |max_children, max_cluster_size| {
            Ok(Order::Nilsimsa(NilsimsaOptions {
                max_children,
                max_cluster_size,
            }))
        };
        assert_eq!(order("similarity"), Ok(Order::Similarity));
        assert_eq!(order("nilsimsa"), limits(16_384, 16_384));
        assert_eq!(order("nilsimsa:max-children=1k"), limits(1024, 16_384));
        assert_eq!(
            order("nilsimsa:max-cluster-size=100:max-children=1t"),
            limits(u32::MAX, 100)
        );
    }

    #[test]
    fn tells_what_is_wrong() {
        let check = |spec: &str, message: &str| {
            let error = order(spec).err().unwrap_or_default();
            assert!(error.contains(message), "{spec}: {error}");
        };
        check("similarity:x=1", "takes no options");
        check("nilsimsa:", "unknown option ''");
        check("nilsimsa:depth=3", "unknown option 'depth=3'");
        check("nilsimsa:max-children=0", "at least 1");
        check("nilsimsa:max-children=1:max-children=2", "given twice");
        check("nilsimsa:max-children=many", "a size is a number");
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
