//! The first stage: from a directory or a list of paths to the tree of all entries and their attributes.
//!
//! In: the file system, through directory descriptors only, so that neither the length of a path nor a directory that
//! somebody replaces by a symbolic link meanwhile matters. Out: a [`Tree`] in an order that depends on names only.
//! Several threads read directories. Memory is proportional to the number of entries, about 200 bytes each at the peak.
//! Nothing here reads a file's content.

mod assemble;
mod batch;
mod entry;
mod list;
mod listing;
mod script_filter;
mod walk;

use std::io;
use std::os::fd::OwnedFd;

use durin_format::{Error, Result};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::context::Context;
use crate::filter::Decision;
use crate::options::{BuildOptions, Input};
use crate::stats::Stage;
use crate::status::{Kind, Status};
use crate::tree::{EntryIndex, ROOT, Tree, count_of};
use assemble::Assembly;
use walk::Excluded;

/// How directories are opened to be listed: never through a symbolic link.
const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How directories are opened that only lead somewhere: they need not be readable, as long as they can be searched.
pub(crate) const PASSAGE_FLAGS: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The result of a scan.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// The root of the input; paths of the tree start here.
    pub(crate) root: OwnedFd,
    pub(crate) tree: Tree,
}

/// Scans the input.
///
/// # Errors
/// `Io` or `InvalidInput` if the root cannot be opened; `Limit` for too many entries; `Cancelled`.
/// What cannot be read below the root is reported and counted.
pub(crate) fn scan(context: Context<'_>) -> Result<Scanned> {
    let (root, status) = open_root(&context.options.input)?;
    let mut listings = match &context.options.input {
        Input::Directory(_) => walk::walk(context, &root, Excluded::Drop)?,
        Input::List { root: base, paths } => {
            let _thread = context.stats.enter(Stage::Scan);
            let mut listings = list::list(context, &root, base.as_deref(), paths)?;
            if let Some(script) = context.options.script_with(|hooks| hooks.filter) {
                script_filter::of_listings(context, script, &mut listings)?;
            }
            listings
        }
    };
    if context.options.remove_empty_dirs {
        let removed = assemble::remove_empty_dirs(&mut listings);
        context.stats.dirs.sub(removed);
    }
    context.stats.dirs.add(1);
    let _thread = context.stats.enter(Stage::Assemble);
    let tree = assembly(context.options).run(&status, listings)?;
    Ok(Scanned { root, tree })
}

/// Scans the input and returns what the filter says of each entry, in the order of paths.
///
/// Entries below excluded directories are not looked at.
///
/// # Errors
/// As [`scan`]; `InvalidInput` if the input is a list, to which no filter applies.
pub(crate) fn decide(context: Context<'_>) -> Result<Vec<Decision>> {
    if let Input::List { .. } = context.options.input {
        return Err(Error::invalid_input("a filter does not apply to a list"));
    }
    let (root, status) = open_root(&context.options.input)?;
    let listings = walk::walk(context, &root, Excluded::Keep)?;
    let assembly = Assembly {
        keep_further_times: context.options.script.is_some(),
        ..assembly(context.options)
    };
    let tree = assembly.run(&status, listings)?;
    let verdicts = script_filter::verdicts(context, &tree)?;
    let places = tree.path_places();
    let mut order: Vec<EntryIndex> = (ROOT + 1..count_of(tree.entries.len())).collect();
    order.sort_unstable_by_key(|index| places[*index as usize]);
    let decision = |index| {
        let verdict = verdicts[index as usize]?;
        let path = tree.path(index);
        let is_dir = tree.entry(index).detail.kind() == Kind::Directory;
        Some(Decision {
            path,
            is_dir,
            verdict,
        })
    };
    Ok(order.into_iter().filter_map(decision).collect())
}

fn assembly(options: &BuildOptions) -> Assembly {
    Assembly {
        keep_further_times: options.keep_all_times
            || options.script_with(|hooks| hooks.transform).is_some(),
        is_list: matches!(options.input, Input::List { .. }),
    }
}

/// Opens the root; here a symbolic link is followed, because the user named it.
fn open_root(input: &Input) -> Result<(OwnedFd, Status)> {
    let path = input.root();
    let flags = match input {
        Input::Directory(_) => DIRECTORY_FLAGS,
        Input::List { .. } => PASSAGE_FLAGS,
    };
    let flags = flags.difference(OFlags::NOFOLLOW);
    let open = || {
        let root = openat(CWD, path, flags, Mode::empty())?;
        let status = Status::of_file(&root)?;
        Ok((root, status))
    };
    open().map_err(|error: io::Error| match Errno::from_io_error(&error) {
        Some(Errno::NOTDIR) => {
            Error::invalid_input(format!("input '{}' is not a directory", input))
        }
        _ => Error::io(format!("cannot open input '{}'", input), error),
    })
}
