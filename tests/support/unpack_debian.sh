#!/bin/sh
# unpack_debian.sh PACKAGE PROGRAM DIR ARCHITECTURE: puts a program of Debian trixie into DIR.
#
# The package and its libraries are unpacked, not installed, and run by their own dynamic linker, so
# any Debian with apt will do, with root or without. The mirror is the one that apt is set up with.
# Ends with 1 and one line on standard error when that is out of reach; a second run with DIR in
# place does nothing.
set -eu

SUITE=trixie
PACKAGE=$1
PROGRAM=$2
DIR=$(realpath -m -- "$3")
ARCHITECTURE=$4

fail() {
    echo "$PACKAGE: $1; the tests that need it are left out" >&2
    exit 1
}

if [ -x "$DIR/$PROGRAM" ] && "$DIR/$PROGRAM" -c pass; then
    exit 0
fi
command -v apt-get >/dev/null || fail "no apt-get here"
command -v dpkg-deb >/dev/null || fail "no dpkg-deb here"

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
MIRROR=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 !~ /-security$/ { print $2; exit }')
[ -n "$MIRROR" ] || fail "apt has no source of packages"
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$KEYRING" ] || fail "no $KEYRING (package debian-archive-keyring)"

# A world of apt's own: nothing of the system's is read but the way to the mirror, or changed.
mkdir -p "$WORK/etc/apt.conf.d" "$WORK/etc/preferences.d" "$WORK/state/lists/partial" \
    "$WORK/cache/archives/partial" "$WORK/root"
: >"$WORK/state/status"
echo "deb [arch=$ARCHITECTURE signed-by=$KEYRING] $MIRROR $SUITE main" >"$WORK/etc/sources.list"
apt-config dump --format '%F "%v";%n' Acquire >"$WORK/apt.conf"
cat >>"$WORK/apt.conf" <<END
Dir::Etc "$WORK/etc";
Dir::Etc::sourcelist "sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "$WORK/state";
Dir::State::status "$WORK/state/status";
Dir::Cache "$WORK/cache";
APT::Architecture "$ARCHITECTURE";
APT::Architectures { "$ARCHITECTURE"; };
APT::Install-Recommends "0";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "2";
END
export APT_CONFIG="$WORK/apt.conf"

apt-get -qq update >"$WORK/log" 2>&1 || fail "apt cannot reach $SUITE ($(head -n 1 "$WORK/log"))"
apt-get -qq -y --download-only install "$PACKAGE" >"$WORK/log" 2>&1 ||
    fail "apt cannot fetch it ($(head -n 1 "$WORK/log"))"
for package in "$WORK"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$WORK/root"
done

mkdir -p "$(dirname -- "$DIR")"
rm -rf "$DIR"
mkdir "$DIR"
mv "$WORK/root/usr" "$DIR/usr"
LINKER=$(cd "$DIR" && find usr/lib -name 'ld-linux*.so.*' | head -n 1)
[ -n "$LINKER" ] || fail "the packages hold no dynamic linker"
cat >"$DIR/$PROGRAM" <<END
#!/bin/sh
HERE=\$(CDPATH='' cd -- "\$(dirname -- "\$(readlink -f -- "\$0")")" && pwd)
exec "\$HERE/$LINKER" --library-path "\$HERE/$(dirname -- "$LINKER")" "\$HERE/usr/bin/$PROGRAM" "\$@"
END
chmod +x "$DIR/$PROGRAM"
"$DIR/$PROGRAM" -c 'import sys; print(sys.version)' >&2 || { rm -rf "$DIR"; fail "what was fetched does not run"; }
