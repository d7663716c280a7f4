"""The file system of a folder (proc(5), /proc/self/mountinfo)."""

import re
from dataclasses import dataclass
from pathlib import Path

MOUNT_INFO = Path("/proc/self/mountinfo")

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: where, of what kind, from what, with which options."""

    target: Path
    kind: str
    source: str
    options: frozenset[str]


UNKNOWN = Mount(Path("/"), "unknown", "unknown", frozenset())


def mount_of(path: Path, mount_info: Path = MOUNT_INFO) -> Mount:
    """Return the file system of `path`, UNKNOWN if Linux does not report it."""
    try:
        lines = mount_info.read_text().splitlines()
    except OSError:
        return UNKNOWN
    place = path.resolve()
    found = UNKNOWN
    for mount in map(_mount, lines):
        # A later one on the same folder hides the earlier.
        if place.is_relative_to(mount.target) and mount.target.is_relative_to(found.target):
            found = mount
    return found


def _mount(line: str) -> Mount:
    before, _, after = line.partition(" - ")
    fields, more = before.split(), after.split()
    options = frozenset([*fields[5].split(","), *more[2].split(",")])
    return Mount(Path(_unescape(fields[4])), more[0], _unescape(more[1]), options)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
