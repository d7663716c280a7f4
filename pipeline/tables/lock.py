"""One process of this machine at a time copies tables, or clears working files of Spark."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import BusyError

COPY = "publish.lock"
SCRATCH = "scratch.lock"
"""Of Spark's working files, while one process clears what others left."""


@contextmanager
def locked(folder: Path, name: str, *, wait: bool = False) -> Iterator[None]:
    """Hold a lock of these checkpoints; it goes with the process, however that ends.

    Raises BusyError when another process holds it, unless it shall wait for that.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                f"{folder / name} is held: another tidegate-pipeline does this"
            ) from None
        yield
