#!/bin/sh
# get_clients.sh [DIR]: puts the client libraries MQTT.js and aiomqtt into DIR (default .tools/clients).
#
# Channels are tried with them. Ends with 1 and one line on standard error when one cannot be had; a
# second run with both in place does nothing.
set -eu

HERE=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
DIR=$(realpath -m -- "${1:-$HERE/.tools/clients}")
PYTHON=${PYTHON:-python3}

mkdir -p "$DIR"
LOG=$(mktemp)
trap 'rm -f "$LOG"' EXIT
[ -d "$DIR/aiomqtt" ] || "$PYTHON" -m pip install --quiet --no-deps --target "$DIR" aiomqtt==2.5.1 >"$LOG" 2>&1 || {
    echo "get_clients: pip cannot install aiomqtt; the tests that need it are left out" >&2
    exit 1
}
[ -d "$DIR/node_modules/mqtt" ] || npm install --silent --prefix "$DIR" mqtt@5.16.0 >"$LOG" 2>&1 || {
    echo "get_clients: npm cannot install mqtt; the tests that need it are left out" >&2
    exit 1
}
