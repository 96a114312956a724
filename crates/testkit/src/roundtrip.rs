//! A tree through the programs and back: packed, checked, mounted, unpacked, and compared with itself.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::compare::{Aspects, trees};
use crate::mount::{self, Mount};
use crate::programs::Programs;
use crate::run::{Outcome, Run};
use crate::tree::{Digest, Kind, Tree, TreeOptions, snapshot};

/// Which times an image shall keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// The default: modification times in seconds.
    Default,
    /// All times in nanoseconds.
    Exact,
}

/// One way to pack a tree.
#[derive(Debug, Clone)]
pub struct Trip<'a> {
    /// The programs under test.
    pub programs: &'a Programs,
    /// The tree.
    pub source: &'a Path,
    /// An existing directory for the image and what is unpacked; it should be on a disk that keeps all attributes.
    pub work: &'a Path,
    /// Further arguments of the build.
    pub build_args: &'a [&'a str],
    /// Which times are kept and compared.
    pub times: Times,
}

/// What a trip took and gave.
#[derive(Debug)]
pub struct TripReport {
    /// Size of the image.
    pub image_bytes: u64,
    /// How the build ended.
    pub build: Outcome,
    /// Time to mount; `None` if nothing can be mounted here.
    pub mount: Option<Duration>,
    /// Time to read and compare everything through the mount.
    pub read: Duration,
    /// Time to unpack.
    pub extract: Duration,
    /// All that differs; empty when the tree survived.
    pub differences: Vec<String>,
}

impl Trip<'_> {
    /// Makes the trip. `tree` is the source as it was read before, with contents.
    ///
    /// # Errors
    ///
    /// What could not be read back. A program that fails is a difference.
    pub fn make(&self, tree: &Tree) -> io::Result<TripReport> {
        let image = self.work.join("trip.dwarfs");
        let expected = self.with_current_atimes(tree)?;
        let build = self.build_run(&image).output();
        if build.code != Some(0) {
            return Ok(TripReport {
                image_bytes: 0,
                differences: vec![format!("mkdwarfs: {build}")],
                build,
                mount: None,
                read: Duration::ZERO,
                extract: Duration::ZERO,
            });
        }
        let image_bytes = image.metadata()?.len();
        let mut differences = Vec::new();
        let check = self.programs.check_integrity(&image);
        if check.code != Some(0) {
            differences.push(format!("dwarfsck --check-integrity: {check}"));
        }
        let (mount, read) = match mount::available() {
            Ok(()) => {
                let (mount, read, found) = self.through_mount(&image, &expected)?;
                differences.extend(found.iter().map(|line| format!("mounted: {line}")));
                (Some(mount), read)
            }
            Err(_) => (None, Duration::ZERO),
        };
        let (extract, found) = self.through_extraction(&image, &expected)?;
        differences.extend(found.iter().map(|line| format!("extracted: {line}")));
        std::fs::remove_file(&image)?;
        Ok(TripReport {
            image_bytes,
            build,
            mount,
            read,
            extract,
            differences,
        })
    }

    fn build_run(&self, image: &Path) -> Run {
        let run = self
            .programs
            .build(self.source, image)
            .args(self.build_args);
        let run = run.args(["--with-devices", "--with-specials", "--progress=none"]);
        match self.times {
            Times::Default => run,
            Times::Exact => run.args(["--keep-all-times", "--time-resolution=1ns"]),
        }
    }

    fn aspects(&self) -> Aspects {
        let resolution_ns = if self.times == Times::Exact {
            1
        } else {
            1_000_000_000
        };
        let atime_ns = (self.times == Times::Exact).then_some(resolution_ns);
        Aspects {
            atime_ns,
            ..Aspects::all(resolution_ns)
        }
    }

    fn through_mount(
        &self,
        image: &Path,
        expected: &Tree,
    ) -> io::Result<(Duration, Duration, Vec<String>)> {
        let start = Instant::now();
        let mount = Mount::new(&self.programs.path("dwarfs"), image, &[]);
        let mounted = start.elapsed();
        let found = snapshot(mount.path(), &POSITIONS)?;
        let read = start.elapsed() - mounted;
        mount.unmount();
        Ok((mounted, read, trees(expected, &found, &self.aspects())))
    }

    fn through_extraction(
        &self,
        image: &Path,
        expected: &Tree,
    ) -> io::Result<(Duration, Vec<String>)> {
        let target = self.work.join("extracted");
        std::fs::create_dir(&target)?;
        let outcome = self.programs.extract(image, &target).output();
        let found = snapshot(&target, &POSITIONS)?;
        let aspects = Aspects {
            owner: crate::skip::is_root(),
            symlink_modes: false,
            ..self.aspects()
        };
        let mut differences = trees(expected, &found, &aspects);
        if outcome.code != Some(0) {
            differences.insert(0, format!("dwarfsextract: {outcome}"));
        }
        remove_tree(&target)?;
        Ok((outcome.wall, differences))
    }

    /// An earlier build has read the files, which moved their access times.
    fn with_current_atimes(&self, tree: &Tree) -> io::Result<Tree> {
        let mut tree = tree.clone();
        if self.times == Times::Exact {
            let now = snapshot(
                self.source,
                &TreeOptions {
                    digest: Digest::None,
                },
            )?;
            for (node, current) in tree.nodes.iter_mut().zip(now.nodes) {
                if node.path == current.path {
                    node.atime = current.atime;
                }
            }
        }
        Ok(tree)
    }
}

/// How a trip reads trees; what is given to [`Trip::make`] must have been read so too.
pub const POSITIONS: TreeOptions = TreeOptions {
    digest: Digest::Positions,
};

/// Removes a tree, however its directories' permissions are.
///
/// # Errors
///
/// Whatever could not be removed.
pub fn remove_tree(top: &Path) -> io::Result<()> {
    if !crate::skip::is_root() {
        for node in snapshot(
            top,
            &TreeOptions {
                digest: Digest::None,
            },
        )?
        .nodes
        {
            if node.kind == Kind::Directory {
                let path = OsStr::from_bytes(&node.path);
                std::fs::set_permissions(top.join(path), PermissionsExt::from_mode(0o700))?;
            }
        }
    }
    std::fs::remove_dir_all(top)
}
