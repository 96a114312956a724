"""Prints the manifest of an image: python_manifest.py FOLDER_OF_THE_DECODER IMAGE"""
import json
import sys

sys.path.insert(0, sys.argv[1])
import dwfs

fs = dwfs.FS(open(sys.argv[2], "rb").read())
entries = fs.walk()
for entry in entries:
    for name in ("mtime", "atime", "ctime"):
        if name in entry:  # the format's times are 64-bit numbers that wrap; before 1970 they are negative
            seconds = entry[name] % 2**64
            entry[name] = seconds - 2**64 if seconds >= 2**63 else seconds
manifest = {"format": "%d.%d" % tuple(fs.ver[:2]), "image_offset": fs.off, "entries": entries}
json.dump(manifest, sys.stdout)
