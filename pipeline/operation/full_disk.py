"""Work on the tables: its lease, and in one line that a disk is full or a store is away."""

import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from deltalake.exceptions import DeltaError

from pipeline.errors import JobError
from pipeline.place import store_errors
from pipeline.settings import Settings
from pipeline.tables.lease import held

ERRORS = (OSError, DeltaError, JobError)
"""What a full disk ends work on the tables with."""
FULL = 64 << 20
"""Bytes: where a disk of this machine has more left, it was one of the cluster's that was full."""
_FULL = re.compile("No space left on device|Disk quota exceeded")


@contextmanager
def working(settings: Settings) -> Iterator[None]:
    """Hold the tables' lease; raise JobError in one line for a full disk, or a store that fails."""
    store: AbstractContextManager[None] = nullcontext()
    if settings.tables.folder is None:
        store = store_errors(f"cannot work on {settings.tables}")
    with full_disk(settings), store, held(settings.tables):
        yield


@contextmanager
def full_disk(settings: Settings) -> Iterator[None]:
    """Raise JobError that names the fullest disk, for whatever meets one without room.

    Python, Arrow, deltalake, Java and Spark each tell it in other words.
    """
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
