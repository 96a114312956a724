//! What `--script` says: `[lua:|python:]FILE[:ARGS]`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use durin_format::{Error, Result};

/// Which script is run, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What it is written in.
    pub language: Language,
    /// The file.
    pub path: PathBuf,
    /// What `configure` is given.
    pub arguments: Vec<Argument>,
}

/// A language of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Lua 5.4.
    Lua,
    /// Python 3.
    Python,
}

/// `NAME=VALUE`, or a bare `NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// What stands before the first `=`.
    pub name: Vec<u8>,
    /// What stands behind it; nothing if there is none.
    pub value: Option<Vec<u8>>,
}

impl Spec {
    /// Parses the value of the option.
    ///
    /// A file whose name has colons is found: the first colon ends the name behind which no longer name of an existing
    /// file goes on. Arguments are separated by commas; a backslash takes the special meaning from what follows it.
    ///
    /// # Errors
    /// `InvalidInput` if there is no such file or its name does not tell the language.
    pub fn parse(text: &OsStr) -> Result<Self> {
        let bytes = text.as_bytes();
        let (given, rest) = match bytes {
            [b'l', b'u', b'a', b':', rest @ ..] => (Some(Language::Lua), rest),
            [b'p', b'y', b't', b'h', b'o', b'n', b':', rest @ ..] => (Some(Language::Python), rest),
            _ => (None, bytes),
        };
        let (path, arguments) = split(rest);
        let shown = path.display();
        if path.as_os_str().is_empty() {
            return Err(Error::invalid_input(format!(
                "script '{}': no file is named",
                text.display()
            )));
        }
        let language = match (given, path.extension().map(OsStr::as_bytes)) {
            (Some(language), _) => language,
            (None, Some(b"lua")) => Language::Lua,
            (None, Some(b"py")) => Language::Python,
            (None, _) => {
                return Err(Error::invalid_input(format!(
                    "script '{shown}': its name ends neither in .lua nor in .py; say lua:FILE or python:FILE"
                )));
            }
        };
        Ok(Self {
            language,
            arguments: parse_arguments(arguments)?,
            path,
        })
    }

    /// The path for messages.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The text of the script.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        std::fs::read(&self.path)
            .map_err(|error| Error::io(format!("cannot read script '{}'", self.name()), error))
    }

    /// Where the script looks for what it loads itself.
    pub(crate) fn dir(&self) -> &Path {
        match self.path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        }
    }
}

/// Divides at the first colon whose left side is an existing file, or at the first one if there is no such file.
fn split(bytes: &[u8]) -> (PathBuf, &[u8]) {
    let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
    let colons = (0..bytes.len()).filter(|at| bytes[*at] == b':');
    let mut first = None;
    for at in colons.chain([bytes.len()]) {
        let candidate = path(&bytes[..at]);
        if candidate.is_file() {
            return (candidate, bytes.get(at + 1..).unwrap_or_default());
        }
        first.get_or_insert(at);
    }
    let end = first.unwrap_or(bytes.len());
    (
        path(&bytes[..end]),
        bytes.get(end + 1..).unwrap_or_default(),
    )
}

fn parse_arguments(bytes: &[u8]) -> Result<Vec<Argument>> {
    let mut arguments: Vec<Argument> = Vec::new();
    if bytes.is_empty() {
        return Ok(arguments);
    }
    let mut at = 0;
    while at <= bytes.len() {
        let mut argument = Argument {
            name: Vec::new(),
            value: None,
        };
        while let Some(byte) = bytes.get(at).filter(|byte| **byte != b',') {
            at += 1;
            let byte = match (*byte, bytes.get(at)) {
                (b'\\', Some(escaped)) => {
                    at += 1;
                    *escaped
                }
                (b'=', _) if argument.value.is_none() => {
                    argument.value = Some(Vec::new());
                    continue;
                }
                (plain, _) => plain,
            };
            match &mut argument.value {
                Some(value) => value.push(byte),
                None => argument.name.push(byte),
            }
        }
        at += 1;
        let shown = String::from_utf8_lossy(&argument.name).into_owned();
        if argument.name.is_empty() {
            return Err(Error::invalid_input(
                "an argument of the script has no name",
            ));
        }
        if arguments.iter().any(|known| known.name == argument.name) {
            return Err(Error::invalid_input(format!(
                "argument '{shown}' of the script is given twice"
            )));
        }
        arguments.push(argument);
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows what a text is parsed to.
    fn parsed(text: &str) -> String {
        let spec = match Spec::parse(OsStr::new(text)) {
            Ok(spec) => spec,
            Err(error) => return error.to_string(),
        };
        let arguments: Vec<String> = spec
            .arguments
            .iter()
            .map(|argument| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                match &argument.value {
                    Some(value) => format!("{}=<{}>", text(&argument.name), text(value)),
                    None => text(&argument.name),
                }
            })
            .collect();
        format!("{:?} {} {arguments:?}", spec.language, spec.name())
    }

    #[test]
    fn files_and_arguments() {
        let check = |text: &str, expect: &str| assert_eq!(parsed(text), expect);
        check("no/a.lua", "Lua no/a.lua []");
        check("no/a.py:", "Python no/a.py []");
        check("python:no/a", "Python no/a []");
        check("lua:a.py:x", "Lua a.py [\"x\"]");
        check(
            "a.lua:x=1,fast,y=",
            "Lua a.lua [\"x=<1>\", \"fast\", \"y=<>\"]",
        );
        check(
            "a.lua:x=b:c=d,y=\\,\\\\",
            "Lua a.lua [\"x=<b:c=d>\", \"y=<,\\\\>\"]",
        );
        check("a.lua:\\=x=1", "Lua a.lua [\"=x=<1>\"]");
    }

    #[test]
    fn mistakes() {
        let check = |text: &str, part: &str| {
            let message = parsed(text);
            assert!(message.contains(part), "{text}: {message}");
        };
        check("", "no file is named");
        check("lua:", "no file is named");
        check("a.rb", "neither in .lua nor in .py");
        check("a.lua:x,,y", "has no name");
        check("a.lua:=1", "has no name");
        check("a.lua:x,x=2", "given twice");
    }

    #[test]
    fn colons_in_names_of_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a:b.lua");
        std::fs::write(&path, "").expect("written");
        let text = format!("{}:x=1", path.display());
        assert_eq!(parsed(&text), format!("Lua {} [\"x=<1>\"]", path.display()));
    }
}
