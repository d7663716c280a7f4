"""On what a folder lies: the file system and the device, as the kernel names them."""

import shutil
from pathlib import Path

from gateway.errors import TidegateError

MOUNTS = Path("/proc/self/mounts")

NEEDED = 256 * 1024 * 1024
"""Free bytes below which no crash test begins; it uses a tenth of that."""


def device_of(folder: Path) -> str:
    """Return `<file system> on <device>`; "an unknown file system" where nobody says."""
    resolved = folder.resolve()
    found, longest = "an unknown file system", -1
    if not MOUNTS.exists():
        return found
    for line in MOUNTS.read_text(encoding="utf-8").splitlines():
        device, place, kind, *_ = line.split(" ")
        point = Path(place.replace("\\040", " "))
        if resolved.is_relative_to(point) and len(point.parts) >= longest:
            found, longest = f"{kind} on {device}", len(point.parts)
    return found


def check_free_space(folder: Path) -> None:
    """Raise TidegateError unless there is room enough for a crash test."""
    free = shutil.disk_usage(folder).free
    if free < NEEDED:
        needed, there = NEEDED // 1024**2, free // 1024**2
        raise TidegateError(f"{folder}: {there} MiB free, a crash test needs {needed} MiB")
