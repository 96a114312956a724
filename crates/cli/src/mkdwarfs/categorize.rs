//! `--categorize` and what belongs to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use durin_format::Error;
use durin_writer::{
    CategorizeOptions, Categorizer, IncompressibleOptions, usual_categorizers, usual_incompressible,
};

use super::options::Categorize;
use super::order::lines;
use crate::common::escape;
use crate::common::exit::Failure;

/// What the options ask for at a level.
pub(super) fn options(given: &Categorize, level: usize) -> Result<CategorizeOptions, Failure> {
    let categorizers = match &given.categorize {
        Some(list) => Categorizer::parse_list(list)
            .map_err(|error| Failure::Usage(format!("--categorize: {error}")))?,
        None => usual_categorizers(level),
    };
    let wants_list = categorizers.contains(&Categorizer::Hotness);
    let hot_paths = match &given.hotness_list {
        Some(file) => hot_paths(file)?,
        None if wants_list => {
            return Err(Failure::Usage(
                "--categorize=hotness needs --hotness-list".to_owned(),
            ));
        }
        None => BTreeSet::new(),
    };
    if given.hotness_list.is_some() && !wants_list {
        return Err(Failure::Usage(
            "--hotness-list needs --categorize with hotness in its list".to_owned(),
        ));
    }
    let usual = usual_incompressible(level);
    Ok(CategorizeOptions {
        categorizers,
        incompressible: IncompressibleOptions {
            min_input_size: given.incompressible_min_input_size,
            block_size: given.incompressible_block_size,
            fragments: given.incompressible_fragments.unwrap_or(usual.fragments),
            ratio: given.incompressible_ratio.unwrap_or(usual.ratio),
            zstd_level: given.incompressible_zstd_level.unwrap_or(usual.zstd_level),
        },
        hot_paths,
    })
}

fn hot_paths(file: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    let shown = escape::path(file);
    let list = fs::read(file)
        .map_err(|error| Error::io(format!("cannot read hotness list '{shown}'"), error))?;
    let mut paths = BTreeSet::new();
    for path in lines(&list) {
        let path = path.strip_prefix("/").map(PathBuf::from).unwrap_or(path);
        let name = escape::path(&path).to_string();
        if !paths.insert(path) {
            return Err(Failure::Usage(format!(
                "hotness list '{shown}' has '{name}' twice"
            )));
        }
    }
    Ok(paths)
}
