//! durin: all programs in one executable.
//!
//! Which one runs is decided by the name it is called by, by `--tool=NAME`, or by the first argument.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Command;

use crate::common::exit::{self, Failure};
use crate::common::logger::{Level, Logger};
use crate::common::program::{self, Program};
use crate::common::{arguments, banner, completions, man, output};
use crate::everyday::{cat, diff, du, find, grep, info, ls, mounts, stat, tree, unmount, verify};
use crate::{dwarfs, dwarfsck, dwarfsextract, mkdwarfs};

/// One of the programs in this executable.
struct Tool {
    /// The name of the program.
    name: &'static str,
    /// The name it has as a subcommand.
    subcommand: &'static str,
    main: fn(&[OsString]) -> ExitCode,
    command: fn() -> Command,
    about: &'static str,
}

const TOOLS: [Tool; 4] = [
    Tool {
        name: mkdwarfs::Mkdwarfs::NAME,
        subcommand: "build",
        main: mkdwarfs::main_with,
        command: program::command::<mkdwarfs::Mkdwarfs>,
        about: "pack a directory tree into an image",
    },
    Tool {
        name: dwarfs::Dwarfs::NAME,
        subcommand: "mount",
        main: dwarfs::main_with,
        command: program::command::<dwarfs::Dwarfs>,
        about: "mount an image",
    },
    Tool {
        name: dwarfsck::Dwarfsck::NAME,
        subcommand: "check",
        main: dwarfsck::main_with,
        command: program::command::<dwarfsck::Dwarfsck>,
        about: "check an image, list its files, tell what is in it",
    },
    Tool {
        name: dwarfsextract::Dwarfsextract::NAME,
        subcommand: "extract",
        main: dwarfsextract::main_with,
        command: program::command::<dwarfsextract::Dwarfsextract>,
        about: "unpack an image into a directory",
    },
];

/// A command that only exists as a subcommand.
macro_rules! everyday {
    ($command:ty, $subcommand:literal, $about:literal) => {
        everyday!($command, $subcommand, $about, program::main::<$command>)
    };
    ($command:ty, $subcommand:literal, $about:literal, $main:expr) => {
        Tool {
            name: <$command>::NAME,
            subcommand: $subcommand,
            main: $main,
            command: program::command::<$command>,
            about: $about,
        }
    };
}

/// The everyday commands, in the order of the help.
const EVERYDAY: [Tool; 12] = [
    everyday!(info::InfoCommand, "info", "tell what an image is"),
    everyday!(ls::Ls, "ls", "list directories of an image"),
    everyday!(tree::Tree, "tree", "show directories of an image as a tree"),
    everyday!(
        find::Find,
        "find",
        "find entries by conditions",
        find::main_with
    ),
    everyday!(stat::Stat, "stat", "show all attributes, and where data is"),
    everyday!(
        du::Du,
        "du",
        "show what directories take, before and after packing"
    ),
    everyday!(cat::Cat, "cat", "write files to standard output"),
    everyday!(grep::Grep, "grep", "search files for lines"),
    everyday!(diff::Diff, "diff", "compare images and directories"),
    everyday!(
        verify::Verify,
        "verify",
        "verify an image, or repair its index"
    ),
    everyday!(mounts::Mounts, "mounts", "list mounted images"),
    everyday!(unmount::Unmount, "unmount", "unmount images"),
];

/// Runs the program that the arguments of the process ask for.
#[must_use]
pub fn main() -> ExitCode {
    let mut arguments = arguments::of_process();
    if let Some(tool) = arguments.first().and_then(|name| tool_of_executable(name)) {
        return (tool.main)(&arguments);
    }
    if arguments.is_empty() {
        arguments.push(OsString::from("durin"));
    }
    match choose(&arguments) {
        Choice::Tool(tool) => {
            // The tool sees its own name where `durin` and the subcommand were.
            let rest = arguments.split_off(2);
            (tool.main)(&[vec![OsString::from(tool.name)], rest].concat())
        }
        Choice::Text(text) => finish(output::print(&text)),
        Choice::ManualPages(dir) => finish(man::write_pages(Path::new(&dir), &all_commands())),
        Choice::Completions(rest) => finish(completions::run(&rest, all_commands_in_full())),
        Choice::Unknown(what) => finish(Err(Failure::Usage(format!(
            "'{}' is not a subcommand; 'durin --help' lists them",
            what.to_string_lossy()
        )))),
        Choice::NoDirectory => finish(Err(Failure::Usage(
            "'durin man' needs a directory to write to".to_owned(),
        ))),
    }
}

fn finish(result: Result<(), Failure>) -> ExitCode {
    exit::exit_code(match result {
        Ok(()) => exit::SUCCESS,
        Err(failure) => program::report(&Logger::new(Level::Error, None), &failure),
    })
}

enum Choice {
    Tool(&'static Tool),
    Text(String),
    /// `durin man DIR`, for those who build packages; not shown in the help.
    ManualPages(OsString),
    /// `durin completions SHELL [DIR]`, for them and for users.
    Completions(Vec<OsString>),
    NoDirectory,
    Unknown(OsString),
}

fn choose(arguments: &[OsString]) -> Choice {
    let Some(first) = arguments.get(1) else {
        return Choice::Text(help());
    };
    match first.to_str() {
        Some("-h" | "--help" | "help") => Choice::Text(help()),
        Some("-V" | "--version") => Choice::Text(format!("durin ({})\n", banner::release())),
        Some("man") => arguments
            .get(2)
            .map_or(Choice::NoDirectory, |dir| Choice::ManualPages(dir.clone())),
        Some("completions") => Choice::Completions(arguments.get(2..).unwrap_or_default().to_vec()),
        Some(name) => {
            let name = name.strip_prefix("--tool=").unwrap_or(name);
            let tool = TOOLS
                .iter()
                .chain(&EVERYDAY)
                .find(|tool| tool.name == name || tool.subcommand == name);
            tool.map_or_else(|| Choice::Unknown(first.clone()), Choice::Tool)
        }
        None => Choice::Unknown(first.clone()),
    }
}

/// The tool that an executable is named after, whatever directory and version its name carries: `/opt/mkdwarfs-0.1.0`,
/// `mount.dwarfs`.
fn tool_of_executable(executable: &OsStr) -> Option<&'static Tool> {
    let name = Path::new(executable).file_name()?.to_str()?;
    let name = without_version(name);
    let name = if name == "mount.dwarfs" {
        dwarfs::Dwarfs::NAME
    } else {
        name
    };
    TOOLS.iter().find(|tool| tool.name == name)
}

/// `name` without a suffix of `-` and something that starts with a digit.
fn without_version(name: &str) -> &str {
    let versioned = name
        .match_indices('-')
        .find(|(at, _)| name.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit));
    versioned.map_or(name, |(at, _)| &name[..at])
}

fn help() -> String {
    let mut text = format!(
        "durin ({})\n\nUsage: durin SUBCOMMAND [OPTIONS]\n\nSubcommands:\n",
        banner::release()
    );
    for tool in &TOOLS {
        text.push_str(&format!(
            "  {:<8} {} (as {})\n",
            tool.subcommand, tool.about, tool.name
        ));
    }
    text.push_str("\nLooking into images without mounting them:\n");
    for tool in &EVERYDAY {
        text.push_str(&format!("  {:<8} {}\n", tool.subcommand, tool.about));
    }
    text.push_str(
        "\nThe name of a program works as a subcommand, too, and so does a link to this executable with that name.\n\
         'durin SUBCOMMAND --help' shows the options; 'durin completions SHELL' writes completions for bash, zsh or fish.\n",
    );
    text
}

/// The definitions of all programs, this one included.
fn all_commands() -> Vec<Command> {
    let tools = TOOLS.iter().chain(&EVERYDAY);
    let mut commands: Vec<Command> = tools.map(|tool| (tool.command)()).collect();
    let mut durin = Command::new("durin")
        .version(format!("({})", banner::release()))
        .about("All DwarFS programs in one: build, mount, check and extract images");
    for tool in &TOOLS {
        durin = durin.subcommand(
            Command::new(tool.subcommand).about(format!("{} (as {})", tool.about, tool.name)),
        );
    }
    for tool in &EVERYDAY {
        durin = durin.subcommand(Command::new(tool.subcommand).about(tool.about));
    }
    commands.push(durin);
    commands
}

/// The same, with all options of the subcommands of `durin`.
fn all_commands_in_full() -> Vec<Command> {
    let mut commands: Vec<Command> = TOOLS.iter().map(|tool| (tool.command)()).collect();
    let mut durin = Command::new("durin");
    for tool in TOOLS.iter().chain(&EVERYDAY) {
        let called = format!("durin {}", tool.subcommand);
        durin = durin.subcommand((tool.command)().name(tool.subcommand).bin_name(called));
    }
    commands.push(durin);
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_executable(name: &str) -> Option<&'static str> {
        tool_of_executable(OsStr::new(name)).map(|tool| tool.name)
    }

    #[test]
    fn executables_are_known_by_name() {
        assert_eq!(by_executable("mkdwarfs"), Some("mkdwarfs"));
        assert_eq!(by_executable("/usr/bin/dwarfs-0.15.3"), Some("dwarfs"));
        assert_eq!(by_executable("./dwarfsck-1"), Some("dwarfsck"));
        assert_eq!(by_executable("/sbin/mount.dwarfs"), Some("dwarfs"));
        assert_eq!(by_executable("durin"), None);
        assert_eq!(by_executable("dwarfs-universal"), None);
        assert_eq!(by_executable(""), None);
    }

    #[test]
    fn first_argument_chooses() {
        let chosen = |argument: &str| match choose(&["durin".into(), argument.into()]) {
            Choice::Tool(tool) => tool.name,
            Choice::Text(_) => "text",
            _ => "unknown",
        };
        assert_eq!(chosen("build"), "mkdwarfs");
        assert_eq!(chosen("--tool=dwarfsextract"), "dwarfsextract");
        assert_eq!(chosen("check"), "dwarfsck");
        assert_eq!(chosen("dwarfs"), "dwarfs");
        assert_eq!(chosen("--help"), "text");
        assert_eq!(chosen("frobnicate"), "unknown");
    }
}
