"""A full disk in one line: Python, Arrow, deltalake, Java and Spark each tell it in other words."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake.exceptions import DeltaError

from pipeline.errors import JobError
from pipeline.settings import Settings

ERRORS = (OSError, DeltaError, JobError)
"""What a full disk ends work on the tables with."""
FULL = 64 << 20
"""Bytes: where a disk of this machine has more left, it was one of the cluster's that was full."""
_FULL = re.compile("No space left on device|Disk quota exceeded")


@contextmanager
def full_disk(settings: Settings) -> Iterator[None]:
    """Raise JobError that names the fullest disk, for whatever meets one without room."""
    try:
        yield
    except ERRORS as error:
        if _FULL.search(str(error)) is None:
            raise
        raise JobError(
            f"no space on {_place(settings)}: free some space and run this again; what was"
            " committed is complete"
        ) from error


def _place(settings: Settings) -> str:
    """Return what names the full disk: the fullest of this machine's, or a worker's."""
    folder, free = _fullest(settings)
    if not settings.local and free > FULL:
        return f"a disk of a Spark worker at {settings.master}"
    return f"the disk of {folder}, which has {free:,} bytes left"


def _fullest(settings: Settings) -> tuple[Path, int]:
    """Return the folder that Spark or the pipeline writes to with the least room, and its room."""
    folders = [each for each in (settings.tables.folder, settings.checkpoints) if each is not None]
    if "spark.local.dir" in settings.spark:
        folders.append(Path(settings.spark["spark.local.dir"]))
    room = {folder: shutil.disk_usage(_existing(folder)).free for folder in folders}
    return min(room.items(), key=lambda each: each[1])


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.absolute().parents) if each.exists())
