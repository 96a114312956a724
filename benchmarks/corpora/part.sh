#!/bin/bash
# usage: part.sh CORPUS DEST PATH... - parts of another corpus, which must be there: for jobs over mounts, of which a tree of
# half a gigabyte shows as much
set -euo pipefail
source=$(dirname "$2")/$1
mkdir -p "$2"
dest=$(realpath "$2")
[ -d "$source" ] || { echo "make it first: cargo xtask corpora $1" >&2; exit 1; }
shift 2
cd "$source"
cp -a --parents "$@" "$dest"
