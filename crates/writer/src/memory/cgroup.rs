//! The memory limits of the control groups that this process is in, of either version.

use std::fs;
use std::path::{Path, PathBuf};

/// A hierarchy of groups, and where this process is in it.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// Where the topmost group that can be seen is mounted.
    mount: PathBuf,
    /// This process's own group, at or below `mount`.
    group: PathBuf,
    /// The files that hold limits.
    files: &'static [&'static str],
}

/// Returns the lowest limit of the group of this process and of all groups above it.
pub(super) fn memory_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    places(&groups, &mounts)
        .iter()
        .filter_map(Place::lowest_limit)
        .min()
}

impl Place {
    fn lowest_limit(&self) -> Option<u64> {
        self.group
            .ancestors()
            .take_while(|group| group.starts_with(&self.mount))
            .flat_map(|group| self.files.iter().map(move |file| group.join(file)))
            .filter_map(|file| parse_limit(&fs::read_to_string(file).ok()?))
            .min()
    }
}

/// Parses a number of bytes; `max` and what version 1 says instead are no limit.
fn parse_limit(text: &str) -> Option<u64> {
    /// Version 1 gives the largest number of whole pages.
    const UNLIMITED_MIN: u64 = 1 << 62;
    let limit = text.trim().parse().ok()?;
    (limit < UNLIMITED_MIN).then_some(limit)
}

/// Finds the groups from the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn places(groups: &str, mounts: &str) -> Vec<Place> {
    let group_of = |is_ours: &dyn Fn(&str, &str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers) = (parts.next()?, parts.next()?);
            let path = parts.next()?;
            is_ours(number, controllers).then_some(path)
        })
    };
    let has_memory = |list: &str| list.split(',').any(|name| name == "memory");
    let unified = group_of(&|number, controllers| number == "0" && controllers.is_empty());
    let classic = group_of(&|_, controllers| has_memory(controllers));
    let place = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        let (group, files): (&str, &[&str]) = match kind {
            "cgroup2" => (unified?, &["memory.max", "memory.high"]),
            "cgroup" if has_memory(options) => (classic?, &["memory.limit_in_bytes"]),
            _ => return None,
        };
        let mut before = before.split(' ').skip(3);
        let (root, mount) = (before.next()?, PathBuf::from(before.next()?));
        // In a container, paths may count from a group above what is mounted.
        let below = Path::new(group).strip_prefix(root).unwrap_or(Path::new(""));
        let is_above = below.as_os_str().is_empty() || below.starts_with("..");
        Some(Place {
            group: if is_above {
                mount.clone()
            } else {
                mount.join(below)
            },
            mount,
            files,
        })
    };
    mounts.lines().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        24 1 0:20 / /proc rw - proc proc rw\n\
        30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    fn groups_of(places: &[Place]) -> Vec<&str> {
        let group = |place: &Place| place.group.to_str().map(str::to_owned);
        assert!(places.iter().all(|place| group(place).is_some()));
        places
            .iter()
            .filter_map(|place| place.group.to_str())
            .collect()
    }

    #[test]
    fn unified_hierarchy() {
        let places = places("0::/user.slice/job\n", MOUNTS);
        assert_eq!(groups_of(&places), ["/sys/fs/cgroup/user.slice/job"]);
        assert_eq!(places[0].files, ["memory.max", "memory.high"]);
    }

    #[test]
    fn classic_hierarchy_and_containers() {
        let groups = "5:cpu,cpuacct:/a\n4:memory:/docker/1\n0::/\n";
        let mount = |root| {
            format!(
                "36 32 0:31 {root} /sys/fs/cgroup/memory rw master:11 - cgroup cgroup rw,memory\n"
            )
        };
        assert_eq!(
            groups_of(&places(groups, &mount("/"))),
            ["/sys/fs/cgroup/memory/docker/1"]
        );
        for root in ["/docker/1", "/elsewhere"] {
            assert_eq!(
                groups_of(&places(groups, &mount(root))),
                ["/sys/fs/cgroup/memory"]
            );
        }
        assert_eq!(places("0::/", &mount("/")), []);
        assert_eq!(groups_of(&places("0::/../x", MOUNTS)), ["/sys/fs/cgroup"]);
    }

    #[test]
    fn lowest_limit_of_all_groups_above() {
        let dir = tempfile::tempdir().expect("a directory");
        let own = dir.path().join("outer/inner");
        fs::create_dir_all(&own).expect("made");
        let write = |group: &Path, file, text| fs::write(group.join(file), text).expect("written");
        let place = Place {
            mount: dir.path().to_owned(),
            group: own.clone(),
            files: &["memory.max", "memory.high"],
        };
        assert_eq!(place.lowest_limit(), None);
        write(&own, "memory.max", "max\n");
        write(&dir.path().join("outer"), "memory.high", "3000\n");
        assert_eq!(place.lowest_limit(), Some(3000));
        write(&own, "memory.high", "2000\n");
        assert_eq!(place.lowest_limit(), Some(2000));
        assert_eq!(parse_limit("9223372036854771712\n"), None);
    }
}
