"""The bounds of the landing folder in bytes and age, so that unread files do not fill the card."""

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
"""The folder of a gateway's files, below its own."""

SCAN_SECONDS = 600.0
"""Seconds after which the folder is counted again: its reader may have deleted files."""

STEP_SECONDS = 1.0
"""Difference between wall and monotonic clock that shows a step."""

OLDEST = 1_000
"""Files that are deleted between two counts, at most."""

LOW_MARK = 0.95
"""The part of the bound that may remain when files were deleted to make space."""

BLOCK = 512
"""Bytes of the unit in which stat reports a file's size on disk."""


@dataclass(frozen=True, slots=True, order=True)
class LandedFile:
    """A file with its bytes on disk."""

    changed: float
    path: str
    bytes: int


class LandingFolder:
    """Keeps the files of one gateway within bounds, in a thread.

    `bytes` are their bytes on disk by the last count, and what was written since; `deleted` counts
    the deleted files.
    """

    def __init__(self, folder: Path, settings: UplinkSettings) -> None:
        self.bytes = 0
        self.deleted = 0
        self._folder = folder
        self._settings = settings
        self._next_count = 0.0
        self._ahead: float | None = None  # the wall clock's lead over the monotonic one

    def delete_oldest(self, monotonic: float, wall: float) -> None:
        """Delete what is too old or too much before another file is written.

        `wall` is the time in seconds since 1970. Raises LinkError if the bound is reached and the
        policy is to wait for a reader.
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
                    " let the gateway's user write to it (tidegate docs landing files)"
                )
            self._count()

    def wrote(self, path: Path) -> None:
        """Count a file that was written, unless its reader was faster."""
        with contextlib.suppress(OSError):
            self.bytes += path.stat().st_blocks * BLOCK

    @property
    def _full(self) -> bool:
        return self.bytes > self._settings.landing_maximum_bytes

    def _follow_clock(self, monotonic: float, wall: float) -> None:
        """Change the times of the files with the clock, so that a step makes none older or younger.

        Only times that the clock gave before it was set: on a board that begins with 1970, files of
        an earlier start may be later.
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
        """Delete the oldest files until some space is free; return whether there were any."""
        low = LOW_MARK * self._settings.landing_maximum_bytes
        remaining, deleted = self.bytes, self.deleted
        for file in heapq.nsmallest(OLDEST, landed_files(self._folder)):
            if remaining <= low:
                break
            if self._delete(file):
                remaining -= file.bytes
        return self.deleted > deleted

    def _delete(self, file: LandedFile) -> bool:
        """Return whether the file is gone; one that cannot be deleted does not block others."""
        try:
            Path(file.path).unlink(missing_ok=True)  # its reader may have been faster
        except OSError as error:
            logger.warning(
                "%s cannot be deleted for the bounds of its folder: %s", file.path, error
            )
            return False
        self.deleted += 1
        return True


def landed_files(folder: Path) -> Iterator[LandedFile]:
    """Yield the complete files of one gateway; raise OSError if a folder cannot be read."""
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


LANDING = "landing"
"""The default destination: a directory in the data folder."""


def landing_directory(config: UplinkSettings, data: Path) -> Path | None:
    """Return the directory of an uplink without a `url`, None with one."""
    if config.url is not None:
        return None
    return Path(config.directory) if config.directory else data / LANDING
