#!/bin/sh
# get_azurite.sh [DIR]: puts Azurite, which answers as Azure's blob store does, into DIR (default .tools/azurite).
#
# Landing files in Azure are tried with it. Ends with 1 and one line on standard error when it cannot
# be had; a second run with it in place does nothing.
set -eu

HERE=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
DIR=$(realpath -m -- "${1:-$HERE/.tools/azurite}")

[ ! -x "$DIR/node_modules/.bin/azurite-blob" ] || exit 0
mkdir -p "$DIR"
npm install --silent --no-audit --no-fund --prefix "$DIR" azurite@3.37.0 >"$DIR/log" 2>&1 || {
    echo "get_azurite: npm cannot install azurite; the tests that need it are left out" >&2
    exit 1
}
