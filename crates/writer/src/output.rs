//! The file an image is written to, which appears under its name only when it is complete.
//!
//! The data goes to a file without a name in the same directory, or one with a temporary name where the file system has no
//! such files. Only [`AtomicFile::commit`] gives it the final name, after the data has reached the disk, so that neither
//! a crash nor a full disk leaves a partial image or destroys an existing file. What has no name is gone when the
//! process is, however that ends; what has a temporary name stays behind if the process is killed.
//! A file that is replaced hands on its owner, group and permissions. A link stays, and leads to the new file.
//! Pipes and devices have no such thing as a final name and are written directly.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use durin_format::{Error, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

/// Bytes of the final name that the temporary name repeats, so that any name has a temporary one within 255 bytes.
const NAME_PREFIX_LEN: usize = 128;
/// Links followed to a file that is not there yet; the kernel follows as many.
const LINKS_MAX: u32 = 40;
/// Temporary names tried before giving up; each can only be taken by a process that was killed and had our number.
const ATTEMPTS_MAX: u32 = 1000;

/// What becomes of a file that has the final name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// It stays, and the new file is refused.
    Refuse,
    /// It is replaced at the moment the new file is complete.
    Allow,
}

/// Where the data is until it is complete.
#[derive(Debug)]
enum Place {
    /// In a file without a name.
    Nameless,
    Temporary(PathBuf),
    /// Where it shall be: the target is no file, or has its name already.
    Target,
}

/// A file that is being written.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    place: Place,
    target: PathBuf,
    overwrite: Overwrite,
    /// Device and inode number of the file that is to be replaced.
    replaced: Option<(u64, u64)>,
}

impl AtomicFile {
    /// Starts a file that is to be called `target`.
    ///
    /// # Errors
    /// `InvalidInput` if `target` exists and is to be kept, or is a directory; `Io` if no file can be made beside it, or it is a
    /// link that cannot be followed.
    pub fn create(target: &Path, overwrite: Overwrite) -> Result<Self> {
        let target = resolve(target)?;
        let found = fs::metadata(&target);
        match &found {
            Ok(found) if found.is_dir() => {
                return Err(Error::invalid_input(format!(
                    "output '{}' is a directory",
                    target.display()
                )));
            }
            Ok(found) if found.file_type().is_char_device() || found.file_type().is_fifo() => {
                return Self::open_directly(target, overwrite);
            }
            Ok(found) if found.file_type().is_block_device() && overwrite == Overwrite::Allow => {
                return Self::open_directly(target, overwrite);
            }
            _ => {}
        }
        if overwrite == Overwrite::Refuse && fs::symlink_metadata(&target).is_ok() {
            return Err(already_exists(&target));
        }
        check_name(&target)?;
        let (file, place) = match create_nameless(&target) {
            Some(file) => (file, Place::Nameless),
            None => {
                let (file, temporary) = with_temporary_name(&target, |path| {
                    OpenOptions::new().write(true).create_new(true).open(path)
                })?;
                (file, Place::Temporary(temporary))
            }
        };
        let replaced = found.ok().filter(Metadata::is_file);
        if let Some(replaced) = &replaced {
            take_over_attributes(&file, replaced);
        }
        Ok(Self {
            file,
            place,
            target,
            overwrite,
            replaced: replaced.map(|replaced| (replaced.dev(), replaced.ino())),
        })
    }

    fn open_directly(target: PathBuf, overwrite: Overwrite) -> Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .open(&target)
            .map_err(|error| cannot("open", &target, error))?;
        Ok(Self {
            file,
            place: Place::Target,
            target,
            overwrite,
            replaced: None,
        })
    }

    /// Whoever writes through `Write` knows no name to tell.
    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(
            error.kind(),
            format!("'{}': {error}", self.target.display()),
        )
    }

    /// Returns the device and inode numbers of what is being written and of what it replaces, so that a scan can leave
    /// both out.
    ///
    /// # Errors
    /// `Io` if the file cannot be asked.
    pub fn ids(&self) -> Result<Vec<(u64, u64)>> {
        let found = self
            .file
            .metadata()
            .map_err(|error| cannot("examine", &self.target, error))?;
        let own = (found.dev(), found.ino());
        Ok(self.replaced.into_iter().chain([own]).collect())
    }

    /// Returns the name that a process which ends at once must remove; most file systems do without one.
    #[must_use]
    pub fn temporary(&self) -> Option<&Path> {
        match &self.place {
            Place::Temporary(path) => Some(path),
            Place::Nameless | Place::Target => None,
        }
    }

    /// Brings what was written to the disk, so that [`Self::commit`] does not take long.
    ///
    /// # Errors
    /// `Io` if the disk refuses.
    pub fn sync(&self) -> Result<()> {
        if matches!(self.place, Place::Target) {
            return Ok(());
        }
        self.file
            .sync_all()
            .map_err(|error| cannot("write", &self.target, error))
    }

    /// Gives the file its name, once all of it is on the disk.
    ///
    /// # Errors
    /// `Io` if the disk or the directory refuses; `InvalidInput` if a file to be kept has appeared in the meantime.
    /// The temporary file is removed then.
    pub fn commit(mut self) -> Result<()> {
        if matches!(self.place, Place::Target) {
            return Ok(());
        }
        self.sync()?;
        self.give_name().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => already_exists(&self.target),
            _ => cannot("create", &self.target, error),
        })?;
        self.place = Place::Target;
        sync_directory(parent_of(&self.target)).map_err(|error| cannot("sync", &self.target, error))
    }
}

impl AtomicFile {
    /// Gives the file its name at once; a name that is taken is only replaced when that is allowed.
    fn give_name(&mut self) -> io::Result<()> {
        let source = file_link(&self.file);
        if matches!(self.place, Place::Nameless) {
            if self.overwrite == Overwrite::Refuse {
                return link(&source, &self.target);
            }
            // Nothing without a name can take the place of something that has one.
            let (_, temporary) = with_temporary_name(&self.target, |path| link(&source, path))
                .map_err(io::Error::other)?;
            self.place = Place::Temporary(temporary);
        }
        match (&self.place, self.overwrite) {
            (Place::Temporary(temporary), Overwrite::Allow) => fs::rename(temporary, &self.target),
            (Place::Temporary(temporary), Overwrite::Refuse) => rename_new(temporary, &self.target),
            (Place::Nameless | Place::Target, _) => Ok(()),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.file.write(data).map_err(|error| self.named(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.named(error))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Place::Temporary(temporary) = &self.place {
            // There is nobody left to tell; what remains has a name that shows it is temporary.
            drop(fs::remove_file(temporary));
        }
    }
}

/// A link stands for the file that it leads to, which is what is made or gets replaced.
///
/// Where that is not there yet, links are followed step by step, for the kernel knows no name for it.
///
/// # Errors
/// `Io` if the kernel would not follow the link either: it leads round in a circle, or belongs to somebody else in a directory
/// that all can write to.
fn resolve(target: &Path) -> Result<PathBuf> {
    if let Ok(real) = fs::canonicalize(target) {
        return Ok(real);
    }
    match fs::metadata(target) {
        // A pipe, or a file without a name, by a link of `/proc` that leads there and not to what it says.
        Ok(_) => return Ok(target.to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound && target.is_symlink() => {
            return Err(cannot("follow the link", target, error));
        }
        Err(_) => {}
    }
    let mut at = target.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&at) {
            Ok(next) => at = parent_of(&at).join(next),
            Err(_) => return Ok(at),
        }
    }
    Err(cannot("follow the link", target, Errno::LOOP.into()))
}

/// Refuses names that no file can be given in the end, when there is nothing to be lost yet.
fn check_name(target: &Path) -> Result<()> {
    let bytes = target.as_os_str().as_bytes();
    if bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
        let text = format!("output '{}' is the name of a directory", target.display());
        return Err(Error::invalid_input(text));
    }
    let mask = StatxFlags::empty();
    match rustix::fs::statx(CWD, target, AtFlags::SYMLINK_NOFOLLOW, mask) {
        Err(Errno::NAMETOOLONG) => Err(cannot("create", target, Errno::NAMETOOLONG.into())),
        Ok(found) if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) => {
            let text = format!(
                "output '{}' is a mount point, which cannot be replaced",
                target.display()
            );
            Err(Error::invalid_input(text))
        }
        // Whatever else is wrong shows when a file is made beside it.
        _ => Ok(()),
    }
}

fn parent_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Gives a file owner, group and permissions of the one that it is to replace, as far as that is permitted; there are file
/// systems without any of them.
fn take_over_attributes(file: &File, replaced: &Metadata) {
    let (owner, group) = (Some(replaced.uid()), Some(replaced.gid()));
    let has_group = fchown(file, owner, group)
        .or_else(|_| fchown(file, None, group))
        .is_ok();
    let mode = replaced.mode() & 0o777;
    // Another group gets no more than everybody has.
    let mode = match has_group {
        true => mode,
        false => mode & 0o707 | (mode & 0o007) << 3,
    };
    file.set_permissions(Permissions::from_mode(mode)).ok();
}

/// Makes a file without a name, if such a file can be given a name here later.
fn create_nameless(target: &Path) -> Option<File> {
    let create = || {
        let dir = parent_of(target);
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::openat(CWD, dir, flags, mode).map(File::from)
    };
    // Some file systems make such files but refuse the link in the end, which is the wrong moment to find out.
    let probe = create().ok()?;
    let source = file_link(&probe);
    let (_, temporary) = with_temporary_name(target, |path| link(&source, path)).ok()?;
    fs::remove_file(temporary).ok()?;
    create().ok()
}

/// Returns the name by which a file of this process can be linked.
fn file_link(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn link(source: &Path, target: &Path) -> io::Result<()> {
    Ok(rustix::fs::linkat(
        CWD,
        source,
        CWD,
        target,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}

/// Calls `make` with temporary names beside `target` until one is free.
fn with_temporary_name<T>(
    target: &Path,
    make: impl Fn(&Path) -> io::Result<T>,
) -> Result<(T, PathBuf)> {
    let name = target.file_name().ok_or_else(|| {
        Error::invalid_input(format!("output '{}' has no file name", target.display()))
    })?;
    let prefix = name.as_bytes();
    let prefix = OsStr::from_bytes(prefix.get(..NAME_PREFIX_LEN).unwrap_or(prefix));
    let process = std::process::id();
    for attempt in 0..ATTEMPTS_MAX {
        let mut temporary = OsString::from(".");
        temporary.push(prefix);
        temporary.push(format!(".{process}-{attempt}.partial"));
        let path = parent_of(target).join(temporary);
        match make(&path) {
            Ok(made) => return Ok((made, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot("create", target, error)),
        }
    }
    Err(Error::limit(format!(
        "no free temporary name beside '{}' in {ATTEMPTS_MAX} attempts",
        target.display()
    )))
}

/// Renames unless the new name is taken, on any file system.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {}
        other => return Ok(other?),
    }
    rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty())?;
    fs::remove_file(from)
}

/// Some file systems cannot sync a directory and say so, and some directories can be written to but not be opened; there
/// is nothing better to do then, and the file has its name all the same.
fn sync_directory(path: &Path) -> io::Result<()> {
    let synced = File::open(path).and_then(|dir| dir.sync_all());
    match synced.as_ref().map_err(Errno::from_io_error) {
        Err(Some(Errno::ACCESS | Errno::PERM | Errno::INVAL)) => Ok(()),
        _ => synced,
    }
}

/// An I/O error of `AlreadyExists` is its source, so that a program can say instead how replacing is asked for.
fn already_exists(target: &Path) -> Error {
    let text = format!("output '{}' already exists", target.display());
    let why = "it is only replaced when asked for";
    Error::invalid_input(text).with_source(io::Error::new(io::ErrorKind::AlreadyExists, why))
}

fn cannot(verb: &str, target: &Path, error: io::Error) -> Error {
    Error::io(format!("cannot {verb} '{}'", target.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .expect("readable")
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn appears_only_when_complete() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("image");
        let mut file = AtomicFile::create(&target, Overwrite::Refuse).expect("created");
        file.write_all(b"data").expect("written");
        let partial = names(dir.path());
        assert!(!partial.iter().any(|name| name == "image"), "{partial:?}");
        file.commit().expect("committed");
        assert_eq!(names(dir.path()), ["image"]);
        assert_eq!(fs::read(&target).expect("readable"), b"data");
    }

    #[test]
    fn a_full_disk_is_named() {
        let target = Path::new("/dev/full");
        let mut file = AtomicFile::create(target, Overwrite::Allow).expect("opened");
        let error = file.write_all(b"data").expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let text = error.to_string();
        assert!(text.starts_with("'/dev/full': No space left"), "{text}");
    }

    #[test]
    fn temporary_names_do_the_same() {
        for overwrite in [Overwrite::Refuse, Overwrite::Allow] {
            let dir = tempfile::tempdir().expect("a directory");
            let target = dir.path().join("image");
            let begin = || {
                let create =
                    |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
                let (file, temporary) = with_temporary_name(&target, create).expect("created");
                AtomicFile {
                    file,
                    place: Place::Temporary(temporary),
                    target: target.clone(),
                    overwrite,
                    replaced: None,
                }
            };
            drop(begin());
            assert_eq!(names(dir.path()), [""; 0]);
            begin().commit().expect("committed");
            assert_eq!(names(dir.path()), ["image"]);
            assert_eq!(begin().commit().is_ok(), overwrite == Overwrite::Allow);
            assert_eq!(names(dir.path()), ["image"]);
        }
    }

    #[test]
    fn dropped_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("image");
        fs::write(&target, "old").expect("written");
        let mut file = AtomicFile::create(&target, Overwrite::Allow).expect("created");
        file.write_all(b"new").expect("written");
        drop(file);
        assert_eq!(names(dir.path()), ["image"]);
        assert_eq!(fs::read(&target).expect("readable"), b"old");
    }

    #[test]
    fn existing_file_is_kept_or_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("image");
        fs::write(&target, "old").expect("written");
        let error = AtomicFile::create(&target, Overwrite::Refuse).expect_err("refused");
        assert!(error.to_string().contains("already exists"), "{error}");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("image", &link).expect("a link");
        let mut file = AtomicFile::create(&link, Overwrite::Allow).expect("created");
        file.write_all(b"new").expect("written");
        file.commit().expect("committed");
        assert_eq!(fs::read(&target).expect("readable"), b"new");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    }

    #[test]
    fn links_that_lead_nowhere_are_followed() {
        for overwrite in [Overwrite::Refuse, Overwrite::Allow] {
            let dir = tempfile::tempdir().expect("a directory");
            let at = |name: &str| dir.path().join(name);
            fs::create_dir(at("sub")).expect("made");
            fs::create_dir(at("sub/deep")).expect("made");
            let link = |to: &str, name: &str| {
                std::os::unix::fs::symlink(to, at(name)).expect("a link");
            };
            link("sub/deep", "way");
            link("way/second", "first");
            link("../image", "sub/deep/second");
            let mut file = AtomicFile::create(&at("first"), overwrite).expect("created");
            file.write_all(b"data").expect("written");
            assert_eq!(names(&at("")), ["first", "sub", "way"]);
            file.commit().expect("committed");
            assert_eq!(fs::read(at("sub/image")).expect("readable"), b"data");
            for name in ["first", "sub/deep/second"] {
                assert!(at(name).is_symlink(), "{name}");
            }
            assert_eq!(names(&at("sub")), ["deep", "image"]);
        }
    }

    #[test]
    fn links_to_no_place_for_a_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        std::os::unix::fs::symlink("no/image", at("nowhere")).expect("a link");
        std::os::unix::fs::symlink("circle", at("circle")).expect("a link");
        for name in ["nowhere", "circle"] {
            for overwrite in [Overwrite::Refuse, Overwrite::Allow] {
                AtomicFile::create(&at(name), overwrite).expect_err("no place");
                assert!(at(name).is_symlink(), "{name}");
            }
        }
    }

    #[test]
    fn file_that_appears_meanwhile_is_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("image");
        let file = AtomicFile::create(&target, Overwrite::Refuse).expect("created");
        fs::write(&target, "other").expect("written");
        let error = file.commit().expect_err("refused");
        assert!(error.to_string().contains("already exists"), "{error}");
        assert_eq!(names(dir.path()), ["image"]);
        assert_eq!(fs::read(&target).expect("readable"), b"other");
    }

    #[test]
    fn longest_name_and_no_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("n".repeat(255));
        let file = AtomicFile::create(&target, Overwrite::Refuse).expect("created");
        file.commit().expect("committed");
        assert!(target.exists());
        assert!(AtomicFile::create(dir.path(), Overwrite::Allow).is_err());
        assert!(AtomicFile::create(&dir.path().join("no/image"), Overwrite::Refuse).is_err());
    }

    #[test]
    fn devices_are_written_directly() {
        let mut file =
            AtomicFile::create(Path::new("/dev/null"), Overwrite::Refuse).expect("opened");
        file.write_all(b"data").expect("written");
        file.commit().expect("nothing to do");
        assert!(
            fs::metadata("/dev/null")
                .expect("there")
                .file_type()
                .is_char_device()
        );
    }
}
