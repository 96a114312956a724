"""What stands between the writer and a script in Python.

Makes entries and inodes, calls the hooks and checks what they return. Everything here works for several scripts at a
time, because tests run them so.
"""

import collections
import sys
import threading
import time
import traceback
import types


class Mistake(Exception):
    """Something that the script did and that needs no traceback."""


def describe(value):
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def text_of(error):
    """Returns the message and the traceback of an error without the frames of this file."""
    if isinstance(error, Mistake):
        return str(error)
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()


# Messages: a thread's output goes to the script that it runs.

running = threading.local()


class Output:
    """Makes messages of the lines that are written to standard output."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def write(self, text):
        log = getattr(running, "log", None)
        if log is None:
            return sys.__stderr__.write(text)
        *lines, running.unfinished = (getattr(running, "unfinished", "") + text).split("\n")
        for line in lines:
            log("info", shown(line))
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False


class Logger:
    def __init__(self, log):
        self._log = log

    def error(self, *values):
        self._log("error", shown(" ".join(map(str, values))))

    def warn(self, *values):
        self._log("warn", shown(" ".join(map(str, values))))

    def info(self, *values):
        self._log("info", shown(" ".join(map(str, values))))


def shown(text):
    # Names that are not UTF-8 have characters that cannot be encoded.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def decoded(name):
    return name.decode("utf-8", "surrogateescape")


# Stopping: an exception is raised in the thread that runs a hook, again and again should it be caught.


def watch(cancelled, threads):
    try:
        import ctypes
    except ImportError:
        return

    def raise_in_threads():
        while not cancelled():
            time.sleep(0.05)
        while True:
            for thread in list(threads):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt)
                )
            time.sleep(0.02)

    threading.Thread(target=raise_in_threads, daemon=True).start()


# Entries and inodes


class Entry:
    __slots__ = (
        "path",
        "name",
        "type",
        "size",
        "nlink",
        "target",
        "permissions",
        "uid",
        "gid",
        "mtime_ns",
        "atime_ns",
        "ctime_ns",
    )

    def __init__(self, path, name, type, size, nlink, target, permissions, uid, gid, mtime_ns, atime_ns, ctime_ns):
        self.path = decoded(path)
        self.name = decoded(name)
        self.type = type
        self.size = size
        self.nlink = nlink
        self.target = None if target is None else decoded(target)
        self.permissions = permissions
        self.uid = uid
        self.gid = gid
        self.mtime_ns = mtime_ns
        self.atime_ns = atime_ns
        self.ctime_ns = ctime_ns

    def __repr__(self):
        return f"<entry '{self.path}'>"


class Inode(collections.namedtuple("Inode", ("number", "path", "size", "mtime_ns", "category", "similarity", "all_paths"))):
    __slots__ = ()

    @property
    def name(self):
        return self.path.rpartition("/")[2]

    @property
    def paths(self):
        return [self.path] if self.all_paths is None else list(self.all_paths)

    def __repr__(self):
        return f"<inode of '{self.path}'>"


def new_inode(number, path, size, mtime_ns, category, similarity, all_paths):
    paths = None if all_paths is None else tuple(map(decoded, all_paths))
    return Inode(number, decoded(path), size, mtime_ns, category, similarity, paths)


# Calling hooks

FIELDS = Entry.__slots__


def fields_of(entry):
    return [getattr(entry, field, None) for field in FIELDS]



def call_filter(hook, *raw):
    entry = Entry(*raw)
    before = fields_of(entry)
    verdict = hook(entry)
    if fields_of(entry) != before:
        changed = next(field for field, now, then in zip(FIELDS, fields_of(entry), before) if now != then)
        raise Mistake(f"filter changed entry.{changed}, which only transform can")
    if verdict is True or verdict is False:
        return verdict
    raise Mistake(f"filter returned {describe(verdict)} instead of True or False")


def whole(entry, field, least=None, most=None):
    value = getattr(entry, field, None)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Mistake(f"transform set entry.{field} to {describe(value)} instead of a whole number")
    if least is not None and not least <= value <= most:
        raise Mistake(f"transform set entry.{field} to {value}, which is not between {least} and {most}")
    return value


TIME_MIN, TIME_MAX = -(2**63) * 10**9, 2**63 * 10**9 - 1


def call_transform(hook, path, name, type, size, nlink, target, *raw):
    entry = Entry(path, name, type, size, nlink, target, *raw)
    result = hook(entry)
    if result is not None and result is not entry:
        raise Mistake(f"transform returned {describe(result)}; it changes the entry and returns nothing")
    before = Entry(path, name, type, size, nlink, target, *raw)

    def is_changed(*fields):
        return any(getattr(entry, field, None) != getattr(before, field) for field in fields)

    if is_changed("path", "name"):
        raise Mistake("transform changed the name of an entry: a script cannot rename")
    if is_changed("type", "size", "nlink", "target"):
        raise Mistake("transform changed the type, size, nlink or target of an entry, which stay as they are")
    return (
        whole(entry, "permissions", 0, 0o7777),
        whole(entry, "uid", 0, 2**32 - 1),
        whole(entry, "gid", 0, 2**32 - 1),
        whole(entry, "mtime_ns", TIME_MIN, TIME_MAX),
        whole(entry, "atime_ns", TIME_MIN, TIME_MAX),
        whole(entry, "ctime_ns", TIME_MIN, TIME_MAX),
    )


def call_order(hook, raw):
    inodes = [new_inode(*fields) for fields in raw]
    given = tuple(inodes)
    result = hook(inodes)
    if result is None:
        return None
    try:
        ordered = iter(result)
    except TypeError:
        ordered = None
    if ordered is None or isinstance(result, Inode):
        raise Mistake(f"order returned {describe(result)} instead of a list of inodes")
    numbers = []
    for place, inode in enumerate(ordered):
        if not isinstance(inode, Inode) or given[inode.number] is not inode:
            raise Mistake(
                f"order returned a list with {describe(inode)} at {place}, which is none of the inodes that it was given"
            )
        numbers.append(inode.number)
    return numbers


def call_configure(hook, arguments):
    settings = hook({decoded(name): True if value is None else decoded(value) for name, value in arguments})
    if settings is None:
        return []
    if not isinstance(settings, dict):
        raise Mistake(f"it returned a {type(settings).__name__} instead of a dict of options")
    if not all(isinstance(name, str) for name in settings):
        raise Mistake("it returned a dict with keys that are no names of options")

    def text(name, value):
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return str(value)
        raise Mistake(f"it returned a {type(value).__name__} for the option '{name}'")

    taken = []
    for name, value in sorted(settings.items()):
        if isinstance(value, bool):
            taken.append((name, value, []))
        elif isinstance(value, (list, tuple)):
            taken.append((name, None, [text(name, item) for item in value]))
        else:
            taken.append((name, None, [text(name, value)]))
    return taken


CALLERS = {
    "configure": call_configure,
    "filter": call_filter,
    "transform": call_transform,
    "order": call_order,
}


def load(name, directory, source, log, cancelled):
    """Runs a script and returns a function for each of its hooks."""
    threads = set()
    watch(cancelled, threads)

    def guarded(function):
        def call(*arguments):
            thread = threading.get_ident()
            threads.add(thread)
            running.log = log
            try:
                return function(*arguments)
            finally:
                threads.discard(thread)

        return call

    if not isinstance(sys.stdout, Output):
        sys.stdout = Output()
    if directory not in sys.path:
        sys.path.insert(0, directory)
    module = types.ModuleType("mkdwarfs_script")
    module.__file__ = name
    module.logger = Logger(log)
    sys.modules[module.__name__] = module

    def run():
        exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)

    guarded(run)()
    hooks = {}
    for hook, caller in CALLERS.items():
        function = module.__dict__.get(hook)
        if function is None:
            continue
        if not callable(function):
            raise Mistake(f"'{hook}' is a {type(function).__name__} instead of a function")
        hooks[hook] = guarded(lambda *arguments, caller=caller, function=function: caller(function, *arguments))
    return hooks
