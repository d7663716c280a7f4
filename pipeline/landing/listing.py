"""The landing folder: which files are there to be read."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.errors import PipelineError
from pipeline.tables.state import Mark

SUFFIXES = (".jsonl", ".parquet")
OTHER_FOLDERS = ("ledger", "clock")
"""The folders within a gateway's folder that hold what it says of itself, not its records."""


@dataclass
class Listing:
    """What a landing folder holds; names are paths below it, with `/`."""

    files: dict[str, Mark] = field(default_factory=dict)
    """The landing files, ledgers and clock records too, in the order of their names."""
    left: dict[str, str] = field(default_factory=dict)
    """What is not read, and why."""


def list_landing(landing: Path) -> Listing:
    """Return the landing files in the folder and in the folders in it, one for each gateway.

    Names that begin with `.` or `_` are work in hand of whoever writes there, and not seen. A
    landing folder that is missing is an empty one. Raises PipelineError when it is not a
    folder, or when a folder cannot be read.
    """
    listing = Listing()
    for entry in _entries(landing):
        if not entry.is_dir():
            _add(listing, entry, entry.name)
            continue
        _add_gateway(listing, landing, entry.name)
    return listing


def kind(name: str) -> str:
    """Return `ledger` or `clock` for a file of what gateways say of themselves, else `records`."""
    parts = name.split("/")
    return parts[1] if len(parts) == 3 and parts[1] in OTHER_FOLDERS else "records"


def _add_gateway(listing: Listing, landing: Path, gateway: str) -> None:
    """Add a gateway's files; those that tell of others first, so that these are there, too."""
    told = []
    for other in OTHER_FOLDERS:
        if (landing / gateway / other).is_dir():
            told += [
                (each, f"{gateway}/{other}/{each.name}")
                for each in _entries(landing / gateway / other)
            ]
    for inner in _entries(landing / gateway):
        if not (inner.name in OTHER_FOLDERS and inner.is_dir()):
            _add(listing, inner, f"{gateway}/{inner.name}")
    for each, name in told:
        _add(listing, each, name)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            seen = [entry for entry in entries if not entry.name.startswith((".", "_"))]
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        raise PipelineError(f"landing folder {folder} is a file, not a folder") from None
    except OSError as error:
        raise PipelineError(f"cannot read landing folder {folder}: {error.strerror}") from None
    return sorted(seen, key=lambda entry: entry.name)


def _add(listing: Listing, entry: os.DirEntry[str], name: str) -> None:
    reason = _reason_to_leave(entry, name)
    if reason is None:
        state = entry.stat()
        # Of a file that everybody may read the system need not be asked once more.
        if state.st_mode & stat.S_IROTH or os.access(entry.path, os.R_OK):
            listing.files[name] = Mark(state.st_size, state.st_mtime_ns)
            return
        reason = "no permission to read it"
    listing.left[name] = reason


def _reason_to_leave(entry: os.DirEntry[str], name: str) -> str | None:
    if entry.is_dir():
        return "a folder deeper than a gateway's"
    if not entry.name.endswith(SUFFIXES[0]):
        suffixes = SUFFIXES if kind(name) == "records" else SUFFIXES[:1]
        if not entry.name.endswith(suffixes):
            return f"its name does not end in {' or '.join(suffixes)}"
    if not entry.is_file():
        return "not a regular file"
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            return "its name is not UTF-8"
    return None
