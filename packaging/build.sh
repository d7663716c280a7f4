#!/bin/sh
# Builds the files of a release into dist/, from the last commit. Two builds of a commit are the same bytes.
# The version is that of the commit's tag, such as v0.1.0. Without a tag it ends with .dev and the commit.
#
#   packaging/build.sh wheel       the wheel of plain Python, and the source distribution
#   packaging/build.sh compiled    the wheel with the compiled modules, for this machine and Python
#   packaging/build.sh deb [ARCH]  the Debian package for amd64, arm64 or armhf (default: this machine)
#   packaging/build.sh image       the container image tidegate:VERSION, from the wheel in dist/; IMAGE_OPTIONS
#                                  are more options, such as --build-arg BASE=localhost/python
#
# PYTHON is an interpreter that has setuptools, setuptools-scm and Cython. A Debian package is for
# the Python of one Debian release: TARGET_PYTHON (3.11, of Debian 12).
set -eu

PYTHON=${PYTHON:-python3}
TARGET_PYTHON=${TARGET_PYTHON:-3.11}
ROOT=$(cd "$(dirname "$0")/.." && pwd)
DIST=${DIST:-$ROOT/dist}
EXTRAS=serial,tui,websocket,proxy,modbus,regex
ENVIRONMENT=/usr/lib/tidegate
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
umask 022
SOURCE_DATE_EPOCH=$(git -C "$ROOT" log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC PYTHONHASHSEED=0

fail() {
    echo "$1" >&2
    exit 2
}

# What is not committed, and what an earlier build left, is not there; from here on ROOT is the commit.
checkout() {
    git clone --quiet --no-hardlinks "$ROOT" "$WORK/tidegate"
    ROOT=$WORK/tidegate
    release=$(git -C "$ROOT" describe --exact-match --tags --match 'v*' 2>/dev/null || true)
    if [ -n "$release" ] && grep -q '^Maintainer: .*\.invalid>' "$ROOT/packaging/deb/control"; then
        fail "$release has no maintainer: put a name and an address into packaging/deb/control, commit, and tag that"
    fi
    mkdir -p "$DIST"
}

build() { # KIND
    (cd "$WORK/tidegate" && "$PYTHON" -c "from setuptools import build_meta; build_meta.build_$1('built')") >"$WORK/log" 2>&1 ||
        { cat "$WORK/log" >&2; fail "the $1 could not be built"; }
}

wheel() {
    checkout
    TIDEGATE_CYTHON=off build wheel
    build sdist
    for archive in "$WORK"/tidegate/built/*.tar.gz; do repack "$archive"; done
    mv "$WORK"/tidegate/built/* "$DIST"
    bill
}

compiled() {
    checkout
    TIDEGATE_CYTHON=require build wheel
    mv "$WORK"/tidegate/built/* "$DIST"
}

# setuptools writes times and users of the moment into a source distribution.
repack() { # ARCHIVE
    mkdir "$WORK/repacked"
    tar -xzf "$1" -C "$WORK/repacked"
    # shellcheck disable=SC2012 # one folder, whose name setuptools made
    folder=$(ls "$WORK/repacked")
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        -C "$WORK/repacked" -cf - "$folder" | gzip -9n >"$1"
    rm -r "$WORK/repacked"
}

# The list of what is inside (CycloneDX), beside each wheel.
bill() {
    for file in "$DIST"/tidegate-*.whl; do
        "$PYTHON" "$ROOT/packaging/bill_of_materials.py" wheel "$file" "$EXTRAS" >"${file%.whl}.cdx.json"
    done
}

newest_wheel() { # PATTERN
    # shellcheck disable=SC2012 # names that setuptools made
    ls -t "$DIST"/tidegate-*-$1.whl 2>/dev/null | head -1
}

deb() { # [ARCH]
    architecture=${1:-$(dpkg --print-architecture)}
    case $architecture in
        amd64) machine=x86_64 ;;
        arm64) machine=aarch64 ;;
        armhf) machine=armv7l EXTRAS=$(echo "$EXTRAS" | sed 's/,regex//') ;; # google-re2 has no wheel for it
        *) fail "$architecture: a package is built for amd64, arm64 or armhf" ;;
    esac
    checkout
    digits=$(echo "$TARGET_PYTHON" | tr -d .)
    wheel=$(newest_wheel "cp$digits-cp$digits-*linux*_$machine")
    [ -n "$wheel" ] || wheel=$(newest_wheel py3-none-any)
    [ -n "$wheel" ] || fail "there is no wheel in $DIST: make package"

    tree=$WORK/tree
    site=$tree$ENVIRONMENT/lib/python$TARGET_PYTHON/site-packages
    install_tree "$site" "$wheel"
    environment
    files
    version=$(sed -n 's/^Version: //p' "$site"/tidegate-*.dist-info/METADATA | sed 's/\.dev/~dev/; s/rc/~rc/')
    control "$version" "$architecture"
    name=tidegate_${version}_$architecture
    "$PYTHON" "$ROOT/packaging/bill_of_materials.py" environment "$site" >"$DIST/$name.cdx.json"
    find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$tree" "$DIST/$name.deb" >/dev/null
    echo "$DIST/$name.deb"
}

install_tree() { # SITE WHEEL
    # What has no wheel for a platform is built where pip runs there, or lies in dist/: emulated.sh puts it there.
    options="--only-binary=:all: --python-version $TARGET_PYTHON"
    for platform in manylinux2014 manylinux_2_17 manylinux_2_28 manylinux_2_31 linux; do
        options="$options --platform ${platform}_$machine"
    done
    [ "$machine" != armv7l ] || [ "$(uname -m)" != armv7l ] || options=
    # shellcheck disable=SC2086 # words on purpose
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-compile --target "$1" $options \
        --constraint "$ROOT/packaging/deb/constraints.txt" --find-links "$DIST" ${PIP_OPTIONS:-} "$2[$EXTRAS]" pip ||
        fail "the packages for $architecture could not be had"
    rm -rf "$1/bin"
    find "$1" -path '*.dist-info/*' \( -name RECORD -o -name direct_url.json -o -name REQUESTED \) -delete
    mkdir -p "$tree/usr/share"
    mv "$1/share" "$tree$ENVIRONMENT/share"
    "$PYTHON" -m compileall -q -s "$tree" -p / --invalidation-mode unchecked-hash "$1"
}

# An environment as `python3 -m venv` makes it, for a place where it is not yet.
environment() {
    mkdir -p "$tree$ENVIRONMENT/bin" "$tree/usr/bin"
    printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = %s\n' "$TARGET_PYTHON" \
        >"$tree$ENVIRONMENT/pyvenv.cfg"
    ln -s "/usr/bin/python$TARGET_PYTHON" "$tree$ENVIRONMENT/bin/python"
    printf '#!%s/bin/python -I\nimport sys\n\nfrom gateway.cli.main import main\n\nsys.exit(main())\n' \
        "$ENVIRONMENT" >"$tree$ENVIRONMENT/bin/tidegate"
    chmod 755 "$tree$ENVIRONMENT/bin/tidegate"
    ln -s "../lib/tidegate/bin/tidegate" "$tree/usr/bin/tidegate"
}

files() {
    put 644 systemd/tidegate.service usr/lib/systemd/system/tidegate.service
    put 644 systemd/sysusers.conf usr/lib/sysusers.d/tidegate.conf
    put 644 systemd/tmpfiles.conf usr/lib/tmpfiles.d/tidegate.conf
    put 644 packaging/deb/udev.rules usr/lib/udev/rules.d/60-tidegate.rules
    put 640 examples/gateway.toml etc/tidegate/gateway.toml
    put 644 LICENSE usr/share/doc/tidegate/copyright
    put 644 CHANGELOG.md usr/share/doc/tidegate/CHANGELOG.md
    completion bash bash-completion/completions/tidegate
    completion zsh zsh/vendor-completions/_tidegate
    completion fish fish/vendor_completions.d/tidegate.fish
    mkdir -p "$tree/usr/share/man/man1"
    PYTHONPATH=$ROOT "$PYTHON" "$ROOT/packaging/manual.py" | gzip -9n >"$tree/usr/share/man/man1/tidegate.1.gz"
    sed -i '/^#:schema /d' "$tree/etc/tidegate/gateway.toml"
    chmod 750 "$tree/etc/tidegate"
}

completion() { # SHELL DESTINATION
    mkdir -p "$(dirname "$tree/usr/share/$2")"
    # -P: not the folder where this was called, which may be a checkout with other files
    PYTHONPATH=$ROOT "$PYTHON" -P -c 'from gateway.cli.main import main; raise SystemExit(main())' completion "$1" \
        >"$tree/usr/share/$2"
}

put() { # MODE SOURCE DESTINATION
    install -D -m "$1" "$ROOT/$2" "$tree/$3"
}

control() { # VERSION ARCHITECTURE
    next=$("$PYTHON" -c "a, b = '$TARGET_PYTHON'.split('.'); print(f'{a}.{int(b) + 1}')")
    mkdir "$tree/DEBIAN"
    sed -e "s/@VERSION@/$1/" -e "s/@ARCHITECTURE@/$2/" -e "s/@PYTHON@/$TARGET_PYTHON/" -e "s/@NEXT@/$next/" \
        -e "s/@SIZE@/$(du -sk --apparent-size "$tree" | cut -f1)/" "$ROOT/packaging/deb/control" >"$tree/DEBIAN/control"
    echo /etc/tidegate/gateway.toml >"$tree/DEBIAN/conffiles"
    for script in postinst prerm postrm; do
        install -m 755 "$ROOT/packaging/deb/$script" "$tree/DEBIAN/$script"
    done
}

image() {
    wheel=$(newest_wheel py3-none-any)
    [ -n "$wheel" ] || fail "there is no wheel in $DIST: make package"
    checkout
    mkdir "$WORK/context"
    cp "$wheel" "$ROOT/packaging/oci/health.py" "$WORK/context"
    tag=$(basename "$wheel" | cut -d- -f2 | tr + -)
    # The format of OCI has no health check.
    same="--format docker --timestamp $SOURCE_DATE_EPOCH"
    if command -v buildah >/dev/null; then
        program="buildah build $same"
    elif command -v podman >/dev/null; then
        program="podman build $same"
    elif command -v docker >/dev/null; then
        program="docker build"
    else
        fail "an image is built by buildah, podman or docker: apt-get install buildah"
    fi
    # shellcheck disable=SC2086 # words on purpose
    $program ${IMAGE_OPTIONS:-} -f "$ROOT/packaging/oci/Containerfile" -t "tidegate:$tag" "$WORK/context"
}

case "${1:-}" in
    wheel | compiled | deb | image) "$@" ;;
    *) fail "usage: packaging/build.sh wheel | compiled | deb [amd64|arm64|armhf] | image" ;;
esac
