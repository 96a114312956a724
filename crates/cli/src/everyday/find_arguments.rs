//! The conditions of `durin find`, and the spelling of find(1).

use std::ffi::OsString;

use clap::Args;
use durin_glob::{Case, Glob};
use durin_reader::{FileKind, WalkEntry};

use crate::common::{owner, size, timepoint};

/// What an entry must be like; all conditions must hold.
#[derive(Args, Debug)]
#[command(next_help_heading = "Conditions")]
pub(crate) struct Conditions {
    /// The name matches a pattern
    #[arg(long, value_name = "GLOB", value_parser = sensitive)]
    name: Vec<Glob>,

    /// As --name, upper and lower case alike
    #[arg(long, value_name = "GLOB", value_parser = insensitive)]
    iname: Vec<Glob>,

    /// The path from the root matches a pattern, in which '**' stands for any directories
    #[arg(long, value_name = "GLOB", value_parser = sensitive)]
    path: Vec<Glob>,

    /// Files (f), directories (d), links (l), devices (b, c), fifos (p), sockets (s); or several, as in 'f,l'
    #[arg(long = "type", value_name = "TYPE", value_parser = kinds)]
    kinds: Option<Kinds>,

    /// So many bytes; '+10m' is more, '-4k' less
    #[arg(long, value_name = "[+-]SIZE", allow_hyphen_values = true, value_parser = size_range)]
    size: Option<SizeRange>,

    /// Modified after a point in time: seconds since 1970 or 'YYYY-MM-DD hh:mm:ss' UTC
    #[arg(long, value_name = "TIME", value_parser = timepoint::parse)]
    newer_than: Option<i64>,

    /// Modified before a point in time
    #[arg(long, value_name = "TIME", value_parser = timepoint::parse)]
    older_than: Option<i64>,

    /// Owned by a user, by name or number
    #[arg(long, value_name = "USER", value_parser = owner::user)]
    user: Option<u32>,

    /// Owned by a group
    #[arg(long, value_name = "GROUP", value_parser = owner::group)]
    group: Option<u32>,

    /// Permission bits: exactly these, with '-' all of these, with '/' any of these
    #[arg(long, value_name = "[-/]MODE", allow_hyphen_values = true, value_parser = permissions)]
    perm: Option<Permissions>,

    /// So many links; '+1' is more than one
    #[arg(long, value_name = "[+-]N", allow_hyphen_values = true, value_parser = size_range)]
    links: Option<SizeRange>,

    /// A file of no bytes, or a directory without entries
    #[arg(long)]
    empty: bool,
}

impl Conditions {
    /// Whether an entry is wanted.
    pub(crate) fn hold(&self, entry: &WalkEntry) -> bool {
        let attr = &entry.attr;
        let name = entry
            .path
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or_default();
        self.name
            .iter()
            .chain(&self.iname)
            .all(|glob| glob.is_match(name))
            && self.path.iter().all(|glob| glob.is_match(&entry.path))
            && self
                .kinds
                .as_ref()
                .is_none_or(|kinds| kinds.0.contains(&attr.kind))
            && self
                .size
                .is_none_or(|range| attr.kind == FileKind::Regular && range.has(attr.size))
            && self.links.is_none_or(|range| range.has(attr.nlink.into()))
            && self
                .newer_than
                .is_none_or(|time| (attr.mtime.sec, attr.mtime.nsec) > (time, 0))
            && self.older_than.is_none_or(|time| attr.mtime.sec < time)
            && self.user.is_none_or(|user| attr.uid == user)
            && self.group.is_none_or(|group| attr.gid == group)
            && self.perm.is_none_or(|wanted| wanted.fits(attr.mode))
            && (!self.empty || is_empty(entry))
    }
}

fn is_empty(entry: &WalkEntry) -> bool {
    matches!(entry.attr.kind, FileKind::Regular | FileKind::Directory) && entry.attr.size == 0
}

#[derive(Clone, Debug)]
struct Kinds(Vec<FileKind>);

fn kinds(text: &str) -> Result<Kinds, String> {
    let kind = |letter| {
        Ok(match letter {
            "f" => FileKind::Regular,
            "d" => FileKind::Directory,
            "l" => FileKind::Symlink,
            "b" => FileKind::BlockDevice,
            "c" => FileKind::CharDevice,
            "p" => FileKind::Fifo,
            "s" => FileKind::Socket,
            other => return Err(format!("'{other}' is not one of f, d, l, b, c, p, s")),
        })
    };
    text.split(',')
        .map(kind)
        .collect::<Result<_, _>>()
        .map(Kinds)
}

/// `[+-]N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SizeRange {
    Exactly(u64),
    More(u64),
    Less(u64),
}

impl SizeRange {
    fn has(self, value: u64) -> bool {
        match self {
            Self::Exactly(size) => value == size,
            Self::More(size) => value > size,
            Self::Less(size) => value < size,
        }
    }
}

fn size_range(text: &str) -> Result<SizeRange, String> {
    // find(1) writes bytes with a `c`.
    let number = |text: &str| size::parse(text.strip_suffix('c').unwrap_or(text));
    match text.split_at_checked(1) {
        Some(("+", size)) => number(size).map(SizeRange::More),
        Some(("-", size)) => number(size).map(SizeRange::Less),
        _ => number(text).map(SizeRange::Exactly),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permissions {
    Exactly(u32),
    All(u32),
    Any(u32),
}

impl Permissions {
    fn fits(self, mode: u32) -> bool {
        let mode = mode & 0o7777;
        match self {
            Self::Exactly(bits) => mode == bits,
            Self::All(bits) => mode & bits == bits,
            Self::Any(bits) => bits == 0 || mode & bits != 0,
        }
    }
}

fn permissions(text: &str) -> Result<Permissions, String> {
    let bits = |digits: &str| {
        u32::from_str_radix(digits, 8)
            .ok()
            .filter(|bits| *bits <= 0o7777)
            .ok_or_else(|| format!("'{digits}' is not an octal mode up to 7777"))
    };
    match text.split_at_checked(1) {
        Some(("-", digits)) => bits(digits).map(Permissions::All),
        Some(("/", digits)) => bits(digits).map(Permissions::Any),
        _ => bits(text).map(Permissions::Exactly),
    }
}

fn sensitive(pattern: &str) -> Result<Glob, String> {
    Glob::parse(pattern, Case::Sensitive).map_err(|error| error.to_string())
}

fn insensitive(pattern: &str) -> Result<Glob, String> {
    Glob::parse(pattern, Case::Insensitive).map_err(|error| error.to_string())
}

/// Options of find(1) that exist here with two dashes.
const LONG: [&str; 14] = [
    "-name",
    "-iname",
    "-path",
    "-type",
    "-size",
    "-user",
    "-group",
    "-perm",
    "-links",
    "-empty",
    "-maxdepth",
    "-mindepth",
    "-print0",
    "-ls",
];

/// Makes `-name` of `--name`, so that what fingers have learnt works.
pub(crate) fn from_find(arguments: &[OsString]) -> Vec<OsString> {
    let translate = |argument: &OsString| match argument.to_str() {
        Some("-maxdepth") => OsString::from("--max-depth"),
        Some("-mindepth") => OsString::from("--min-depth"),
        Some("-ls") => OsString::from("--long"),
        Some(text) if LONG.contains(&text) => OsString::from(format!("-{text}")),
        _ => argument.clone(),
    };
    arguments.iter().map(translate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_modes() {
        assert_eq!(size_range("10"), Ok(SizeRange::Exactly(10)));
        assert_eq!(size_range("+1k"), Ok(SizeRange::More(1024)));
        assert_eq!(size_range("-5c"), Ok(SizeRange::Less(5)));
        assert!(size_range("+").is_err() && size_range("").is_err());
        assert_eq!(permissions("644"), Ok(Permissions::Exactly(0o644)));
        assert!(Permissions::All(0o111).fits(0o100_755));
        assert!(!Permissions::All(0o111).fits(0o100_754));
        assert!(Permissions::Any(0o111).fits(0o100_654));
        assert!(permissions("-8").is_err() && permissions("10000").is_err());
    }

    #[test]
    fn spelling_of_find() {
        let found = from_find(&["x", "-name", "*.c", "--type", "-maxdepth"].map(OsString::from));
        assert_eq!(
            found,
            ["x", "--name", "*.c", "--type", "--max-depth"].map(OsString::from)
        );
    }
}
