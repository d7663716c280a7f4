"""The disk or card under a folder, and its file system, as Linux reports them."""

import os
import re
from pathlib import Path
from typing import NamedTuple

SYS_BLOCK = Path("/sys/dev/block")

SECTOR = 512
"""Bytes of a sector in /sys/block, whatever the device's own (Documentation/block/stat.rst)."""

SECTORS_WRITTEN = 6
"""Index of the sectors written in a device's `stat` (Documentation/block/stat.rst)."""

FLUSHES = 15
"""Index of completed flush requests, which fsync makes; since Linux 5.5, whole devices only."""


class BlockDevice(NamedTuple):
    """The whole device, not the partition, of a folder's file system."""

    name: str
    folder: Path  # in /sys

    @property
    def size(self) -> int:
        """Size in bytes."""
        return int((self.folder / "size").read_text()) * SECTOR

    def written(self) -> int:
        """Return the bytes written to it since the board started, by all programs."""
        return int(self._stat()[SECTORS_WRITTEN]) * SECTOR

    def flushes(self) -> int | None:
        """Return how often its cache was flushed since then; None on an old kernel."""
        fields = self._stat()
        return int(fields[FLUSHES]) if len(fields) > FLUSHES else None

    def worn(self) -> int | None:
        """Return the used percentage of an eMMC's life, None if the device does not report it.

        The device reports steps of a tenth, for two kinds of memory; this is the upper end of the
        worse one (JEDEC eMMC 5.0, DEVICE_LIFE_TIME_EST).
        """
        try:
            steps = (self.folder / "device" / "life_time").read_text().split()
            worst = max(int(step, 16) for step in steps)
        except (OSError, ValueError):
            return None
        return min(worst, 11) * 10 or None  # 0 is "not defined"; 11 is "beyond its life"

    def _stat(self) -> list[str]:
        return (self.folder / "stat").read_text().split()


def block_device(path: Path, sys_block: Path = SYS_BLOCK) -> BlockDevice | None:
    """Return the device under `path`; None without one, as on a network or in memory."""
    number = path.stat().st_dev
    folder = sys_block / f"{os.major(number)}:{os.minor(number)}"
    try:
        folder = folder.resolve(strict=True)
    except OSError:
        return None
    if (folder / "partition").exists():
        folder = folder.parent
    return BlockDevice(folder.name, folder)


MOUNT_INFO = Path("/proc/self/mountinfo")

_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
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
