//! `durin completions SHELL [DIR]`: completions of all programs, from the definitions of their options.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::{Command, ValueEnum as _};
use clap_complete::Shell;
use durin_format::Error;

use super::exit::Failure;
use super::{completion_values, escape, output};

/// The shells whose completions we know to work.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Prints the completions of all `commands`, or writes each to a file of its own in a directory.
pub(crate) fn run(arguments: &[OsString], commands: Vec<Command>) -> Result<(), Failure> {
    let shell = shell(arguments.first())?;
    let Some(dir) = arguments.get(1).map(Path::new) else {
        let texts: Vec<String> = commands
            .into_iter()
            .map(|command| text(shell, command))
            .collect();
        return output::print(&texts.concat());
    };
    let failed = |source| {
        let what = format!("cannot write completions to '{}'", escape::path(dir));
        Error::io(what, source)
    };
    fs::create_dir_all(dir).map_err(failed)?;
    for command in commands {
        let name = match (shell, command.get_name()) {
            (Shell::Zsh, name) => format!("_{name}"),
            (shell, name) => format!("{name}.{shell}"),
        };
        fs::write(dir.join(name), text(shell, command)).map_err(failed)?;
    }
    Ok(())
}

fn shell(argument: Option<&OsString>) -> Result<Shell, Failure> {
    let named = argument.and_then(|name| name.to_str());
    named
        .and_then(|name| Shell::from_str(name, true).ok())
        .filter(|shell| SHELLS.contains(shell))
        .ok_or_else(|| {
            Failure::Usage(
                "durin completions SHELL [DIR]: the shell is bash, zsh or fish".to_owned(),
            )
        })
}

fn text(shell: Shell, command: Command) -> String {
    let mut command = completion_values::offered(command);
    if shell == Shell::Zsh {
        command = without_colons(command);
    }
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Escapes the colons in names of values: what stands behind them would be taken for what to offer.
fn without_colons(command: Command) -> Command {
    let escaped = |arg: clap::Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        if !names.iter().any(|name| name.contains(':')) {
            return arg;
        }
        let names: Vec<String> = names.iter().map(|name| name.replace(':', "\\:")).collect();
        arg.value_names(names)
    };
    command.mut_args(escaped).mut_subcommands(without_colons)
}
