"""One process at a time works on the tables."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import BusyError


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of these checkpoints; it goes with the process, however that ends.

    Raises BusyError when another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                f"{folder / 'lock'} is held: another tidegate-pipeline works on these tables"
            ) from None
        yield
