#!/bin/sh
# get_home_assistant.sh [DIR]: puts Home Assistant's core with its MQTT integration, and the Python
# that it needs, into DIR (default .tools/home-assistant): 440 MB. PYTHON is one with pip.
#
# Only packages that the MQTT integration imports are installed; the programs of tests/support that
# start it say which others they do without. A second run with DIR in place does nothing.
set -eu

VERSION=2026.2.3
HERE=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
DIR=$(realpath -m -- "${1:-$HERE/../../.tools/home-assistant}")
WITHOUT='hass-nabucasa|bluetooth|aiohasupervisor|ha-ffmpeg|hassil|intents|mutagen|numpy|pymicro'
WITHOUT="$WITHOUT|pyspeex|turbojpeg|aifc|telnetlib|^uv|audioop|psutil-home|zeroconf|mdns"

[ ! -e "$DIR/version-$VERSION" ] || exit 0
"$HERE/unpack_debian.sh" python3.13 python3.13 "$DIR/python" "$(dpkg --print-architecture)"
# Pip, run by that Python, chooses wheels for it.
PIP=$(mktemp -d)
trap 'rm -rf "$PIP"' EXIT
ln -s "$("${PYTHON:-python3}" -c 'import os, pip; print(os.path.dirname(pip.__file__))')" "$PIP/pip"
install() {
    PYTHONPATH=$PIP "$DIR/python/python3.13" -m pip install --quiet --disable-pip-version-check \
        --root-user-action ignore --no-compile --only-binary :all: --target "$DIR/packages" "$@"
}
rm -rf "$DIR/packages"
install --no-deps "homeassistant==$VERSION"
sed -n 's/^Requires-Dist: //p' "$DIR/packages/homeassistant-$VERSION.dist-info/METADATA" |
    grep -viE "$WITHOUT" | sed 's/^lru-dict.*/lru-dict/' >"$DIR/requirements.txt"
grep -oE '"paho-mqtt==[0-9.]+"' "$DIR/packages/homeassistant/components/mqtt/manifest.json" |
    tr -d '"' >>"$DIR/requirements.txt"
install --requirement "$DIR/requirements.txt"
touch "$DIR/version-$VERSION"
