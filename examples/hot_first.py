"""Stores first what an access log names first, so that a program that starts from the image reads one place.

The log has a path on each line, relative to the input or absolute as the program saw it; the argument `prefix` is
what to take off. It can be made with strace, for example:

    strace -f -e trace=openat -o log program; grep -o '"[^"]*"' log | tr -d '"' > opened
    mkdwarfs -i tree -o tree.dwarfs --script hot_first.py:log=opened,prefix=/mnt/tree
"""

import os

place_of = {}


def configure(args):
    prefix = args.get("prefix", "").rstrip("/")
    with open(args["log"], "rb") as log:
        # Names have any bytes but these two.
        paths = [os.fsdecode(line) for line in log.read().split(b"\n")]
    for path in paths:
        if path and path.startswith(prefix):
            place_of.setdefault(path[len(prefix):].lstrip("/"), len(place_of))


def order(inodes):
    hot = []
    for number, inode in enumerate(inodes):
        # Equal files are one inode with several paths.
        places = [place_of[path] for path in inode.paths if path in place_of]
        if places:
            hot.append((min(places), number))
    logger.info(f"{len(hot)} of {len(inodes)} contents are in the log")
    # What is not returned follows in the order that it has.
    return [inodes[number] for _, number in sorted(hot)]
