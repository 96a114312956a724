//! What a user can choose about a mount: how the tree looks, and how the kernel treats it.
//!
//! The driver's own `-o` options (`cachesize=`, `offset=` ...) are parsed by the program;
//! [`MountOptions::set`] takes all those that the kernel, libfuse's programs or `fusermount3` know.

use durin_format::{Error, Result};

use crate::access_log::AccessLog;

/// How the tree in the image is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsOptions {
    /// Clears all write bits of modes.
    pub readonly: bool,
    /// Shows every entry as owned by this user.
    pub uid: Option<u32>,
    /// Shows every entry as owned by this group.
    pub gid: Option<u32>,
    /// `st_blksize`, bytes.
    pub blocksize: u32,
    /// Lets the kernel keep the contents of files in its page cache; otherwise each read comes to the driver.
    pub cache_files: bool,
    /// The same for files with holes.
    pub cache_sparse: bool,
    /// Finds names that are not there exactly without regard to case.
    pub case_insensitive: bool,
    /// Lists the files that are used.
    pub access_log: Option<AccessLog>,
}

impl Default for FsOptions {
    fn default() -> Self {
        Self {
            readonly: false,
            uid: None,
            gid: None,
            // The reference's value: programs that copy in units of `st_blksize` use large reads then.
            blocksize: 512 * 1024,
            cache_files: true,
            cache_sparse: true,
            case_insensitive: false,
            access_log: None,
        }
    }
}

/// How the kernel mounts the tree.
// Each bool is one flag of mount(8) or mount.fuse(8), under its name there.
#[expect(
    clippy::struct_excessive_bools,
    reason = "one flag of mount(8) or mount.fuse(8) each, under its name there"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// The source that `mount` shows; the program sets the absolute path of the image. Not escaped.
    pub fsname: String,
    /// The type that `mount` shows behind `fuse.`.
    pub subtype: String,
    /// Lets all users use the mount, not only the one who mounted.
    pub allow_other: bool,
    /// Lets root use the mount, too.
    pub allow_root: bool,
    /// Has `fusermount3` unmount when this process dies.
    pub auto_unmount: bool,
    /// Has the kernel check modes and owners.
    pub default_permissions: bool,
    /// Mounts read-only. With `rw` the tree is just as unchangeable, but programs find out later:
    /// each opening comes to the driver, which refuses those for writing.
    pub ro: bool,
    /// Lets device nodes work.
    pub dev: bool,
    /// Lets setuid and setgid bits work.
    pub suid: bool,
    /// Lets programs run.
    pub exec: bool,
    /// Lets symlinks be followed.
    pub symfollow: bool,
    /// Server threads; 0 chooses.
    pub threads: usize,
    /// Processors to count on where a number of threads is to be chosen; 0 asks the system.
    pub processors: usize,
    /// Gives each server thread its own descriptor of the device.
    pub clone_fd: bool,
    /// Whether requests may come through io_uring, where the kernel offers that.
    pub io_uring: bool,
    /// Whether a client that sends one request after the other is answered on the processor it is on.
    pub beside_clients: bool,
    /// The largest read request, bytes; `None` leaves it to the kernel (1 MiB).
    pub max_read: Option<u32>,
    /// Further options for the kernel's FUSE, taken as they are.
    pub extra: Vec<String>,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            fsname: "dwarfs".to_owned(),
            subtype: "dwarfs".to_owned(),
            allow_other: false,
            allow_root: false,
            auto_unmount: false,
            default_permissions: false,
            ro: true,
            dev: false,
            suid: false,
            exec: true,
            symfollow: true,
            threads: 0,
            processors: 0,
            clone_fd: true,
            io_uring: true,
            beside_clients: true,
            max_read: None,
            extra: Vec::new(),
        }
    }
}

/// Server threads are not worth their buffers beyond this; a user's typing error must not start a million.
const THREADS_MAX: usize = 256;

/// Options of mount(8), fstab(5) and older libfuse programs that ask for nothing here.
const WITHOUT_EFFECT: &[&str] = &[
    "_netdev",
    "async",
    "atime",
    "auto",
    "auto_cache",
    "big_writes",
    "defaults",
    "diratime",
    "dirsync",
    "hard_remove",
    "iversion",
    "kernel_cache",
    "large_read",
    "lazytime",
    "loud",
    "mand",
    "noatime",
    "noauto",
    "nodiratime",
    "nofail",
    "noforget",
    "noiversion",
    "nolazytime",
    "nomand",
    "nonempty",
    "norelatime",
    "nostrictatime",
    "nouser",
    "nousers",
    "readdir_ino",
    "relatime",
    "silent",
    "splice_move",
    "splice_read",
    "splice_write",
    "no_splice_move",
    "no_splice_read",
    "no_splice_write",
    "strictatime",
    "sync",
    "sync_read",
    "use_ino",
    "user",
    "users",
];

/// The same for options with a value.
const WITHOUT_EFFECT_KEYS: &[&str] = &[
    "ac_attr_timeout",
    "attr_timeout",
    "comment",
    "congestion_threshold",
    "entry_timeout",
    "max_background",
    "max_idle_threads",
    "max_readahead",
    "max_write",
    "negative_timeout",
    "user",
];

/// Options that the kernel's FUSE takes itself.
const FOR_THE_KERNEL: &[&str] = &["context", "fscontext", "defcontext", "rootcontext"];

impl MountOptions {
    /// Takes one element of a `-o` list.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown option or a value that cannot be.
    pub fn set(&mut self, option: &str) -> Result<()> {
        match option.split_once('=') {
            Some((key, value)) => self.set_value(option, key, value),
            None => self.set_flag(option),
        }
    }

    fn set_flag(&mut self, option: &str) -> Result<()> {
        match option {
            "allow_other" => self.allow_other = true,
            "allow_root" => self.allow_root = true,
            "auto_unmount" => self.auto_unmount = true,
            "default_permissions" => self.default_permissions = true,
            "ro" => self.ro = true,
            "rw" => self.ro = false,
            "dev" => self.dev = true,
            "nodev" => self.dev = false,
            "suid" => self.suid = true,
            "nosuid" => self.suid = false,
            "exec" => self.exec = true,
            "noexec" => self.exec = false,
            "symfollow" => self.symfollow = true,
            "nosymfollow" => self.symfollow = false,
            "clone_fd" => self.clone_fd = true,
            "noclone_fd" => self.clone_fd = false,
            "io_uring" => self.io_uring = true,
            "noio_uring" => self.io_uring = false,
            "beside_clients" => self.beside_clients = true,
            "nobeside_clients" => self.beside_clients = false,
            _ if WITHOUT_EFFECT.contains(&option) || is_for_other_programs(option) => {}
            _ => return Err(unknown(option)),
        }
        Ok(())
    }

    fn set_value(&mut self, option: &str, key: &str, value: &str) -> Result<()> {
        match key {
            "fsname" => self.fsname = name(option, value)?,
            "subtype" => self.subtype = name(option, value)?,
            "max_threads" => {
                let count = number(option, value, 1, THREADS_MAX as u64)?;
                self.threads = usize::try_from(count).unwrap_or(THREADS_MAX);
            }
            // The kernel takes no less than a page.
            "max_read" => {
                let len = number(option, value, 4096, u64::from(u32::MAX))?;
                self.max_read = Some(u32::try_from(len).unwrap_or(u32::MAX));
            }
            "clone_fd" => self.clone_fd = number(option, value, 0, 1)? == 1,
            "io_uring" => self.io_uring = number(option, value, 0, 1)? == 1,
            "beside_clients" => self.beside_clients = number(option, value, 0, 1)? == 1,
            _ if FOR_THE_KERNEL.contains(&key) => self.extra.push(option.to_owned()),
            _ if WITHOUT_EFFECT_KEYS.contains(&key) || is_for_other_programs(key) => {}
            _ => return Err(unknown(option)),
        }
        Ok(())
    }
}

/// Comments of fstab(5), which the kernel never sees.
fn is_for_other_programs(key: &str) -> bool {
    key.starts_with("x-") || key.starts_with("X-")
}

fn unknown(option: &str) -> Error {
    let or = if option.contains('=') {
        "takes no value"
    } else {
        "needs a value"
    };
    Error::invalid_input(format!("unknown mount option '{option}', or one that {or}"))
}

/// The kernel takes no empty name.
fn name(option: &str, value: &str) -> Result<String> {
    if value.is_empty() {
        return Err(Error::invalid_input(format!(
            "mount option '{option}': a name is needed"
        )));
    }
    Ok(value.to_owned())
}

fn number(option: &str, value: &str, min: u64, max: u64) -> Result<u64> {
    value
        .parse()
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| {
            Error::invalid_input(format!(
                "mount option '{option}' needs a number from {min} to {max}"
            ))
        })
}

/// Splits the argument of `-o` at its commas; a backslash takes the special meaning from what follows it.
///
/// ```
/// let options = durin_fuse::options::split(r"ro,fsname=/a\,b.dwarfs,allow_other");
/// assert_eq!(options, ["ro", "fsname=/a,b.dwarfs", "allow_other"]);
/// ```
#[must_use]
pub fn split(list: &str) -> Vec<String> {
    let mut options = vec![String::new()];
    let mut chars = list.chars();
    while let Some(c) = chars.next() {
        match c {
            ',' => options.push(String::new()),
            _ => {
                let literal = if c == '\\' { chars.next() } else { Some(c) };
                if let (Some(literal), Some(last)) = (literal, options.last_mut()) {
                    last.push(literal);
                }
            }
        }
    }
    options.retain(|option| !option.is_empty());
    options
}

/// Puts a backslash before all that [`split`] would take as special.
#[must_use]
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, ',' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use durin_format::ErrorKind;

    fn parse(list: &str) -> Result<MountOptions> {
        let mut options = MountOptions::default();
        for option in split(list) {
            options.set(&option)?;
        }
        Ok(options)
    }

    #[test]
    fn takes_the_flags_of_mount_and_fuse() {
        let options =
            parse("allow_other,default_permissions,rw,dev,suid,noexec,max_threads=3,clone_fd")
                .unwrap();
        assert!(options.allow_other && options.default_permissions && options.dev && options.suid);
        assert!(!options.ro && !options.exec && options.clone_fd);
        assert_eq!(options.threads, 3);
        assert_eq!(parse("rw,ro").unwrap(), MountOptions::default());
    }

    #[test]
    fn takes_what_stands_in_fstab_lines() {
        assert_eq!(
            parse("noauto,user,_netdev,x-systemd.automount,relatime,x-a=b,comment=c").unwrap(),
            MountOptions::default()
        );
        assert_eq!(
            parse("X-mount.mkdir,X-a=b,silent,loud,mand,nomand,iversion,noiversion,symfollow")
                .unwrap(),
            MountOptions::default()
        );
    }

    #[test]
    fn names_the_option_it_does_not_know() {
        for (list, name) in [
            ("ro,frobnicate", "'frobnicate'"),
            (
                "max_threads=0",
                "'max_threads=0' needs a number from 1 to 256",
            ),
            ("max_threads=", "'max_threads='"),
            ("colour=red", "'colour=red'"),
        ] {
            let error = parse(list).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn escaped_commas_survive() {
        let name = r"/images/a,b\c.dwarfs";
        assert_eq!(
            split(&format!("ro,fsname={}", escape(name))),
            ["ro".to_owned(), format!("fsname={name}")]
        );
    }
}
