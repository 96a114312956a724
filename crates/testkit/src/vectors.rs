//! The public test vectors: images of every version and make, good, damaged and hostile.
//!
//! They lie beside the workspace, or where `DURIN_VECTORS` says; a test without them is SKIPPED.

use std::path::{Path, PathBuf};

use crate::manifest::Manifest;

/// Where the vectors are.
#[derive(Debug, Clone)]
pub struct Vectors {
    root: PathBuf,
}

impl Vectors {
    /// Finds the folder of the vectors.
    ///
    /// # Errors
    ///
    /// Says where it looked, for [`crate::require!`].
    pub fn find() -> Result<Self, String> {
        let root = located("DURIN_VECTORS", "vectors/public");
        if root.join("good").is_dir() {
            return Ok(Self { root });
        }
        Err(format!(
            "no vectors in {} (set DURIN_VECTORS)",
            root.display()
        ))
    }

    /// Returns the folder that holds `good`, `evil` and the others.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns one image by folder and name without extension.
    #[must_use]
    pub fn image(&self, folder: &str, name: &str) -> PathBuf {
        self.root.join(folder).join(format!("{name}.dwarfs"))
    }

    /// Lists the images of a folder in the order of their names.
    ///
    /// # Panics
    ///
    /// If the folder cannot be listed, or is empty.
    #[must_use]
    pub fn images(&self, folder: &str) -> Vec<PathBuf> {
        let dir = self.root.join(folder);
        let listing = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{folder}: {error}"));
        let mut images: Vec<_> = listing
            .map(|entry| {
                entry
                    .unwrap_or_else(|error| panic!("{folder}: {error}"))
                    .path()
            })
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "dwarfs")
            })
            .collect();
        assert!(!images.is_empty(), "no images in {}", dir.display());
        images.sort();
        images
    }

    /// Lists the images that come with a manifest: all of `good`, `generated` and `handmade`.
    ///
    /// # Panics
    ///
    /// If one of those folders is missing.
    #[must_use]
    pub fn with_manifest(&self) -> Vec<PathBuf> {
        ["good", "generated", "handmade"]
            .iter()
            .flat_map(|folder| self.images(folder))
            .collect()
    }

    /// Loads the manifest beside an image.
    ///
    /// # Panics
    ///
    /// If it is missing or malformed.
    #[must_use]
    pub fn manifest(image: &Path) -> Manifest {
        let path = image.with_extension("json");
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Manifest::parse(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    }
}

/// Where a folder of the format's material is: what the variable says, else beside the workspace.
pub(crate) fn located(variable: &str, folder: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(
        || {
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../../shared/format")
                .join(folder)
        },
        PathBuf::from,
    )
}
