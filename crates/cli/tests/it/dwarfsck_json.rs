//! `dwarfsck --json` writes what `docs/schema/dwarfsck.schema.json` says.
//!
//! The checker here knows the keywords that the schema uses, and refuses others, so that none is there in vain.

use std::fs;
use std::iter::repeat_n;
use std::path::Path;

use durin_format::metadata::{
    DirEntry, Directory, FsOptions, InodeData, Metadata, MetadataHistoryEntry,
};
use durin_testkit::require;
use durin_testkit::vectors::Vectors;
use serde_json::{Value, json};

use crate::support::{Place, durin, dwarfsck, image_of_metadata, stdout};

const LEVELS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

struct Schema(Value);

impl Schema {
    fn load() -> Self {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/dwarfsck.schema.json");
        Self(serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
    }

    /// What is wrong with `value`, and where.
    fn complaints(&self, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.check(&self.0, value, "$", &mut found);
        found
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        for (keyword, rule) in schema.as_object().unwrap() {
            match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" => {}
                "$ref" => {
                    let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                    self.check(&self.0["$defs"][name], value, at, found);
                }
                "type" => {
                    let types = rule
                        .as_array()
                        .cloned()
                        .unwrap_or_else(|| vec![rule.clone()]);
                    if !types
                        .iter()
                        .any(|name| is_of_type(name.as_str().unwrap(), value))
                    {
                        found.push(format!("{at}: {value} is no {rule}"));
                    }
                }
                "enum" if !rule.as_array().unwrap().contains(value) => {
                    found.push(format!("{at}: {value}"))
                }
                "const" if rule != value => found.push(format!("{at}: {value}")),
                "minimum"
                    if value
                        .as_f64()
                        .is_some_and(|number| number < rule.as_f64().unwrap()) =>
                {
                    found.push(format!("{at}: {value} is too small"));
                }
                "required" => {
                    for key in rule.as_array().unwrap() {
                        if value.get(key.as_str().unwrap()).is_none() {
                            found.push(format!("{at}: {key} is missing"));
                        }
                    }
                }
                "properties" | "additionalProperties" => {
                    self.fields(schema, keyword, value, at, found)
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(rule, item, &format!("{at}[{index}]"), found);
                    }
                }
                "anyOf" => {
                    let fits = rule.as_array().unwrap().iter().any(|schema| {
                        let mut found = Vec::new();
                        self.check(schema, value, at, &mut found);
                        found.is_empty()
                    });
                    if !fits {
                        found.push(format!("{at}: nothing fits {value}"));
                    }
                }
                "enum" | "const" | "minimum" => {}
                other => panic!("the schema uses {other}"),
            }
        }
    }

    fn fields(
        &self,
        schema: &Value,
        keyword: &str,
        value: &Value,
        at: &str,
        found: &mut Vec<String>,
    ) {
        for (key, field) in value.as_object().into_iter().flatten() {
            let at = format!("{at}.{key}");
            let named = schema
                .get("properties")
                .and_then(|properties| properties.get(key));
            match (keyword, named, &schema[keyword]) {
                ("properties", Some(schema), _) => self.check(schema, field, &at, found),
                ("additionalProperties", None, Value::Bool(false)) => {
                    found.push(format!("{at} is unknown"))
                }
                ("additionalProperties", None, schema) => self.check(schema, field, &at, found),
                _ => {}
            }
        }
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("the schema uses the type {other}"),
    }
}

/// Holds all detail levels of an image against the schema; returns the keys that there were.
fn check(schema: &Schema, image: &Path) -> Vec<String> {
    let mut keys = Vec::new();
    for level in LEVELS {
        let run = dwarfsck().arg(image).args(["-j", "--space=2", "-d", level]);
        let text = stdout(&run.succeed());
        let value: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}, level {level}: {error}", image.display()));
        let complaints = schema.complaints(&value);
        assert!(
            complaints.is_empty(),
            "{}, level {level}: {complaints:#?}",
            image.display()
        );
        keys.extend(value.as_object().unwrap().keys().cloned());
    }
    keys
}

#[test]
fn all_levels_of_all_images() {
    let vectors = require!(Vectors::find());
    let schema = Schema::load();
    let mut seen = Vec::new();
    for folder in ["good", "generated"] {
        for image in vectors.images(folder) {
            seen.extend(check(&schema, &image));
        }
    }
    for key in schema.0["properties"].as_object().unwrap().keys() {
        assert!(seen.contains(key), "no image shows {key}");
    }
}

#[test]
fn the_made_image() {
    let place = Place::new();
    check(&Schema::load(), &place.image());
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let schema = Schema::load();
    let wrong = |value: &Value, part: &str| {
        let complaints = schema.complaints(value).join("\n");
        assert!(complaints.contains(part), "{part}: {complaints}");
    };
    wrong(&json!({}), "\"features\" is missing");
    wrong(&json!({"features": [], "colour": 1}), "$.colour is unknown");
    wrong(
        &json!({"features": [1]}),
        "$.features[0]: 1 is no \"string\"",
    );
    wrong(&json!({"features": [], "block_size": -1}), "too small");
    wrong(&json!({"features": [], "options": ["x"]}), "$.options[0]");
    wrong(&json!({"features": [], "meta": {"x": "y"}}), "$.meta.x");
    wrong(
        &json!({"features": [], "root": {"type": "file"}}),
        "nothing fits",
    );
    assert!(schema.complaints(&json!({"features": []})).is_empty());
}

/// Directories `d` in each other.
fn chain(depth: u32) -> Metadata {
    let directory = |parent_entry, first_entry| Directory {
        parent_entry,
        first_entry,
        self_entry: 0,
    };
    let directories = (0..=depth).map(|dir| directory(dir.saturating_sub(1), dir + 1));
    let entry = |inode_num| DirEntry {
        name_index: 0,
        inode_num,
    };
    Metadata {
        modes: vec![0o040_755],
        uids: vec![0],
        gids: vec![0],
        names: vec![b"d".to_vec()],
        inodes: repeat_n(InodeData::default(), depth as usize + 1).collect(),
        dir_entries: Some((0..=depth).map(entry).collect()),
        directories: directories.chain([directory(0, depth + 1)]).collect(),
        chunk_table: vec![0],
        block_size: 1 << 20,
        options: Some(FsOptions::default()),
        ..Metadata::default()
    }
}

#[test]
fn deep_trees_take_no_stack_and_no_gigabytes() {
    const DEPTH: u32 = 30_000;
    let place = Place::new();
    let image = image_of_metadata(&place, &chain(DEPTH));
    let json = stdout(
        &dwarfsck()
            .arg(&image)
            .args(["-j", "-d5", "--space"])
            .succeed(),
    );
    let (opened, closed) = (
        json.matches("\"inodes\":[").count(),
        json.matches("]}").count(),
    );
    assert_eq!((opened, closed), (DEPTH as usize + 1, DEPTH as usize + 1));
    assert!(json.len() < DEPTH as usize * 300, "{}", json.len());
    let text = stdout(&dwarfsck().arg(&image).args(["-d5"]).succeed());
    assert!(text.len() < DEPTH as usize * 300, "{}", text.len());
    let space = dwarfsck().arg(&image).arg("--space=99999").succeed();
    assert!(space.stdout.len() < 100_000_000, "{}", space.stdout.len());
    let du = durin().arg("du").arg(&image).arg("-s").succeed();
    assert_eq!(stdout(&du).lines().count(), 1);
    let page = stdout(&dwarfsck().arg(&image).args(["--html", "-"]).succeed());
    assert!(page.len() < 1_000_000, "{}", page.len());
}

#[test]
fn previous_versions_of_the_metadata() {
    let place = Place::new();
    let mut metadata = chain(1);
    metadata.metadata_version_history = Some(vec![MetadataHistoryEntry {
        major: 2,
        minor: 3,
        dwarfs_version: Some(b"libdwarfs v0.5.6".to_vec()),
        block_size: 1 << 24,
        options: Some(FsOptions {
            mtime_only: true,
            ..FsOptions::default()
        }),
    }]);
    let image = image_of_metadata(&place, &metadata);
    check(&Schema::load(), &image);
    let text = stdout(&dwarfsck().arg(&image).arg("-d1").succeed());
    let line =
        "previous metadata: version 2.3 by libdwarfs v0.5.6, block size 16 MiB, mtime_only\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn chunks_are_counted_and_told() {
    let place = Place::new();
    let image = place.image();
    let run = dwarfsck()
        .arg(&image)
        .args(["-j", "-d", "metadata_details,chunk_details"]);
    let value: Value = serde_json::from_str(&stdout(&run.succeed())).unwrap();
    let statistics = &value["chunk_statistics"];
    assert_eq!(statistics["files"], 3, "{statistics}");
    assert_eq!(statistics["chunk_counts"]["p99.9"], 1);
    assert_eq!(statistics["block_refs"]["max"], 1);
    assert_eq!(value["meta"]["file_inode_offset"], 4);
    assert_eq!(value["root"]["inodes"][0]["chunks"][0]["size"], 6);
    let text = stdout(&dwarfsck().arg(&image).args(["-d3"]).succeed());
    for part in [
        "packed tables:\n",
        "chunks a file: p50 1, p75 1",
        "file_inode_offset\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
