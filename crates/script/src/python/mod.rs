//! Scripts in Python, run by the Python that this program was built with.
//!
//! A prelude in Python does what the one in Lua does; here values are only handed over. The process has one
//! interpreter, which is started when the first script is loaded and never stopped.

use std::ffi::{CStr, CString};
use std::fmt;
use std::sync::Arc;

use durin_format::{Error, Result};
use durin_writer::script::{Attributes, Hooks, Script, ScriptEntry, ScriptInodes, Time};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCFunction, PyDict, PyTuple};

use crate::settings::{Setting, Value, take_similarity};
use crate::spec::Spec;
use crate::{Host, Loaded, failure};

const PRELUDE: &str = include_str!("prelude.py");
/// The prelude as a module, which all scripts share.
static PRELUDE_MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
const PRELUDE_FILE: &CStr = c"<durin>";

/// What `transform` returns: permissions, owner, group, and the times of modification, access and change.
type Changed = (u32, u32, u32, i128, i128, i128);
/// A setting: its name, what it is if it is a switch, and its texts otherwise.
type RawSetting = (String, Option<bool>, Vec<String>);

/// A script that has been run.
struct PythonScript {
    name: String,
    host: Host,
    hooks: Hooks,
    describe: Py<PyAny>,
    filter: Option<Py<PyAny>>,
    transform: Option<Py<PyAny>>,
    order: Option<Py<PyAny>>,
}

impl fmt::Debug for PythonScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "script '{}'", self.name)
    }
}

/// Runs a script and its `configure`.
pub(crate) fn load(spec: &Spec, host: Host) -> Result<Loaded> {
    let text = spec.read()?;
    Python::attach(|py| load_attached(py, spec, host, &text))
}

fn load_attached(py: Python<'_>, spec: &Spec, host: Host, text: &[u8]) -> Result<Loaded> {
    let name = spec.name();
    let no_prelude = |error: PyErr| failure(&name, "start", None, &error.to_string());
    let prelude = prelude(py).map_err(no_prelude)?;
    let describe = prelude.getattr("text_of").map_err(no_prelude)?;
    let failed =
        |hook: &str, error: &PyErr| python_failure(py, &describe, &host, &name, hook, None, error);
    let hooks = run(prelude, spec, &host, text).map_err(|error| failed("top level", &error))?;
    let found = |hook: &str| hooks.get_item(hook).ok().flatten();
    let [filter, transform, order] = ["filter", "transform", "order"].map(found);
    if hooks.is_empty() {
        return Err(Error::invalid_input(format!(
            "script '{name}' has none of the functions configure, filter, transform and order"
        )));
    }
    let mut settings = match found("configure") {
        Some(configure) => {
            let arguments = spec.arguments.iter().map(|argument| {
                let value = argument.value.as_ref();
                let value = value.map(|value| PyBytes::new(py, value));
                (PyBytes::new(py, &argument.name), value)
            });
            let settings = configure
                .call1((arguments.collect::<Vec<_>>(),))
                .and_then(|settings| settings.extract::<Vec<RawSetting>>());
            let settings = settings.map_err(|error| failed("configure", &error))?;
            settings.into_iter().map(setting).collect()
        }
        None => Vec::new(),
    };
    let similarity =
        take_similarity(&mut settings).map_err(|why| failure(&name, "configure", None, &why))?;
    let script = PythonScript {
        hooks: Hooks {
            filter: filter.is_some(),
            transform: transform.is_some(),
            order: order.is_some(),
            similarity: similarity && order.is_some(),
        },
        describe: describe.unbind(),
        filter: filter.map(Bound::unbind),
        transform: transform.map(Bound::unbind),
        order: order.map(Bound::unbind),
        name,
        host,
    };
    Ok(Loaded {
        script: Arc::new(script),
        settings,
    })
}

fn prelude(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let load = || {
        let text = CString::new(PRELUDE)?;
        PyModule::from_code(py, &text, PRELUDE_FILE, c"durin_prelude").map(Bound::unbind)
    };
    let module = PRELUDE_MODULE.get_or_try_init(py, load)?;
    Ok(module.bind(py))
}

/// Runs the text of a script and returns its hooks by their names.
fn run<'py>(
    prelude: &Bound<'py, PyModule>,
    spec: &Spec,
    host: &Host,
    text: &[u8],
) -> PyResult<Bound<'py, PyDict>> {
    let py = prelude.py();
    let events = Arc::clone(&host.events);
    let log = PyCFunction::new_closure(py, None, None, move |arguments, _| -> PyResult<()> {
        let (level, text): (String, String) = arguments.extract()?;
        match level.as_str() {
            "error" => events.error(&text),
            "warn" => events.warn(&text),
            _ => events.info(&text),
        }
        Ok(())
    })?;
    let watched = host.clone();
    let cancelled = PyCFunction::new_closure(py, None, None, move |_, _| watched.is_cancelled())?;
    let dir = spec.dir().as_os_str();
    let arguments = (spec.name(), dir, PyBytes::new(py, text), log, cancelled);
    let hooks = prelude.getattr("load")?.call1(arguments)?;
    Ok(hooks.cast_into::<PyDict>()?)
}

fn setting((name, switch, texts): RawSetting) -> Setting {
    let value = match switch {
        Some(switch) => Value::Switch(switch),
        None => Value::Texts(texts),
    };
    Setting { name, value }
}

/// An error of the script with its traceback; that the user wants to stop if that is why it ended.
fn python_failure(
    py: Python<'_>,
    describe: &Bound<'_, PyAny>,
    host: &Host,
    name: &str,
    hook: &str,
    path: Option<&[u8]>,
    error: &PyErr,
) -> Error {
    if host.is_cancelled() {
        return Error::cancelled();
    }
    let text = describe
        .call1((error.value(py),))
        .and_then(|text| text.extract::<String>());
    let text = text.unwrap_or_else(|_| error.to_string());
    failure(name, hook, path, &text)
}

impl PythonScript {
    fn failure(&self, py: Python<'_>, hook: &str, path: Option<&[u8]>, error: &PyErr) -> Error {
        let describe = self.describe.bind(py);
        python_failure(py, describe, &self.host, &self.name, hook, path, error)
    }
}

impl Script for PythonScript {
    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn filter(&self, entry: &ScriptEntry<'_>) -> Result<bool> {
        let Some(filter) = &self.filter else {
            return Ok(true);
        };
        Python::attach(|py| {
            raw_entry(py, entry)
                .and_then(|raw| filter.bind(py).call1(raw)?.extract())
                .map_err(|error| self.failure(py, "filter", Some(entry.path), &error))
        })
    }

    fn transform(&self, entry: &ScriptEntry<'_>) -> Result<Attributes> {
        let Some(transform) = &self.transform else {
            return Ok(entry.attributes);
        };
        Python::attach(|py| {
            raw_entry(py, entry)
                .and_then(|raw| transform.bind(py).call1(raw)?.extract())
                .map(|changed| attributes(&entry.attributes, changed))
                .map_err(|error| self.failure(py, "transform", Some(entry.path), &error))
        })
    }

    fn order(&self, inodes: &dyn ScriptInodes) -> Result<Option<Vec<u32>>> {
        let Some(order) = &self.order else {
            return Ok(None);
        };
        Python::attach(|py| {
            let raw: PyResult<Vec<_>> = (0..inodes.count())
                .map(|number| raw_inode(py, inodes, number))
                .collect();
            raw.and_then(|raw| order.bind(py).call1((raw,))?.extract())
                .map_err(|error| self.failure(py, "order", None, &error))
        })
    }
}

/// An entry as the arguments of the prelude's functions.
fn raw_entry<'py>(py: Python<'py>, entry: &ScriptEntry<'_>) -> PyResult<Bound<'py, PyTuple>> {
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
        target => Some(PyBytes::new(py, target)),
    };
    PyTuple::new(
        py,
        [
            PyBytes::new(py, entry.path).into_any(),
            PyBytes::new(py, entry.name()).into_any(),
            entry.kind.name().into_pyobject(py)?.into_any(),
            entry.size.into_pyobject(py)?.into_any(),
            entry.nlink.into_pyobject(py)?.into_any(),
            target.into_pyobject(py)?.into_any(),
            permissions.into_pyobject(py)?.into_any(),
            uid.into_pyobject(py)?.into_any(),
            gid.into_pyobject(py)?.into_any(),
            mtime.as_ns().into_pyobject(py)?.into_any(),
            atime.as_ns().into_pyobject(py)?.into_any(),
            ctime.as_ns().into_pyobject(py)?.into_any(),
        ],
    )
}

fn raw_inode<'py>(
    py: Python<'py>,
    inodes: &dyn ScriptInodes,
    number: u32,
) -> PyResult<Bound<'py, PyTuple>> {
    let paths = inodes.paths(number);
    let first = paths.first().map_or(&[][..], |path| path);
    let all: Option<Vec<_>> =
        (paths.len() > 1).then(|| paths.iter().map(|path| PyBytes::new(py, path)).collect());
    (
        number,
        PyBytes::new(py, first),
        inodes.size(number),
        inodes.mtime(number).as_ns(),
        inodes.category(number),
        inodes.similarity(number),
        all,
    )
        .into_pyobject(py)
}

/// What the script made of the attributes `before`; the prelude has checked the bounds.
fn attributes(before: &Attributes, changed: Changed) -> Attributes {
    let (permissions, uid, gid, mtime, atime, ctime) = changed;
    let time = |before: Time, ns| Time::from_ns(ns).unwrap_or(before);
    Attributes {
        permissions,
        uid,
        gid,
        mtime: time(before.mtime, mtime),
        atime: time(before.atime, atime),
        ctime: time(before.ctime, ctime),
    }
}
