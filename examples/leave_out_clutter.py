"""Leaves out what version control keeps, compilers make and editors forget.

    mkdwarfs -i project -o project.dwarfs --script leave_out_clutter.py
    mkdwarfs -i project -o project.dwarfs --script leave_out_clutter.py:keep=o,keep_vcs
"""

vcs = {".git", ".hg", ".svn", "CVS", ".bzr"}
made = {"o", "obj", "a", "pyc", "class"}


def configure(args):
    if "keep_vcs" in args:
        vcs.clear()
    # One extension that is wanted after all.
    made.discard(args.get("keep"))
    # What only held objects is empty now.
    return {"remove_empty_dirs": True}


def filter(entry):
    if entry.type == "dir":
        # Nothing below a directory that is left out is looked at.
        return entry.name not in vcs and entry.name != "__pycache__"
    _, dot, extension = entry.name.rpartition(".")
    return not (dot and extension in made or entry.name.endswith("~"))
