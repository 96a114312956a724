//! A control group that kills what takes more memory than it may.
//!
//! Both versions of control groups do. What counts is what the kernel counts: memory of the process, its page tables, and
//! its share of the page cache, which it gives back under pressure. Swap is off, where the kernel can turn it off.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::run::Run;

/// How often removing a group is tried: a process that was just killed may still be in it.
const REMOVE_ATTEMPTS: u32 = 50;

/// A group of processes, removed when dropped.
#[derive(Debug)]
pub struct MemoryGroup {
    dir: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl MemoryGroup {
    /// Makes a group that may have `bytes`.
    ///
    /// # Errors
    /// Why this process may not, or this system cannot; many containers forbid it.
    pub fn new(bytes: u64) -> Result<Self, String> {
        let why = |error: io::Error| format!("no control group for memory can be made: {error}");
        let (parent, version) = find_parent().map_err(why)?;
        let dir = parent.join(format!("durin-{}-{bytes}", std::process::id()));
        fs::create_dir(&dir).map_err(why)?;
        let group = Self { dir, version };
        group.limit(bytes).map_err(why)?;
        Ok(group)
    }

    fn limit(&self, bytes: u64) -> io::Result<()> {
        let bytes = bytes.to_string();
        match self.version {
            Version::One => {
                fs::write(self.dir.join("memory.limit_in_bytes"), &bytes)?;
                // Not there where the kernel does not count swap.
                fs::write(self.dir.join("memory.memsw.limit_in_bytes"), &bytes).ok();
            }
            Version::Two => {
                fs::write(self.dir.join("memory.max"), &bytes)?;
                fs::write(self.dir.join("memory.swap.max"), "0").ok();
            }
        }
        Ok(())
    }

    /// Prepares to run a program as the only one of this group.
    #[must_use]
    pub fn run(&self, program: impl AsRef<OsStr>) -> Run {
        // The shell puts itself into the group before it becomes the program.
        Run::new("sh")
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.dir.join("cgroup.procs"))
            .arg(program)
    }

    /// Returns how many processes the kernel has killed for want of memory, where it counts them.
    #[must_use]
    pub fn kill_count(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        let count = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse().ok();
        text.lines().find_map(count).unwrap_or(0)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        for _ in 0..REMOVE_ATTEMPTS {
            match fs::remove_dir(&self.dir) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                // What cannot be removed costs nothing, and nobody is left to tell.
                _ => return,
            }
        }
    }
}

/// Finds a group in which groups with a limit on memory can be made.
fn find_parent() -> io::Result<(PathBuf, Version)> {
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mount = |kind: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let is_it = fields.get(2) == Some(&kind)
                && fields.get(3)?.split(',').any(|found| found == option);
            is_it.then(|| PathBuf::from(fields.get(1).unwrap_or(&"")))
        })
    };
    let own_path = |controller: &str| {
        own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            let path = parts.next()?.trim_start_matches('/');
            controllers
                .split(',')
                .any(|name| name == controller)
                .then_some(path)
        })
    };
    if let (Some(mount), Some(path)) = (mount("cgroup", "memory"), own_path("memory")) {
        let own = mount.join(path);
        return Ok((if own.is_dir() { own } else { mount }, Version::One));
    }
    let missing = || io::Error::other("no control groups are mounted");
    let mount = mount("cgroup2", "rw").ok_or_else(missing)?;
    let own = mount.join(own_path("").unwrap_or_default());
    // A group with processes may have none below it with limits; the nearest above that has some is asked.
    let mut above = own.ancestors().take_while(|dir| dir.starts_with(&mount));
    let parent = above.find(|dir| lends_memory(dir) || lend_memory(dir));
    let forbidden = || io::Error::other("no group lends the memory controller");
    Ok((parent.ok_or_else(forbidden)?.to_owned(), Version::Two))
}

fn lends_memory(dir: &Path) -> bool {
    let lent = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
    lent.split_whitespace().any(|name| name == "memory")
}

fn lend_memory(dir: &Path) -> bool {
    fs::write(dir.join("cgroup.subtree_control"), "+memory").is_ok() && lends_memory(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_what_takes_too_much() {
        let group = crate::require!(MemoryGroup::new(64 << 20));
        let script =
            |bytes: u64| format!("x=$(head -c {bytes} /dev/zero | tr '\\0' x); echo ${{#x}}");
        let little = group.run("sh").args(["-c", &script(1_000_000)]).succeed();
        assert_eq!(little.stdout, b"1000000\n");
        assert_eq!(group.kill_count(), 0);
        let much = group.run("sh").args(["-c", &script(200_000_000)]).output();
        assert!(much.code != Some(0), "{much}");
    }
}
