#!/bin/sh
# Sets up what a target of the Makefile needs, and says in one line what it cannot.
#
#   tools/setup.sh install EXTRAS [GROUPS]   make .venv with these extras and dependency groups
#   tools/setup.sh extras EXTRAS             add what these extras need to .venv, build nothing
#   tools/setup.sh system                    as root: the Debian packages that tests need
set -eu

VENV=${VENV:-.venv}
PYTHON=${PYTHON:-python3}

fail() {
    echo "$1" >&2
    exit 2
}

# Debian splits venv off Python: `import venv` works without it, making one does not.
need_venv() {
    command -v "$PYTHON" >/dev/null || fail "Python is missing: apt-get install python3 python3-venv"
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "Tidegate needs Python 3.11 or newer; this is $("$PYTHON" --version)"
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing python3-venv"
        apt_install python3-venv
    fi
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || fail "sudo apt-get install -y python3-venv"
}

apt_install() {
    for package in "$@"; do
        if [ -z "${UPDATED:-}" ]; then
            apt-get update -qq || true
            UPDATED=1
        fi
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
            >/dev/null || echo "could not install $package" >&2
    done
}

install() {
    need_venv
    [ -x "$VENV/bin/python" ] || "$PYTHON" -m venv "$VENV"
    # dependency groups came with pip 25.1
    if [ -n "${2:-}" ]; then
        "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
    fi
    if [ "${TIDEGATE_CYTHON:-auto}" != off ]; then
        echo "installing into $VENV, and compiling the hot modules with Cython if there is a compiler:"
        echo "a minute on two fast cores, ten on a Raspberry Pi. TIDEGATE_CYTHON=off does without;"
        echo "plain Python does the same, more slowly."
    fi
    groups=""
    for group in ${2:-}; do groups="$groups --group $group"; done
    # shellcheck disable=SC2086 # words on purpose
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check \
        --editable ".[$1]" $groups
}

# Not by installing the project once more, which would compile it once more.
extras() {
    "$VENV/bin/python" - "$@" <<'END' | "$VENV/bin/python" -m pip install --quiet \
        --disable-pip-version-check --requirement /dev/stdin
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    extras = tomllib.load(file)["project"]["optional-dependencies"]
for name in sys.argv[1].split(","):
    print(*extras[name], sep="\n")
END
}

system() {
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        return 0 # the tests say what is missing and how to get it
    fi
    command -v mosquitto >/dev/null || [ -x /usr/sbin/mosquitto ] || apt_install mosquitto
    command -v mosquitto_sub >/dev/null || apt_install mosquitto-clients
    command -v curl >/dev/null || apt_install curl
    if ! command -v java >/dev/null; then
        apt_install openjdk-17-jre-headless 2>/dev/null
        command -v java >/dev/null || apt_install openjdk-21-jre-headless
    fi
    if ! command -v cc >/dev/null || ! python3-config --includes >/dev/null 2>&1; then
        apt_install gcc python3-dev # the build with Cython is tested too
    fi
    command -v strace >/dev/null || apt_install strace
    command -v zsh >/dev/null || apt_install zsh # which complete commands, as bash does
    command -v fish >/dev/null || apt_install fish
    command -v tmux >/dev/null || apt_install tmux
    command -v groff >/dev/null || apt_install groff-base
    command -v systemd-analyze >/dev/null || apt_install systemd
    command -v dbus-daemon >/dev/null || apt_install dbus
    command -v chromium >/dev/null || apt_install chromium # reports are seen in a browser
    command -v systemd-nspawn >/dev/null || apt_install systemd-container
}

case "${1:-}" in
    install) install "$2" "${3:-}" ;;
    extras) extras "$2" ;;
    system) system ;;
    *) fail "usage: tools/setup.sh install EXTRAS [GROUPS] | extras EXTRAS | system" ;;
esac
