"""Processes with a part of a core, by control groups of the kernel, version 1 or 2."""

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
"""In each of these times a group runs for its part of them, on all cores together."""
SHARES, WEIGHT = 102_400, 10_000
"""A group goes before others' processes, a hundred times in version 1 and 2; it gets no more than
its bound by that, but that on a busy machine, too."""
ENDING_SECONDS = 30
"""Killed processes may be there a moment longer."""


class QuotaError(Exception):
    """There is no control group in which CPU time can be bounded."""


class Group:
    """A control group; what its processes start is in it, too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, pid: int) -> None:
        """Let a process run in the group."""
        (self._folder / "cgroup.procs").write_text(str(pid))


@contextmanager
def group(name: str, cores: float, root: Path = ROOT) -> Iterator[Group]:
    """Make a group with so many cores, and remove it after the block once its processes end.

    Raises QuotaError where that cannot be done, mostly for want of rights.
    """
    try:
        folder = _made(name, round(cores * PERIOD_US), root)
    except OSError as error:
        raise QuotaError(
            f"cannot bound CPU time below {root}: {error}; this needs root and the controller"
            " `cpu` of cgroup version 1 or 2"
        ) from error
    try:
        yield Group(folder)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    last = time.monotonic() + ENDING_SECONDS
    while True:
        try:
            folder.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > last:
                raise
            time.sleep(0.1)
        else:
            return


def _made(name: str, quota_us: int, root: Path) -> Path:
    if (root / "cpu/cpu.shares").exists():
        folder = root / "cpu" / name
        folder.mkdir()
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (folder / "cpu.cfs_quota_us").write_text(str(quota_us))
        (folder / "cpu.shares").write_text(str(SHARES))
        return folder
    (root / "cgroup.subtree_control").write_text("+cpu")
    folder = root / name
    folder.mkdir()
    (folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
    (folder / "cpu.weight").write_text(str(WEIGHT))
    return folder
