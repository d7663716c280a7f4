#!/bin/sh
# get_umqtt.sh [DIR]: puts MicroPython's MQTT client, umqtt.simple, into DIR (default .tools/umqtt).
#
# PyPI has it as a source package of the kind that MicroPython's own installer took, without a
# setup.py: pip fetches and unpacks it, finds nothing to build, and is told to leave it there. Ends
# with 1 and one line on standard error when that fails; a second run with DIR in place does nothing.
set -eu

PACKAGE=micropython-umqtt.simple==1.3.4
HERE=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
DIR=$(realpath -m -- "${1:-$HERE/.tools/umqtt}")
PYTHON=${PYTHON:-python3}

[ ! -e "$DIR/umqtt/simple.py" ] || exit 0
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
TMPDIR="$WORK" "$PYTHON" -m pip download --quiet --no-deps --no-clean --dest "$WORK" "$PACKAGE" \
    >"$WORK/log" 2>&1 || true # it always ends so: there is nothing to build
FOUND=$(find "$WORK" -path '*/umqtt/simple.py' | head -n 1)
if [ -z "$FOUND" ]; then
    echo "get_umqtt: pip cannot fetch $PACKAGE; the tests that need it are left out" >&2
    exit 1
fi
mkdir -p "$DIR/umqtt"
cp "$FOUND" "$DIR/umqtt/simple.py"
