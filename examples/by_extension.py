"""Stores files of one extension together, the large ones first: they are alike, and compress better side by side.

    mkdwarfs -i tree -o tree.dwarfs --script by_extension.py
"""


def order(inodes):
    # Sorting keeps what has the same key in the order in which it is.
    return sorted(inodes, key=lambda inode: (extension(inode.name), -inode.size))


def extension(name):
    """What comes behind the last dot, in lower case."""
    _, dot, extension = name.rpartition(".")
    return extension.lower() if dot else ""
