"""Errors whose text is written for the person who runs the pipeline."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class PipelineError(Exception):
    """Nothing can be done until the person who runs the pipeline changes something: exit 2."""


class BusyError(PipelineError):
    """Another process works on these tables; a service tries again later."""


class JobError(Exception):
    """Spark or an object store gave up; what was committed before it stays: exit 1."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise JobError with the path for an error that names none, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise JobError(f"cannot write {path}: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Return the system's words for an error, also where a library has words of its own."""
    return os.strerror(error.errno) if error.errno else str(error)
