//! What archive is asked for: format, compression and their options, in libarchive's words.

use std::path::Path;

use durin_codec::StreamFormat;
use durin_extract::{ArchiveFormat, ArchiveOptions, Filter};
use durin_format::digest::Digest;

use super::options::Options;
use crate::common::exit::Failure;
use crate::common::output;

/// The names of formats; the first of each is the one that is shown.
const FORMATS: [(ArchiveFormat, &[&str]); 10] = [
    (ArchiveFormat::Pax, &["pax", "posix"]),
    (ArchiveFormat::PaxRestricted, &["paxr", "rpax"]),
    (ArchiveFormat::Gnutar, &["gnutar"]),
    (ArchiveFormat::Ustar, &["ustar"]),
    (ArchiveFormat::V7, &["v7", "v7tar", "oldtar"]),
    (ArchiveFormat::CpioOdc, &["cpio", "odc"]),
    (ArchiveFormat::CpioNewc, &["newc"]),
    (ArchiveFormat::Zip, &["zip"]),
    (ArchiveFormat::Mtree, &["mtree"]),
    (ArchiveFormat::Raw, &["raw"]),
];

/// Formats of libarchive that are not here: what people would not miss, or what another program does better.
const ABSENT_FORMATS: [&str; 15] = [
    "7zip",
    "ar",
    "arbsd",
    "argnu",
    "arsvr4",
    "bin",
    "bsdtar",
    "cd9660",
    "iso9660",
    "mtree-classic",
    "pwb",
    "shar",
    "shardump",
    "warc",
    "xar",
];

/// The names of filters.
const FILTERS: [(StreamFormat, &[&str]); 5] = [
    (StreamFormat::Gzip, &["gzip", "gz"]),
    (StreamFormat::Bzip2, &["bzip2", "bz2"]),
    (StreamFormat::Xz, &["xz"]),
    (StreamFormat::Zstd, &["zstd", "zst"]),
    (StreamFormat::Lz4, &["lz4"]),
];

/// What the ends of file names say about format and filter; longer ones first.
const ENDINGS: [(&str, ArchiveFormat, Option<StreamFormat>); 21] = {
    use ArchiveFormat::{CpioNewc, Mtree, Pax, Zip};
    use StreamFormat::{Bzip2, Gzip, Lz4, Xz, Zstd};
    [
        (".tar", Pax, None),
        (".tar.gz", Pax, Some(Gzip)),
        (".tgz", Pax, Some(Gzip)),
        (".tar.bz2", Pax, Some(Bzip2)),
        (".tbz", Pax, Some(Bzip2)),
        (".tbz2", Pax, Some(Bzip2)),
        (".tar.xz", Pax, Some(Xz)),
        (".txz", Pax, Some(Xz)),
        (".tar.zst", Pax, Some(Zstd)),
        (".tzst", Pax, Some(Zstd)),
        (".tar.lz4", Pax, Some(Lz4)),
        (".tlz4", Pax, Some(Lz4)),
        (".cpio", CpioNewc, None),
        (".cpio.gz", CpioNewc, Some(Gzip)),
        (".cpio.bz2", CpioNewc, Some(Bzip2)),
        (".cpio.xz", CpioNewc, Some(Xz)),
        (".cpio.zst", CpioNewc, Some(Zstd)),
        (".zip", Zip, None),
        (".mtree", Mtree, None),
        (".mtree.gz", Mtree, Some(Gzip)),
        (".mtree.zst", Mtree, Some(Zstd)),
    ]
};

/// The names of formats that are shown.
pub(crate) fn format_names() -> Vec<&'static str> {
    let firsts = FORMATS.iter().filter_map(|(_, names)| names.first());
    firsts.copied().collect()
}

/// The names of filters that are shown.
pub(crate) fn filter_names() -> Vec<&'static str> {
    let firsts = FILTERS.iter().filter_map(|(_, names)| names.first());
    firsts.copied().collect()
}

/// The archive that is asked for; `None` for a directory.
pub(super) fn archive(options: &Options) -> Result<Option<ArchiveOptions>, Failure> {
    let asked = &options.archives;
    let Some(name) = &asked.format else {
        for (option, is_given) in [
            ("--format-filters", asked.format_filters.is_some()),
            ("--format-options", asked.format_options.is_some()),
        ] {
            if is_given {
                let text = format!("{option} is about archives and needs --format");
                return Err(Failure::Usage(text));
            }
        }
        return Ok(None);
    };
    let mut archive = if name == "auto" {
        automatic(options)?
    } else {
        ArchiveOptions::new(format(name)?)
    };
    if let Some(names) = &asked.format_filters {
        for name in names
            .split(',')
            .filter(|name| !name.is_empty() && *name != "none")
        {
            archive.filters.push(plain(filter(name)?));
        }
    }
    for option in asked.format_options.iter().flat_map(|all| all.split(',')) {
        set(&mut archive, option)?;
    }
    Ok(Some(archive))
}

fn plain(format: StreamFormat) -> Filter {
    Filter {
        format,
        level: None,
        threads: 0,
    }
}

/// The archive that the name of the output says.
fn automatic(options: &Options) -> Result<ArchiveOptions, Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    if options.archives.format_filters.is_some() {
        return usage(
            "--format=auto takes the filters from the name of the output, too; name a format",
        );
    }
    let output: Option<&Path> = options.basic.output.as_deref();
    let Some(output) = output.filter(|output| !output::is_stdout(output)) else {
        return usage("--format=auto needs --output with the name of a file");
    };
    let name = output.to_string_lossy().to_ascii_lowercase();
    match ENDINGS.iter().find(|(ending, ..)| name.ends_with(ending)) {
        Some((_, format, filter)) => {
            let mut archive = ArchiveOptions::new(*format);
            archive.filters = filter.map(plain).into_iter().collect();
            Ok(archive)
        }
        None => Err(Failure::Usage(format!(
            "--format=auto knows no format for '{}'; there are {}",
            crate::common::escape::path(output),
            ENDINGS.map(|(ending, ..)| ending).join(" ")
        ))),
    }
}

fn format(name: &str) -> Result<ArchiveFormat, Failure> {
    if let Some((format, _)) = FORMATS.iter().find(|(_, names)| names.contains(&name)) {
        return Ok(*format);
    }
    let (what, hint) = if ABSENT_FORMATS.contains(&name) {
        let hint =
            format!("; bsdtar makes it of a tar: '-f pax | bsdtar -cf FILE --format {name} @-'");
        ("cannot be written by this release", hint)
    } else {
        ("is unknown", String::new())
    };
    let known: Vec<&str> = FORMATS
        .iter()
        .filter_map(|(_, names)| names.first().copied())
        .collect();
    Err(Failure::Usage(format!(
        "the format '{name}' {what}; there are {}, and auto{hint}",
        known.join(", ")
    )))
}

fn filter(name: &str) -> Result<StreamFormat, Failure> {
    let found = FILTERS.iter().find(|(_, names)| names.contains(&name));
    match found {
        Some((format, _)) => Ok(*format),
        None => Err(Failure::Usage(format!(
            "the filter '{name}' is unknown, or cannot be written by this release; there are none, {}",
            FILTERS
                .iter()
                .filter_map(|(_, names)| names.first().copied())
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

/// Sets one option: `[MODULE:][!]KEY[=VALUE]`. Without a module it is for whatever has such an option.
fn set(archive: &mut ArchiveOptions, text: &str) -> Result<(), Failure> {
    let failed = |why: String| Failure::Usage(format!("--format-options: '{text}': {why}"));
    let (module, rest) = match text.split_once(':') {
        Some((module, rest)) => (Some(module), rest),
        None => (None, text),
    };
    let (is_on, rest) = match rest.strip_prefix('!') {
        Some(rest) => (false, rest),
        None => (true, rest),
    };
    let (key, value) = match rest.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (rest, None),
    };
    let mut is_known = false;
    for filter in &mut archive.filters {
        let names = FILTERS.iter().find(|(format, _)| *format == filter.format);
        if is_meant(module, names.map(|(_, names)| *names)) {
            is_known |= set_filter(filter, key, value, is_on).map_err(failed)?;
        }
    }
    let names = FORMATS.iter().find(|(format, _)| *format == archive.format);
    if is_meant(module, names.map(|(_, names)| *names)) {
        is_known |= set_format(archive, key, value, is_on).map_err(failed)?;
    }
    if is_known {
        return Ok(());
    }
    Err(failed(
        "there is no such option for what is written".to_owned(),
    ))
}

fn is_meant(module: Option<&str>, names: Option<&[&str]>) -> bool {
    module.is_none_or(|module| names.is_some_and(|names| names.contains(&module)))
}

/// Returns whether there is such an option.
fn set_filter(
    filter: &mut Filter,
    key: &str,
    value: Option<&str>,
    is_on: bool,
) -> Result<bool, String> {
    match key {
        "compression-level" => {
            filter.level = Some(number(value, filter.format.levels())?);
        }
        "threads" => {
            filter.threads = usize::try_from(number(value, 0..=1024)?).unwrap_or(0);
        }
        // No time is ever stored, so that equal trees give equal archives.
        "timestamp" if filter.format == StreamFormat::Gzip && !is_on => {}
        "timestamp" if filter.format == StreamFormat::Gzip => {
            return Err("no time is ever stored".to_owned());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Returns whether there is such an option.
fn set_format(
    archive: &mut ArchiveOptions,
    key: &str,
    value: Option<&str>,
    is_on: bool,
) -> Result<bool, String> {
    match (archive.format, key) {
        (ArchiveFormat::Zip, "compression-level") => {
            archive.zip_level = match number(value, 0..=9)? {
                0 => None,
                level => Some(level),
            };
        }
        (ArchiveFormat::Zip, "compression") => match value {
            Some("store") => archive.zip_level = None,
            Some("deflate") => archive.zip_level = archive.zip_level.or(Some(6)),
            _ => return Err("expected store or deflate".to_owned()),
        },
        (ArchiveFormat::Mtree, "md5" | "sha1" | "sha256" | "sha384" | "sha512" | "rmd160")
            if value.is_none() =>
        {
            let digest = Digest::parse(key).map_err(|error| error.to_string())?;
            archive.digests.retain(|known| *known != digest);
            if is_on {
                archive.digests.push(digest);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn number(value: Option<&str>, range: std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    value
        .and_then(|value| value.parse().ok())
        .filter(|value| range.contains(value))
        .ok_or_else(|| {
            format!(
                "expected a number from {} to {}",
                range.start(),
                range.end()
            )
        })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;
    use crate::common::program;
    use crate::dwarfsextract::Dwarfsextract;

    fn parse(arguments: &[&str]) -> Result<ArchiveOptions, String> {
        let all = ["dwarfsextract", "-i", "x"].iter().chain(arguments);
        let matches = program::command::<Dwarfsextract>().get_matches_from(all);
        let options = Options::from_arg_matches(&matches).unwrap();
        match archive(&options) {
            Ok(archive) => Ok(archive.unwrap()),
            Err(failure) => Err(failure.message().unwrap()),
        }
    }

    #[track_caller]
    fn fails(arguments: &[&str], part: &str) {
        let message = parse(arguments).unwrap_err();
        assert!(message.contains(part), "{message}");
    }

    #[test]
    fn names_of_files_choose() {
        let check = |name: &str, format, filter| {
            let archive = parse(&["-f", "auto", "-o", name]).unwrap();
            let found = archive.filters.first().map(|filter| filter.format);
            assert_eq!((archive.format, found), (format, filter), "{name}");
        };
        check("a.tar", ArchiveFormat::Pax, None);
        check("A.TAR.GZ", ArchiveFormat::Pax, Some(StreamFormat::Gzip));
        check("a.b/c.tzst", ArchiveFormat::Pax, Some(StreamFormat::Zstd));
        check("a.cpio.xz", ArchiveFormat::CpioNewc, Some(StreamFormat::Xz));
        check("a.zip", ArchiveFormat::Zip, None);
        fails(&["-f", "auto", "-o", "a.7z"], ".tar.zst");
        fails(&["-f", "auto", "-o", "-"], "--output");
        fails(&["-f", "auto"], "--output");
        fails(
            &["-f", "auto", "-o", "a.tar", "--format-filters=gzip"],
            "filters",
        );
    }

    #[test]
    fn filters_and_options() {
        let archive = parse(&[
            "-f=ustar",
            "--format-filters=gz,zstd",
            "--format-options=gzip:!timestamp,zstd:compression-level=19,threads=3",
        ])
        .unwrap();
        let found: Vec<_> = archive
            .filters
            .iter()
            .map(|filter| (filter.format, filter.level, filter.threads))
            .collect();
        let expected = [
            (StreamFormat::Gzip, None, 3),
            (StreamFormat::Zstd, Some(19), 3),
        ];
        assert_eq!(found, expected);
        let zip = parse(&["-f=zip", "--format-options=zip:compression=store"]).unwrap();
        assert_eq!(zip.zip_level, None);
        let mtree = parse(&["-f=mtree", "--format-options=!sha256,sha1"]).unwrap();
        assert_eq!(mtree.digests, [Digest::parse("sha1").unwrap()]);
    }

    #[test]
    fn what_is_not_known_is_named() {
        fails(&["-f", "7zip"], "cannot be written");
        fails(&["-f", "tarball"], "unknown");
        fails(&["-f", "pax", "--format-filters=lrzip"], "'lrzip'");
        fails(&["-f", "pax", "--format-options=gzip:x"], "'gzip:x'");
        let options = "--format-options=compression-level=0";
        fails(&["-f", "pax", options], "no such option");
        fails(&["-f", "pax", "--format-filters=zstd", options], "1 to 22");
    }
}
