#!/bin/sh
# get_micropython.sh [DIR [ARCHITECTURE]]: puts MicroPython's unix port into DIR (default
# .tools/micropython), by default of this machine's architecture.
set -eu

HERE=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
command -v dpkg >/dev/null || { echo "get_micropython: no dpkg here" >&2; exit 1; }
exec "$HERE/unpack_debian.sh" micropython micropython "${1:-$HERE/../../.tools/micropython}" \
    "${2:-$(dpkg --print-architecture)}"
