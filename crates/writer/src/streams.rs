//! Sorting contents into streams.
//!
//! In: contents with their categories. Out: streams in the order of the image: what is hot, the default one, the others by
//! name and sub-category, at last what is incompressible; each with its fragments in the order of storage.
//! What is little of its category goes to the default stream: a block of its own would take more than it saves.

use std::collections::BTreeMap;

use durin_format::Result;

use crate::analyze::{Analysis, FoundIndex, Kind};
use crate::category::{self, Categories, Category, Fragment, Stream, StreamSettings};
use crate::context::Context;
use crate::files::Files;
use crate::order::order;
use crate::script_order::order_by_script;
use crate::tree::Tree;

/// The share of a block that a stream has at least.
const BLOCK_SHARE: u64 = 16;
/// Data that are stored as they are need no company.
const STORED_LEN_MIN: u64 = 64 << 10;
/// Bytes from which on a codec for this kind of data saves more than a block takes.
const LAYOUT_LEN_MIN: u64 = 4 << 10;
/// The most streams; only trees made for it have more.
const STREAMS_MAX: usize = 4096;
/// The category that comes first: what it has in common with others is then stored with it, so that who decodes it ahead
/// needs no other blocks.
const FIRST: &str = "hotness";
/// The category that comes last, so that what is compressed comes together.
const LAST: &str = "incompressible";

/// Returns the categories and what is stored of each.
///
/// # Errors
/// Those of a script that orders.
pub(crate) fn streams(
    context: Context<'_>,
    tree: &Tree,
    files: &Files,
    analysis: &Analysis,
) -> Result<(Categories, Vec<Stream>)> {
    let mut by_category = fragments(files, analysis);
    let mut default = by_category.remove(&0).unwrap_or_default();
    let found = &analysis.found.categories;
    let category_of = |number: FoundIndex| &found[number as usize - 1];
    let mut kept: Vec<(FoundIndex, u64, Vec<Fragment>)> = Vec::new();
    for (number, fragments) in by_category {
        let len = fragments.iter().map(|fragment| fragment.len).sum();
        if is_worth_a_stream(context, category_of(number), len) {
            kept.push((number, len, fragments));
        } else {
            default.extend(fragments);
        }
    }
    let key = |number: FoundIndex| {
        let Category {
            name, subcategory, ..
        } = category_of(number);
        (name == LAST, name, subcategory)
    };
    kept.sort_unstable_by_key(|(number, len, _)| (u64::MAX - len, key(*number)));
    for (_, _, fragments) in kept.split_off(kept.len().min(STREAMS_MAX)) {
        default.extend(fragments);
    }
    kept.sort_unstable_by_key(|(number, ..)| key(*number));

    let mut categories = Categories::new();
    let mut streams = Vec::new();
    let mut all = vec![(category::DEFAULT, join(default))];
    for (number, _, fragments) in kept {
        let category = categories.add(category_of(number).clone());
        let place = if category_of(number).name == FIRST {
            0
        } else {
            all.len()
        };
        all.insert(place, (category, fragments));
    }
    for (category, fragments) in all {
        let settings = StreamSettings::of(context.options, categories.get(category));
        let contents = &analysis.contents;
        let fragments = order(
            context,
            tree,
            files,
            contents,
            &settings,
            fragments,
            &analysis.sketches,
        )?;
        let name = &categories.get(category).name;
        let fragments = order_by_script(context, tree, files, analysis, name, fragments)?;
        streams.push(Stream {
            category,
            settings,
            fragments,
        });
    }
    Ok((categories, streams))
}

/// Returns the fragments of all contents by the numbers of their categories.
fn fragments(files: &Files, analysis: &Analysis) -> BTreeMap<FoundIndex, Vec<Fragment>> {
    let contents = &analysis.contents;
    let mut by_category: BTreeMap<FoundIndex, Vec<Fragment>> = BTreeMap::new();
    for content in 0..contents.len() {
        let file = contents.files(content).first();
        let size = file.map_or(0, |file| files.file(*file).size);
        let mut add = |number, offset, len| {
            let fragment = Fragment {
                content,
                group_kib: 0,
                offset,
                len,
            };
            by_category.entry(number).or_default().push(fragment);
        };
        match analysis.found.of(contents, content) {
            None => add(0, 0, size),
            Some(Kind::Whole(number)) => add(*number, 0, size),
            Some(Kind::Fragments(fragments)) => {
                let mut at = 0;
                for (len, number) in fragments {
                    add(*number, at, *len);
                    at += len;
                }
            }
        }
    }
    by_category
}

/// Makes fragments that follow each other in a content one.
fn join(mut fragments: Vec<Fragment>) -> Vec<Fragment> {
    fragments.sort_unstable_by_key(|fragment| (fragment.content, fragment.offset));
    fragments.dedup_by(|next, fragment| {
        let follows =
            fragment.content == next.content && fragment.offset + fragment.len == next.offset;
        if follows {
            fragment.len += next.len;
        }
        follows
    });
    fragments
}

fn is_worth_a_stream(context: Context<'_>, category: &Category, len: u64) -> bool {
    let options = context.options;
    let spec = options.compression.of(&category.name);
    let share = u64::from(context.block_size()) / BLOCK_SHARE;
    let least = if options.is_configured(&category.name) {
        1
    } else if spec.requires_metadata() {
        LAYOUT_LEN_MIN.min(share)
    } else if spec.is_null() {
        STORED_LEN_MIN.min(share)
    } else {
        share
    };
    len >= least
}
