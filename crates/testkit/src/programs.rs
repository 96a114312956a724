//! The four programs by name, and the tasks that tests give them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::run::{Outcome, Run};

/// Long enough for a large tree on a slow and busy machine.
const TASK_TIME_MAX: Duration = Duration::from_secs(3600);

/// The folder that holds the programs under test.
#[derive(Debug, Clone)]
pub struct Programs {
    dir: PathBuf,
}

impl Programs {
    /// Takes the programs of a folder.
    #[must_use]
    pub fn in_dir(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
        }
    }

    /// Takes the programs of the folder that holds `program`.
    #[must_use]
    pub fn beside(program: &str) -> Self {
        Self::in_dir(Path::new(program).parent().unwrap_or(Path::new(".")))
    }

    /// Returns the path of a program.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Prepares to run a program.
    #[must_use]
    pub fn run(&self, name: &str) -> Run {
        Run::new(self.path(name)).time_max(TASK_TIME_MAX)
    }

    /// Prepares to pack a directory.
    #[must_use]
    pub fn build(&self, source: &Path, image: &Path) -> Run {
        self.run("mkdwarfs")
            .arg("-i")
            .arg(source)
            .arg("-o")
            .arg(image)
    }

    /// Verifies every section and the consistency of the metadata.
    #[must_use]
    pub fn check_integrity(&self, image: &Path) -> Outcome {
        self.run("dwarfsck")
            .arg("--check-integrity")
            .arg(image)
            .output()
    }

    /// Prepares to unpack an image.
    #[must_use]
    pub fn extract(&self, image: &Path, target: &Path) -> Run {
        self.run("dwarfsextract")
            .arg("-i")
            .arg(image)
            .arg("-o")
            .arg(target)
    }
}
