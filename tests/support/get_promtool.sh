#!/bin/sh
# get_promtool.sh [DIR]: puts Prometheus' promtool from Debian's package into DIR (default .tools/promtool).
#
# The package itself would start a Prometheus. Ends with 1 and one line on standard error when the
# package cannot be had; a second run with DIR in place does nothing.
set -eu

HERE=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
DIR=$(realpath -m -- "${1:-$HERE/.tools/promtool}")

[ ! -x "$DIR/promtool" ] || exit 0
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK"
if ! apt-get -qq download prometheus >log 2>&1 || ! dpkg-deb -x prometheus_*.deb tree; then
    echo "no promtool: apt-get download prometheus failed: $(tail -n 1 log)" >&2
    exit 1
fi
mkdir -p "$DIR"
mv tree/usr/bin/promtool "$DIR/promtool"
