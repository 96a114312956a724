//! Values between the writer and Lua.

use durin_format::Error;
use durin_writer::script::{Attributes, ScriptEntry, ScriptInodes, Time};
use mlua::{IntoLua, IntoLuaMulti, Lua, LuaString, MultiValue, Value};

use crate::settings::{Setting, Value as SettingValue};
use crate::{Host, failure as script_failure};

/// What `transform` returns: permissions, owner, group, and the times of modification, access and change.
pub(super) type Changed = (u32, u32, u32, i64, i64, i64);

/// An entry as the arguments of the prelude's callers.
pub(super) fn entry(lua: &Lua, entry: &ScriptEntry<'_>) -> mlua::Result<MultiValue> {
    let Attributes {
        permissions,
        uid,
        gid,
        mtime,
        atime,
        ctime,
    } = entry.attributes;
    let target = match entry.target {
        [] => None,
        target => Some(lua.create_string(target)?),
    };
    (
        lua.create_string(entry.path)?,
        lua.create_string(entry.name())?,
        entry.kind.name(),
        entry.size,
        entry.nlink,
        target,
        permissions,
        uid,
        gid,
        nanoseconds(mtime),
        nanoseconds(atime),
        nanoseconds(ctime),
    )
        .into_lua_multi(lua)
}

/// Lua's whole numbers have 64 bits, which reach from 1677 to 2262; times beyond are shown as the nearest of these.
fn nanoseconds(time: Time) -> i64 {
    let ns = time.as_ns();
    let nearest = ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    i64::try_from(nearest).unwrap_or_default()
}

/// What the script made of the attributes `before`.
pub(super) fn attributes(before: &Attributes, changed: Changed) -> Attributes {
    let (permissions, uid, gid, mtime, atime, ctime) = changed;
    let time = |before: Time, ns: i64| {
        // What was shown inexactly is kept unless it was changed.
        if nanoseconds(before) == ns {
            before
        } else {
            Time::from_ns(i128::from(ns)).unwrap_or(before)
        }
    };
    Attributes {
        permissions,
        uid,
        gid,
        mtime: time(before.mtime, mtime),
        atime: time(before.atime, atime),
        ctime: time(before.ctime, ctime),
    }
}

/// A field of an inode, or nil if there is none of that name.
pub(super) fn inode_field(
    lua: &Lua,
    inodes: &dyn ScriptInodes,
    number: u32,
    field: &[u8],
) -> mlua::Result<Value> {
    match field {
        b"path" => lua.create_string(inodes.path(number))?.into_lua(lua),
        b"name" => {
            let path = inodes.path(number);
            let start = path.iter().rposition(|byte| *byte == b'/');
            let name = &path[start.map_or(0, |slash| slash + 1)..];
            lua.create_string(name)?.into_lua(lua)
        }
        b"paths" => {
            let paths = inodes.paths(number);
            let paths = paths.into_iter().map(|path| lua.create_string(path));
            let paths = paths.collect::<mlua::Result<Vec<LuaString>>>()?;
            lua.create_sequence_from(paths)?.into_lua(lua)
        }
        b"size" => inodes.size(number).into_lua(lua),
        b"mtime_ns" => nanoseconds(inodes.mtime(number)).into_lua(lua),
        b"category" => inodes.category(number).into_lua(lua),
        b"similarity" => match inodes.similarity(number) {
            Some(hashes) => lua.create_sequence_from(hashes)?.into_lua(lua),
            None => Ok(Value::Nil),
        },
        _ => Ok(Value::Nil),
    }
}

/// Names the type of a value, with its article.
pub(super) fn a_type(value: &Value) -> String {
    let name = value.type_name();
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {name}")
}

/// Takes what `configure` returned apart, in the order of names.
pub(super) fn settings(returned: Value) -> mlua::Result<Vec<Setting>> {
    let table = match returned {
        Value::Nil => return Ok(Vec::new()),
        Value::Table(table) => table,
        other => {
            return Err(mlua::Error::runtime(format!(
                "it returned {} instead of a table of options",
                a_type(&other)
            )));
        }
    };
    let mut settings = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (name, value) = pair?;
        let Value::String(name) = name else {
            return Err(mlua::Error::runtime(
                "it returned a table with keys that are no names of options",
            ));
        };
        let name = name.to_string_lossy();
        let value = match &value {
            Value::Boolean(switch) => SettingValue::Switch(*switch),
            Value::Table(list) => {
                let values = list.sequence_values::<Value>();
                let texts = values.map(|value| text(&name, &value?));
                SettingValue::Texts(texts.collect::<mlua::Result<_>>()?)
            }
            single => SettingValue::Texts(vec![text(&name, single)?]),
        };
        settings.push(Setting { name, value });
    }
    settings.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(settings)
}

fn text(name: &str, value: &Value) -> mlua::Result<String> {
    match value {
        Value::String(text) => Ok(text.to_str()?.to_owned()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(mlua::Error::runtime(format!(
            "it returned {} for the option '{name}'",
            a_type(other)
        ))),
    }
}

/// An error of the script with its traceback; that the user wants to stop if that is why it ended.
pub(super) fn failure(
    host: &Host,
    name: &str,
    hook: &str,
    path: Option<&[u8]>,
    error: &mlua::Error,
) -> Error {
    if host.is_cancelled() {
        return Error::cancelled();
    }
    script_failure(name, hook, path, &message(error, host))
}

fn message(error: &mlua::Error, host: &Host) -> String {
    match error {
        mlua::Error::RuntimeError(text) | mlua::Error::SyntaxError { message: text, .. } => {
            without_glue(text)
        }
        mlua::Error::CallbackError { traceback, cause } => {
            let cause = message(cause, host);
            without_glue(&format!("{cause}\n{traceback}"))
        }
        mlua::Error::MemoryError(_) => format!(
            "out of memory: it may use {} MiB",
            host.memory_max.div_ceil(1 << 20)
        ),
        other => other.to_string(),
    }
}

/// A traceback without the lines about functions between the writer and the script.
fn without_glue(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("\t[C]: in ?") && !line.starts_with("\tdurin:"));
    let lines: Vec<&str> = lines.collect();
    lines
        .join("\n")
        .trim_end()
        .trim_end_matches("\nstack traceback:")
        .to_owned()
}
