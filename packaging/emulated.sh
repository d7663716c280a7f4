#!/bin/sh
# Builds the wheel with the compiled modules for another architecture and tries it, all on this machine:
# Debian's Python of that architecture runs by qemu-user, Debian's cross compiler compiles. An occasional
# check, of minutes; as root.
#
#   packaging/emulated.sh arm64|armhf
#
# PYTHON is an interpreter with pip, setuptools, setuptools-scm and Cython. The wheels are put into dist/.
set -eu

PYTHON=${PYTHON:-python3}
ROOT=$(cd "$(dirname "$0")/.." && pwd)
DIST=${DIST:-$ROOT/dist}
PORT=${PORT:-19950}
WORK=$(mktemp -d)
gateway=
trap 'kill_gateway; rm -rf "$WORK"' EXIT

kill_gateway() {
    [ -z "$gateway" ] || { kill -9 "$gateway" && wait "$gateway"; } 2>/dev/null || true
}

case "${1:-}" in
    arm64) machine=aarch64 qemu=qemu-aarch64-static compiler=aarch64-linux-gnu-gcc package=gcc-aarch64-linux-gnu ;;
    armhf) machine=armv7l qemu=qemu-arm-static compiler=arm-linux-gnueabihf-gcc package=gcc-arm-linux-gnueabihf ;;
    *) echo "usage: packaging/emulated.sh arm64|armhf" >&2; exit 2 ;;
esac
SYSTEM=$WORK/system
SITE=$WORK/site

tools() {
    apt-get -qq install -y --no-install-recommends "$package" mosquitto-clients >"$WORK/log"
    cd "$WORK"
    apt-get -qq download qemu-user-static 2>/dev/null
    dpkg-deb -x qemu-user-static_*.deb qemu
}

# Debian's Python 3.11 of the other architecture, unpacked and not installed.
foreign_python() {
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
    mkdir -p "$WORK/apt/lists/partial" "$WORK/apt/archives/partial"
    : >"$WORK/apt/status"
    echo "deb [arch=$1 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" >"$WORK/apt/sources"
    for action in update "--yes --download-only install python3-minimal libpython3.11-stdlib libpython3.11-dev"; do
        # shellcheck disable=SC2086 # words on purpose
        apt-get -qq -o Dir::Etc::SourceList="$WORK/apt/sources" -o Dir::Etc::SourceParts=- -o Dir::State="$WORK/apt" \
            -o Dir::State::status="$WORK/apt/status" -o Dir::Cache="$WORK/apt" -o APT::Architecture="$1" \
            -o APT::Architectures="$1" -o APT::Install-Recommends=0 -o APT::Sandbox::User= $action >"$WORK/log"
    done
    for deb in "$WORK"/apt/archives/*.deb; do dpkg-deb -x "$deb" "$SYSTEM"; done
    python3.11 -m compileall -q --invalidation-mode unchecked-hash -x 'test|lib2to3' "$SYSTEM/usr/lib/python3.11" || true
}

foreign() {
    "$WORK/qemu/usr/bin/$qemu" -L "$SYSTEM" "$SYSTEM/usr/bin/python3.11" "$@"
}

put() { # FOLDER PACKAGE…
    folder=$1
    shift
    for tag in manylinux2014 manylinux_2_17 manylinux_2_28 manylinux_2_31 linux; do
        set -- --platform "${tag}_$machine" "$@"
    done
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --target "$folder" --only-binary=:all: \
        --python-version 3.11 --find-links "$DIST" "$@"
}

build() { # TREE
    (
        cd "$1"
        export CC="$compiler" LDSHARED="$compiler -shared" PYTHONPATH="$WORK/tools" TIDEGATE_CYTHON=require
        export CFLAGS="-O1 -I$SYSTEM/usr/include/python3.11 -I$SYSTEM/usr/include"
        foreign -c "from setuptools import build_meta; build_meta.build_wheel('$DIST')"
    ) >"$WORK/log" 2>&1 || { tail -20 "$WORK/log" >&2; exit 1; }
}

start() {
    # not by a function, whose shell would be killed in its place
    PYTHONPATH=$SITE "$WORK/qemu/usr/bin/$qemu" -L "$SYSTEM" "$SYSTEM/usr/bin/python3.11" \
        -c 'from gateway.cli.main import main; raise SystemExit(main())' run \
        --port "$PORT" --data "$WORK/data" >>"$WORK/gateway.log" 2>&1 &
    gateway=$!
    until mosquitto_pub -p "$PORT" -q 1 -t up -m 1 2>/dev/null; do
        kill -0 "$gateway" || { cat "$WORK/gateway.log" >&2; exit 1; }
        sleep 1
    done
}

tools
foreign_python "$1"
put "$WORK/tools" setuptools setuptools-scm 'cython>=3.3,<3.4'
git clone --quiet --no-hardlinks "$ROOT" "$WORK/tidegate"
# Translating is the same on each machine, and slow where it is emulated.
(cd "$WORK/tidegate" && TIDEGATE_CYTHON=require "$PYTHON" setup.py --quiet translate) >"$WORK/log" 2>&1
mkdir -p "$DIST"
build "$WORK/tidegate"
if [ "$machine" = armv7l ]; then # there is no wheel of msgspec
    "$PYTHON" -m pip download --quiet --no-deps --no-binary :all: --no-build-isolation --dest "$WORK" \
        --constraint "$ROOT/packaging/deb/constraints.txt" msgspec
    tar -xzf "$WORK"/msgspec-*.tar.gz -C "$WORK"
    build "$WORK"/msgspec-*/
fi
# shellcheck disable=SC2012 # names that setuptools made
wheel=$(ls -t "$DIST"/tidegate-*_"$machine".whl | head -n 1)
put "$SITE" "$wheel"
python3.11 -m compileall -q --invalidation-mode unchecked-hash "$SITE" || true

start
mosquitto_pub -p "$PORT" -q 2 -r -t kept -m "kept by $machine"
kill_gateway
start # after a kill
mosquitto_sub -p "$PORT" -t kept -C 1 -W 60 | grep "kept by $machine"
grep -m 1 "compiled, commit" "$WORK/gateway.log"
echo "$wheel"
