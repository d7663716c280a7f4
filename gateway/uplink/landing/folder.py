"""The bounds of the landing folder in bytes and age, so that nobody's reading fills no card."""

import contextlib
import heapq
import logging
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.settings.uplink import WAIT, UplinkSettings
from gateway.uplink.errors import LinkError

logger = logging.getLogger(__name__)

FOLDERS = ("", "ledger", "clock")
"""Where a gateway's files are, below its own folder."""

SCAN_SECONDS = 600.0
"""Seconds after which the folder is counted anew: its reader may have deleted files."""

STEP_SECONDS = 1.0
"""By how much the wall clock must leave the monotonic one for it to have been set."""

OLDEST = 1_000
"""Files that are deleted between two counts, at most."""

LOW_MARK = 0.95
"""The part of the bound that may be left when files were deleted to make room."""

BLOCK = 512
"""Bytes of the unit in which stat tells what a file takes of the disk."""


@dataclass(frozen=True, slots=True, order=True)
class LandedFile:
    """A file with the bytes that it takes of the disk."""

    changed: float
    path: str
    bytes: int


class LandingFolder:
    """Keeps the files of one gateway within bounds, in a thread.

    `bytes` are what they take of the disk by the last count and what was written since;
    `deleted` counts the files that were deleted.
    """

    def __init__(self, folder: Path, settings: UplinkSettings) -> None:
        self.bytes = 0
        self.deleted = 0
        self._folder = folder
        self._settings = settings
        self._next_count = 0.0
        self._ahead: float | None = None  # the wall clock, of the monotonic one

    def delete_oldest(self, monotonic: float, wall: float) -> None:
        """Delete what is too old or too much before another file is written.

        `wall` is the time in seconds since 1970. Raises LinkError where the bound is reached and
        the policy is to wait for a reader.
        """
        self._follow_clock(monotonic, wall)
        if monotonic < self._next_count and not self._full:
            return
        self._next_count = monotonic + SCAN_SECONDS
        self._delete_old(wall)
        self._count()
        if self._full and self._settings.landing_when_full == WAIT:
            raise LinkError(
                f"{self._folder} holds {self.bytes} bytes, and landing_maximum_bytes is"
                f" {self._settings.landing_maximum_bytes}: it waits until files are removed"
            )
        while self._full:
            if not self._delete_oldest():
                raise LinkError(
                    f"{self._folder} holds {self.bytes} bytes, landing_maximum_bytes is"
                    f" {self._settings.landing_maximum_bytes}, and no file of it can be deleted:"
                    " let the gateway's user write to it"
                )
            self._count()

    def wrote(self, path: Path) -> None:
        """Count a file that was written, unless its reader was quicker."""
        with contextlib.suppress(OSError):
            self.bytes += path.stat().st_blocks * BLOCK

    @property
    def _full(self) -> bool:
        return self.bytes > self._settings.landing_maximum_bytes

    def _follow_clock(self, monotonic: float, wall: float) -> None:
        """Set the times of the files with the clock, so that a step makes none older or younger.

        Those alone that the clock has given before it was set: files of an earlier start may be
        later than that, where a board begins with 1970.
        """
        ahead = wall - monotonic
        step = 0.0 if self._ahead is None else ahead - self._ahead
        if self._ahead is None or abs(step) >= STEP_SECONDS:
            self._ahead = ahead
        if not self._settings.landing_maximum_age or abs(step) < STEP_SECONDS:
            return
        first = -math.inf if step > 0 else wall
        for file in list(landed_files(self._folder)):
            if first < file.changed <= wall - step:
                with contextlib.suppress(FileNotFoundError):  # its reader has deleted it
                    os.utime(file.path, (file.changed + step,) * 2)

    def _delete_old(self, wall: float) -> None:
        age = self._settings.landing_maximum_age
        if age:
            for file in list(landed_files(self._folder)):
                if file.changed < wall - age:
                    self._delete(file)

    def _count(self) -> None:
        self.bytes = sum(file.bytes for file in landed_files(self._folder))

    def _delete_oldest(self) -> bool:
        """Delete the oldest files until some room is free; return whether there were any."""
        low = LOW_MARK * self._settings.landing_maximum_bytes
        left, deleted = self.bytes, self.deleted
        for file in heapq.nsmallest(OLDEST, landed_files(self._folder)):
            if left <= low:
                break
            if self._delete(file):
                left -= file.bytes
        return self.deleted > deleted

    def _delete(self, file: LandedFile) -> bool:
        """Return whether the file is gone; one that cannot be deleted hinders no other."""
        try:
            Path(file.path).unlink(missing_ok=True)  # its reader may have been quicker
        except OSError as error:
            logger.warning(
                "%s cannot be deleted for the bounds of its folder: %s", file.path, error
            )
            return False
        self.deleted += 1
        return True


def landed_files(folder: Path) -> Iterator[LandedFile]:
    """Give the whole files of one gateway; raise OSError if a folder cannot be read."""
    for name in FOLDERS:
        place = folder / name
        if not place.is_dir():
            continue
        with os.scandir(place) as entries:
            for entry in entries:
                if not entry.name.endswith(".jsonl") or entry.name.startswith("."):
                    continue
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # its reader has deleted it
                yield LandedFile(found.st_mtime, entry.path, found.st_blocks * BLOCK)
