//! The second walk: the paths of contents that are worth naming.

use std::collections::HashMap;

use durin_reader::{FileKind, Image};

use super::Group;

/// Paths that are shown of a group.
const PATH_COUNT_MAX: usize = 12;

/// Fills in paths of the contents of each group: for equal files any, for files that are alike the first of each content.
pub(super) fn fill(image: &Image, duplicates: &mut [Group], clusters: &mut [Group]) {
    let mut wanted: HashMap<u32, Vec<usize>> = HashMap::new();
    for (number, group) in duplicates.iter().chain(clusters.iter()).enumerate() {
        for content in &group.contents {
            wanted.entry(*content).or_default().push(number);
        }
    }
    if wanted.is_empty() {
        return;
    }
    // What cannot be read was reported by the first walk.
    for entry in image.walk().flatten() {
        if entry.attr.kind != FileKind::Regular {
            continue;
        }
        let Ok(content) = image.content_number(entry.attr.inode) else {
            continue;
        };
        let Some(numbers) = wanted.get_mut(&content) else {
            continue;
        };
        numbers.retain(|number| {
            let Some(group) = duplicates.get_mut(*number) else {
                if let Some(group) = clusters.get_mut(*number - duplicates.len()) {
                    group.paths.push(entry.path.clone());
                }
                return false;
            };
            group.paths.push(entry.path.clone());
            group.paths.len() < PATH_COUNT_MAX
        });
        if numbers.is_empty() {
            wanted.remove(&content);
        }
    }
}

/// Of many contents those whose paths are shown: the largest.
pub(super) fn chosen(mut contents: Vec<u32>, sizes: &[u64]) -> Vec<u32> {
    let size = |content: &u32| sizes.get(super::to_usize(*content)).copied().unwrap_or(0);
    contents.sort_by_key(|content| std::cmp::Reverse(size(content)));
    contents.truncate(PATH_COUNT_MAX);
    contents
}
