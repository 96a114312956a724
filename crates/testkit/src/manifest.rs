//! What an image must contain, as an independent decoder wrote it down: one entry a path.

use serde_json::Value;

use crate::json;
use crate::tree::Kind;

/// The content of one image.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Version of the format, major and minor.
    pub format: (u32, u32),
    /// Bytes before the image.
    pub image_offset: u64,
    /// All entries, the root first, in the order of a depth-first walk.
    pub entries: Vec<ManifestEntry>,
}

/// One path of an image. In formats up to 2.2 the attributes are those of the directory entry.
#[derive(Debug, Clone)]
pub struct ManifestEntry {
    /// Path from the root without a leading slash; empty for the root.
    pub path: Vec<u8>,
    /// File type.
    pub kind: Kind,
    /// Type and permissions, as in `st_mode`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Number inside the image.
    pub inode: u64,
    /// Modification time: seconds and nanoseconds.
    pub mtime: (i64, u32),
    /// Access time in seconds, if stored.
    pub atime: Option<i64>,
    /// Change time in seconds, if stored.
    pub ctime: Option<i64>,
    /// Length of a file.
    pub size: Option<u64>,
    /// Bytes of a file outside holes; only where there are holes.
    pub allocated_size: Option<u64>,
    /// Links of a file.
    pub nlink: Option<u32>,
    /// SHA-256 of a file's content.
    pub sha256: Option<[u8; 32]>,
    /// Target of a symlink as stored.
    pub target: Option<Vec<u8>>,
    /// Device number.
    pub rdev: Option<u64>,
    /// Entries of a directory.
    pub dir_len: Option<u64>,
}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    ///
    /// Names the field that is missing or malformed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value = json::parse(text)?;
        let format = value["format"]
            .as_str()
            .and_then(|text| text.split_once('.'));
        let (major, minor) = format.ok_or("format")?;
        let entries = value["entries"].as_array().ok_or("entries")?;
        Ok(Self {
            format: (
                major.parse().map_err(|_| "format")?,
                minor.parse().map_err(|_| "format")?,
            ),
            image_offset: value["image_offset"].as_u64().ok_or("image_offset")?,
            entries: entries
                .iter()
                .map(ManifestEntry::parse)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Whether attributes belong to the directory entry, as in formats up to 2.2, not to the inode.
    #[must_use]
    pub fn attributes_per_entry(&self) -> bool {
        self.format <= (2, 2)
    }
}

impl ManifestEntry {
    fn parse(value: &Value) -> Result<Self, String> {
        let path = value["path"].as_str().map(json::bytes).ok_or("path")?;
        let field = |name: &str| format!("{}: {name}", path.escape_ascii());
        let number = |name: &str| value[name].as_u64().ok_or_else(|| field(name));
        let small =
            |name: &str| number(name).and_then(|wide| u32::try_from(wide).map_err(|_| field(name)));
        let mode = value["mode"]
            .as_str()
            .and_then(|text| u32::from_str_radix(text, 8).ok());
        let mode = mode.ok_or_else(|| field("mode"))?;
        let kind = Kind::of_mode(mode).ok_or_else(|| field("mode"))?;
        let named = value["type"].as_str().unwrap_or_default();
        if named != kind.name() {
            return Err(format!(
                "{} is {named}, its mode says {}",
                field("type"),
                kind.name()
            ));
        }
        let sha256 = match value["sha256"].as_str() {
            Some(hex) => Some(parse_sha256(hex).ok_or_else(|| field("sha256"))?),
            None => None,
        };
        Ok(Self {
            kind,
            mode,
            uid: small("uid")?,
            gid: small("gid")?,
            inode: number("inode")?,
            mtime: (
                value["mtime"].as_i64().ok_or_else(|| field("mtime"))?,
                small("mtime_nsec").unwrap_or(0),
            ),
            atime: value["atime"].as_i64(),
            ctime: value["ctime"].as_i64(),
            size: value["size"].as_u64(),
            allocated_size: value["allocated_size"].as_u64(),
            nlink: small("nlink").ok(),
            sha256,
            target: value["target"].as_str().map(json::bytes),
            rdev: value["rdev"].as_u64(),
            dir_len: value["entries"].as_u64(),
            path,
        })
    }
}

/// Parses the 64 hexadecimal digits of a SHA-256.
#[must_use]
pub fn parse_sha256(hex: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, digits) in digest.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use crate::vectors::Vectors;

    #[test]
    fn every_manifest_is_understood() {
        let vectors = crate::require!(Vectors::find());
        for image in vectors.with_manifest() {
            let manifest = Vectors::manifest(&image);
            let root = manifest.entries.first();
            assert!(
                root.is_some_and(|root| root.path.is_empty()),
                "{}",
                image.display()
            );
        }
    }
}
