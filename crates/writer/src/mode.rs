//! Changes to permission bits, in the language of chmod(1).
//!
//! Beyond chmod(1): `D` and `F` among the letters before the sign restrict a change to directories or to everything
//! else, and the word `norm` stands for `ug-st,=Xr`. An octal mode always replaces all twelve bits, also those that
//! chmod(1) would keep on a directory. Symbolic links have no permissions of their own and stay as they are.

use durin_format::{Error, Result};

const USER: u32 = 0o4700;
const GROUP: u32 = 0o2070;
const OTHER: u32 = 0o1007;
/// The bits that can be changed.
pub const ALL: u32 = 0o7777;
const READ: u32 = 0o444;
const WRITE: u32 = 0o222;
const EXECUTE: u32 = 0o111;
const SET_IDS: u32 = 0o6000;
const STICKY: u32 = 0o1000;
/// The bits of the type.
pub(crate) const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;

/// One change to permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChmodRule {
    applies_to: AppliesTo,
    action: Action,
    /// Bits of the classes named before the sign; all bits if none was named.
    affected: u32,
    /// Bits that may be set: the complement of the umask if no class was named.
    settable: u32,
    source: Source,
    /// Set-id bits that the text names, which `=` would otherwise keep on a directory.
    mentioned: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AppliesTo {
    All,
    Directories,
    Others,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Add,
    Remove,
    Assign,
    /// An octal mode.
    Replace,
}

/// Where the bits come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Bits {
        bits: u32,
        /// `X`: execution for directories and for what somebody may execute already.
        execute_if_any: bool,
    },
    /// What the class with these bits has.
    Copy(u32),
}

impl ChmodRule {
    /// Parses a comma-separated list of changes, to be applied in turn.
    ///
    /// `umask` limits changes that name no class of users.
    ///
    /// # Errors
    /// `InvalidInput` that quotes the part that is not a change.
    pub fn parse(spec: &str, umask: u32) -> Result<Vec<Self>> {
        let spec = spec.split(',').map(|part| match part {
            "norm" => "ug-st,=Xr",
            other => other,
        });
        let mut rules = Vec::new();
        for part in spec.flat_map(|changes| changes.split(',')) {
            if part.starts_with(|c: char| c.is_ascii_digit()) {
                rules.push(parse_octal(part)?);
            } else {
                parse_symbolic(part, umask, &mut rules)
                    .ok_or_else(|| Error::invalid_input(format!("bad mode '{part}'")))?;
            }
        }
        Ok(rules)
    }
}

/// Applies `rules` in turn to a whole `st_mode`, whose file type stays.
#[must_use]
pub fn apply(rules: &[ChmodRule], mode: u32) -> u32 {
    if mode & TYPE == SYMLINK {
        return mode;
    }
    rules.iter().fold(mode, |mode, rule| rule.apply(mode))
}

fn parse_octal(text: &str) -> Result<ChmodRule> {
    let bits = u32::from_str_radix(text, 8)
        .ok()
        .filter(|bits| *bits <= ALL)
        .ok_or_else(|| Error::invalid_input(format!("bad mode '{text}': not octal up to 7777")))?;
    Ok(ChmodRule {
        applies_to: AppliesTo::All,
        action: Action::Replace,
        affected: ALL,
        settable: ALL,
        source: Source::Bits {
            bits,
            execute_if_any: false,
        },
        mentioned: ALL,
    })
}

fn parse_symbolic(part: &str, umask: u32, rules: &mut Vec<ChmodRule>) -> Option<()> {
    let signs_at = part.find(['+', '-', '='])?;
    let (who, mut actions) = part.split_at(signs_at);
    let mut named = 0;
    let mut applies_to = AppliesTo::All;
    for letter in who.chars() {
        match letter {
            'u' => named |= USER,
            'g' => named |= GROUP,
            'o' => named |= OTHER,
            'a' => named |= ALL,
            'D' if applies_to == AppliesTo::All => applies_to = AppliesTo::Directories,
            'F' if applies_to == AppliesTo::All => applies_to = AppliesTo::Others,
            _ => return None,
        }
    }
    while let Some(sign) = actions.chars().next() {
        let action = match sign {
            '+' => Action::Add,
            '-' => Action::Remove,
            _ => Action::Assign,
        };
        let rest = actions.get(1..)?;
        let end = rest.find(['+', '-', '=']).unwrap_or(rest.len());
        let (letters, next) = rest.split_at(end);
        let source = parse_source(letters)?;
        let mentioned = match source {
            Source::Bits { bits, .. } if named != 0 => bits & named,
            Source::Bits { bits, .. } => bits,
            Source::Copy(_) => 0,
        };
        rules.push(ChmodRule {
            applies_to,
            action,
            affected: if named == 0 { ALL } else { named },
            settable: if named == 0 { ALL & !umask } else { named },
            source,
            mentioned,
        });
        actions = next;
    }
    Some(())
}

fn parse_source(letters: &str) -> Option<Source> {
    match letters {
        "u" => return Some(Source::Copy(USER)),
        "g" => return Some(Source::Copy(GROUP)),
        "o" => return Some(Source::Copy(OTHER)),
        _ => {}
    }
    let mut bits = 0;
    let mut execute_if_any = false;
    for letter in letters.chars() {
        match letter {
            'r' => bits |= READ,
            'w' => bits |= WRITE,
            'x' => bits |= EXECUTE,
            'X' => execute_if_any = true,
            's' => bits |= SET_IDS,
            't' => bits |= STICKY,
            _ => return None,
        }
    }
    Some(Source::Bits {
        bits,
        execute_if_any,
    })
}

impl ChmodRule {
    fn apply(&self, mode: u32) -> u32 {
        let is_dir = mode & TYPE == DIRECTORY;
        let applies = match self.applies_to {
            AppliesTo::All => true,
            AppliesTo::Directories => is_dir,
            AppliesTo::Others => !is_dir,
        };
        if !applies {
            return mode;
        }
        // As chmod(1) does: a directory keeps its set-id bits unless they are named.
        let kept = if is_dir { SET_IDS & !self.mentioned } else { 0 };
        let bits = self.bits(mode, is_dir) & self.settable & !kept;
        match self.action {
            Action::Add => mode | bits,
            Action::Remove => mode & !bits,
            Action::Assign | Action::Replace => {
                mode & (TYPE | (ALL & !self.affected) | kept) | bits
            }
        }
    }

    fn bits(&self, mode: u32, is_dir: bool) -> u32 {
        match self.source {
            Source::Bits {
                bits,
                execute_if_any,
            } => {
                let execute = execute_if_any && (is_dir || mode & EXECUTE != 0);
                bits | if execute { EXECUTE } else { 0 }
            }
            Source::Copy(class) => [READ, WRITE, EXECUTE]
                .into_iter()
                .filter(|kind| mode & class & kind != 0)
                .sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::process::Command;

    use super::*;

    const FILE: u32 = 0o100_000;

    fn changed(spec: &str, umask: u32, mode: u32) -> u32 {
        apply(&ChmodRule::parse(spec, umask).expect(spec), mode)
    }

    /// Runs chmod(1) on real files and directories with every kind of mode and compares.
    #[test]
    fn does_what_chmod_does() {
        let specs = [
            "u+x",
            "g-w",
            "o=r",
            "a=rwx",
            "+x",
            "-w",
            "=r",
            "=rX",
            "+X",
            "a+X",
            "u=g",
            "g=u",
            "o=u",
            "u+s",
            "g+s",
            "ug-s",
            "+t",
            "o+t",
            "u+t",
            "a-t",
            "+s",
            "=s",
            "u=rwx,go=rx",
            "u+r-w=x",
            "go=",
            "=",
            "ug=o",
            "a=u",
            "+wx",
            "-rwx",
            "u=s",
            "g=s",
            "ug+st",
            "a=t",
            "o+s",
            "g=o,o=u,u+w",
            "ug-st,=Xr",
            "u=g-w",
        ];
        let modes = [
            0o000, 0o644, 0o755, 0o777, 0o700, 0o070, 0o007, 0o4755, 0o2755, 0o1777, 0o6711,
            0o7777, 0o421, 0o124, 0o111, 0o660,
        ];
        let dir = tempfile::tempdir().expect("a directory");
        for umask in [0o022, 0o077, 0o000, 0o027] {
            for spec in specs {
                check_against_chmod(dir.path(), spec, umask, &modes);
            }
        }
    }

    fn check_against_chmod(base: &std::path::Path, spec: &str, umask: u32, modes: &[u32]) {
        let mut paths = Vec::new();
        for mode in modes {
            for kind in [FILE, DIRECTORY] {
                let path = base.join(format!("{kind:o}-{mode:o}"));
                if !path.exists() {
                    match kind {
                        FILE => fs::write(&path, "").expect("a file"),
                        _ => fs::create_dir(&path).expect("a directory"),
                    }
                }
                fs::set_permissions(&path, Permissions::from_mode(*mode)).expect("permissions");
                let before = fs::metadata(&path).expect("metadata").mode();
                paths.push((path, before));
            }
        }
        // chmod exits with 1 where the umask kept a change from happening in full.
        Command::new("sh")
            .arg("-c")
            .arg("umask $1; spec=$2; shift 2; chmod -- \"$spec\" \"$@\" 2>/dev/null; exit 0")
            .arg("sh")
            .arg(format!("{umask:04o}"))
            .arg(spec)
            .args(paths.iter().map(|(path, _)| path))
            .status()
            .expect("chmod runs");
        for (path, before) in paths {
            let after = fs::metadata(&path).expect("metadata").mode();
            let ours = changed(spec, umask, before);
            assert_eq!(
                format!("{ours:o}"),
                format!("{after:o}"),
                "{spec} with umask {umask:03o} on {before:o}"
            );
        }
    }

    #[test]
    fn octal_replaces_everything() {
        assert_eq!(changed("644", 0o077, FILE | 0o7777), FILE | 0o644);
        assert_eq!(changed("755", 0, DIRECTORY | 0o2700), DIRECTORY | 0o755);
        assert_eq!(changed("04711", 0, FILE), FILE | 0o4711);
    }

    #[test]
    fn directories_or_others() {
        for (spec, file, dir) in [
            ("Da+x", 0o600, 0o711),
            ("Fa+x", 0o711, 0o600),
            ("D=rwx,F=r", 0o444, 0o755),
            ("uD-w,gF+w", 0o620, 0o400),
        ] {
            assert_eq!(changed(spec, 0o022, FILE | 0o600), FILE | file, "{spec}");
            assert_eq!(
                changed(spec, 0o022, DIRECTORY | 0o600),
                DIRECTORY | dir,
                "{spec}"
            );
        }
    }

    #[test]
    fn norm_makes_readable_by_all() {
        assert_eq!(changed("norm", 0o022, FILE | 0o6640), FILE | 0o444);
        assert_eq!(changed("norm", 0o022, FILE | 0o4710), FILE | 0o555);
        assert_eq!(changed("norm", 0o077, DIRECTORY | 0o700), DIRECTORY | 0o500);
    }

    #[test]
    fn symlinks_stay() {
        assert_eq!(changed("000", 0, SYMLINK | 0o777), SYMLINK | 0o777);
    }

    #[test]
    fn bad_modes_are_named() {
        for bad in [
            "", "u", "u+q", "8", "77777", "q+x", "u+x,", "DF+x", "u+gr", "0x1", "+x,norm2",
        ] {
            let error = ChmodRule::parse(bad, 0).expect_err(bad);
            assert!(error.to_string().starts_with("bad mode"), "{error}");
        }
    }
}
