//! `--auto-mountpoint`: a directory beside the image that has its name without extension.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::common::escape;

/// The directory; removed when dropped, if it was made for this mount.
#[derive(Debug)]
pub(super) struct AutoMountpoint {
    path: PathBuf,
    made: bool,
}

impl AutoMountpoint {
    /// Makes the directory for `image`, or takes an empty one that is there.
    pub(super) fn beside(image: &Path) -> Result<Self, String> {
        let path = image.with_extension("");
        if path == image {
            return Err(format!(
                "--auto-mountpoint needs an image with an extension, and '{}' has none",
                escape::path(image)
            ));
        }
        match fs::create_dir(&path) {
            Ok(()) => Ok(Self { path, made: true }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if is_empty_directory(&path) {
                    Ok(Self { path, made: false })
                } else {
                    Err(format!(
                        "automatic mount point '{}' is not an empty directory",
                        escape::path(&path)
                    ))
                }
            }
            Err(error) => Err(format!(
                "cannot make automatic mount point '{}': {error}",
                escape::path(&path)
            )),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for AutoMountpoint {
    fn drop(&mut self) {
        if self.made {
            // Still busy, or somebody put something there: then it is no longer ours to remove.
            drop(fs::remove_dir(&self.path));
        }
    }
}

fn is_empty_directory(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn makes_and_removes_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("tree.dwarfs");
        let mountpoint = AutoMountpoint::beside(&image).unwrap();
        assert_eq!(mountpoint.path(), dir.path().join("tree"));
        assert!(mountpoint.path().is_dir());
        drop(mountpoint);
        assert!(!dir.path().join("tree").exists());
    }

    #[test]
    fn leaves_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("tree");
        fs::create_dir(&there).unwrap();
        drop(AutoMountpoint::beside(&dir.path().join("tree.dwarfs")).unwrap());
        assert!(there.is_dir());
        fs::write(there.join("file"), "").unwrap();
        assert!(AutoMountpoint::beside(&dir.path().join("tree.dwarfs")).is_err());
        assert!(AutoMountpoint::beside(&dir.path().join("image")).is_err());
    }
}
