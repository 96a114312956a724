//! Scripts in Lua 5.4.
//!
//! One state runs one script. It has the whole standard library but for `debug` and modules in C, which could do to
//! the program's memory what they like. Entries are plain tables made by a prelude in Lua, so that asking about one
//! costs a single call from here; inodes fetch their fields when they are used, because there may be millions of them.

mod convert;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use durin_format::{Error, Result};
use durin_writer::script::{Attributes, Hooks, Script, ScriptEntry, ScriptInodes};
use mlua::{Function, HookTriggers, Lua, LuaOptions, LuaString, StdLib, Table, Value, VmState};

use crate::settings::{Setting, take_similarity};
use crate::spec::Spec;
use crate::{Host, Loaded, failure};

const PRELUDE: &str = include_str!("prelude.lua");

/// After how many instructions a script is interrupted to see whether the user wants to stop: some tenths of a
/// millisecond, and too rare to be noticed in its speed.
const INTERRUPT_STEP: u32 = 20_000;

/// A script that has been run.
struct LuaScript {
    name: String,
    host: Host,
    hooks: Hooks,
    lua: Lua,
    filter: Option<Function>,
    transform: Option<Function>,
    order: Option<Function>,
}

impl fmt::Debug for LuaScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "script '{}'", self.name)
    }
}

/// Runs a script and its `configure`.
pub(crate) fn load(spec: &Spec, host: Host) -> Result<Loaded> {
    let name = spec.name();
    let text = spec.read()?;
    let start = Start {
        spec,
        name: &name,
        host: &host,
    };
    let (lua, callers) = start
        .state()
        .map_err(|error| start.error("start", &error))?;
    lua.load(without_preamble(&text))
        .set_name(format!("@{name}"))
        .set_mode(mlua::chunk::ChunkMode::Text)
        .exec()
        .map_err(|error| start.error("top level", &error))?;
    let configure = start.hook(&lua, "configure")?;
    let wrapped = |hook: &str| -> Result<Option<Function>> {
        let Some(function) = start.hook(&lua, hook)? else {
            return Ok(None);
        };
        let caller = callers.get::<Function>(hook);
        let caller = caller.and_then(|caller| caller.call(function));
        caller.map(Some).map_err(|error| start.error(hook, &error))
    };
    let (filter, transform, order) = (wrapped("filter")?, wrapped("transform")?, wrapped("order")?);
    if configure.is_none() && filter.is_none() && transform.is_none() && order.is_none() {
        return Err(Error::invalid_input(format!(
            "script '{name}' has none of the functions configure, filter, transform and order"
        )));
    }
    let mut settings = match configure {
        Some(configure) => start.configure(&lua, &configure)?,
        None => Vec::new(),
    };
    let similarity =
        take_similarity(&mut settings).map_err(|why| failure(&name, "configure", None, &why))?;
    let hooks = Hooks {
        filter: filter.is_some(),
        transform: transform.is_some(),
        order: order.is_some(),
        similarity: similarity && order.is_some(),
    };
    let script = Arc::new(LuaScript {
        name,
        host,
        hooks,
        lua,
        filter,
        transform,
        order,
    });
    Ok(Loaded { script, settings })
}

/// Returns what is Lua of a script, as Lua's own loader does: no byte order mark, and no first line that begins with `#`, whose
/// end stays so that lines keep their numbers.
fn without_preamble(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if !text.starts_with(b"#") {
        return text;
    }
    let end = text.iter().position(|byte| *byte == b'\n');
    &text[end.unwrap_or(text.len())..]
}

/// What loading knows.
struct Start<'a> {
    spec: &'a Spec,
    name: &'a str,
    host: &'a Host,
}

impl Start<'_> {
    fn error(&self, hook: &str, error: &mlua::Error) -> Error {
        convert::failure(self.host, self.name, hook, None, error)
    }

    /// Makes a state with everything but the script; returns the callers of hooks with it.
    fn state(&self) -> mlua::Result<(Lua, Table)> {
        let lua = Lua::new_with(StdLib::ALL_SAFE, LuaOptions::default())?;
        if self.host.memory_max > 0 {
            lua.set_memory_limit(self.host.memory_max)?;
        }
        interrupt(&lua, &self.host.cancel, INTERRUPT_STEP)?;
        let package: Table = lua.globals().get("package")?;
        let path: LuaString = package.get("path")?;
        let mut own = self.spec.dir().as_os_str().as_encoded_bytes().to_vec();
        own.extend_from_slice(b"/?.lua;");
        own.extend_from_slice(&path.as_bytes());
        package.set("path", lua.create_string(own)?)?;

        let functions = lua.create_table()?;
        let events = Arc::clone(&self.host.events);
        let log = lua.create_function(move |_, (level, text): (LuaString, LuaString)| {
            let text = text.to_string_lossy();
            match &*level.as_bytes() {
                b"error" => events.error(&text),
                b"warn" => events.warn(&text),
                _ => events.info(&text),
            }
            Ok(())
        })?;
        functions.set("log", log)?;
        let callers = lua.load(PRELUDE).set_name("=durin").call(functions)?;
        Ok((lua, callers))
    }

    /// Finds a function of the script.
    fn hook(&self, lua: &Lua, name: &str) -> Result<Option<Function>> {
        match lua.globals().raw_get::<Value>(name) {
            Ok(Value::Nil) => Ok(None),
            Ok(Value::Function(function)) => Ok(Some(function)),
            Ok(other) => Err(Error::invalid_input(format!(
                "script '{}': '{name}' is {} instead of a function",
                self.name,
                convert::a_type(&other)
            ))),
            Err(error) => Err(self.error(name, &error)),
        }
    }

    /// Calls `configure` with the arguments and takes what it returns apart.
    fn configure(&self, lua: &Lua, configure: &Function) -> Result<Vec<Setting>> {
        let call = || {
            let arguments = lua.create_table()?;
            for argument in &self.spec.arguments {
                let name = lua.create_string(&argument.name)?;
                match &argument.value {
                    Some(value) => arguments.set(name, lua.create_string(value)?)?,
                    None => arguments.set(name, true)?,
                }
            }
            configure.call::<Value>(arguments)
        };
        let returned = call().map_err(|error| self.error("configure", &error))?;
        convert::settings(returned)
            .map_err(|why| failure(self.name, "configure", None, &why.to_string()))
    }
}

/// Ends what runs in `lua` soon after `cancel` is set, whatever errors it catches: from then on, each instruction fails.
fn interrupt(lua: &Lua, cancel: &Arc<AtomicBool>, step: u32) -> mlua::Result<()> {
    let cancel = Arc::clone(cancel);
    let triggers = HookTriggers::new().every_nth_instruction(step);
    lua.set_global_hook(triggers, move |lua, _| {
        if !cancel.load(Ordering::Relaxed) {
            return Ok(VmState::Continue);
        }
        if step > 1 {
            interrupt(lua, &cancel, 1)?;
        }
        Err(mlua::Error::runtime("interrupted"))
    })
}

impl LuaScript {
    fn failure(&self, hook: &str, path: Option<&[u8]>, error: &mlua::Error) -> Error {
        convert::failure(&self.host, &self.name, hook, path, error)
    }
}

impl Script for LuaScript {
    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn filter(&self, entry: &ScriptEntry<'_>) -> Result<bool> {
        let Some(filter) = &self.filter else {
            return Ok(true);
        };
        convert::entry(&self.lua, entry)
            .and_then(|entry| filter.call(entry))
            .map_err(|error| self.failure("filter", Some(entry.path), &error))
    }

    fn transform(&self, entry: &ScriptEntry<'_>) -> Result<Attributes> {
        let Some(transform) = &self.transform else {
            return Ok(entry.attributes);
        };
        convert::entry(&self.lua, entry)
            .and_then(|entry| transform.call(entry))
            .map(|changed| convert::attributes(&entry.attributes, changed))
            .map_err(|error| self.failure("transform", Some(entry.path), &error))
    }

    fn order(&self, inodes: &dyn ScriptInodes) -> Result<Option<Vec<u32>>> {
        let Some(order) = &self.order else {
            return Ok(None);
        };
        let ordered = self.lua.scope(|scope| {
            let fetch = scope.create_function(|lua, (number, field): (u32, LuaString)| {
                convert::inode_field(lua, inodes, number.wrapping_sub(1), &field.as_bytes())
            })?;
            order.call((inodes.count(), fetch))
        });
        ordered.map_err(|error| self.failure("order", None, &error))
    }
}
