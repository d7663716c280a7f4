"""What was committed: one file for each batch, `<checkpoints>/<number>.json`, and the lock.

A batch counts from the moment its file is there, and only as long as the tables still hold the
rows which it tells of (pipeline.plan).
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import PipelineError
from pipeline.staging import sync

VERSION = 1


class Range(NamedTuple):
    """All seqs of a batch for one gateway, epoch and stream lie in this closed range."""

    gateway_id: str
    epoch: str
    stream: str
    seq_min: int
    seq_max: int


@dataclass(frozen=True)
class Commit:
    """What a batch read and what it gave."""

    batch: int
    files: dict[str, int]
    """Landing files by their path below the landing folder, with their size in bytes."""
    rows: dict[str, int]
    """Rows by table."""
    ranges: tuple[Range, ...]


def read_commits(folder: Path) -> dict[int, Commit]:
    """Return the commits by batch; a damaged file is no commit, so its batch is done again.

    Raises PipelineError for a commit of a later version of this program.
    """
    commits = (_read(path) for path in sorted(folder.glob("*.json")))
    return {commit.batch: commit for commit in commits if commit is not None}


def write_commit(folder: Path, commit: Commit) -> None:
    """Put the commit on the disk, whole or not at all."""
    path = _path(folder, commit.batch)
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump({"version": VERSION} | asdict(commit), file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync(folder)


def forget_commit(folder: Path, batch: int) -> None:
    """Remove a commit, if there is one."""
    _path(folder, batch).unlink(missing_ok=True)
    sync(folder)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of these checkpoints; it goes with the process, however that ends.

    Raises PipelineError when another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(
                f"{folder / 'lock'} is held: another tidegate-pipeline works on these tables"
            ) from None
        yield


def _path(folder: Path, batch: int) -> Path:
    return folder / f"{batch:010d}.json"


def _read(path: Path) -> Commit | None:
    try:
        stored = json.loads(path.read_bytes())
        version = stored.pop("version")
        if version > VERSION:
            raise PipelineError(f"{path} has version {version}: this program knows {VERSION}")
        ranges = tuple(Range(*span) for span in stored.pop("ranges"))
        commit = Commit(**stored, ranges=ranges)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return commit if _path(path.parent, commit.batch) == path else None
