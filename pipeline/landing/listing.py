"""The landing folder: which files are there to be read."""

import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from pipeline.errors import PipelineError
from pipeline.place import Found, Place
from pipeline.tables.state import Mark

SUFFIXES = (".jsonl", ".parquet")
OTHER_SUFFIXES = SUFFIXES[:1]
"""The suffix of what a gateway says of itself."""
DEEPER = "a folder deeper than a gateway's"
OTHER_FOLDERS = ("ledger", "clock")
"""The folders within a gateway's folder that hold what it says of itself, not its records."""


SETTLED_SECONDS = 3_600
"""A folder in which nothing changed for so long, and all of which was read, is not listed again
before it changes."""

SETTLED_DAYS = 2
"""A collector's folder of an earlier day in a store, all of which was read, is listed once a day
from then on: a store does not say which folders changed."""
_DAY_NS = 86_400 * 10**9
LISTINGS = 16
"""Folders of a store that are listed at the same time."""

Settled = Mapping[str, int]
"""Folders of which all was read, with the time in ns of their last change, or of their listing."""


@dataclass
class Listing:
    """What a landing folder holds; names are paths below it, with `/`."""

    files: dict[str, Mark] = field(default_factory=dict)
    """The landing files, ledgers and clock records too; those of a folder by their names."""
    left: dict[str, str] = field(default_factory=dict)
    """What is not read, and why."""
    settled: dict[str, int] = field(default_factory=dict)
    """The folders that are settled once all of these files are read."""


def list_landing(landing: Place, settled: Settled | None = None) -> Listing:
    """Return the landing files in the folder and in the folders in it, one for each gateway.

    Those of `settled` folders are left out. Names that begin with `.` or `_` are work in hand of
    whoever writes there, and not seen. A landing folder that is missing is an empty one, and a file
    that is moved away meanwhile is not there. Raises PipelineError when it is not a folder, or when
    a folder cannot be read.
    """
    root = landing.folder
    if root is None:
        return _list_store(landing, settled or {})
    listing = Listing()
    known = settled or {}
    own = []
    for name in _names(root):
        folder = root / name
        if not folder.is_dir():
            own.append(name)
            continue
        # What tells of others is listed before these, so they are there.
        others = [other for other in OTHER_FOLDERS if (folder / other).is_dir()]
        for other in others:
            _add_folder(listing, folder / other, f"{name}/{other}/", known, OTHER_SUFFIXES)
        _add_folder(listing, folder, f"{name}/", known, SUFFIXES, others)
    _add(listing, root, "", own, SUFFIXES)
    return listing


def _list_store(landing: Place, settled: Settled) -> Listing:
    """Return the landing files of a place in a store, which has no links and no permissions."""
    now = time.time_ns()
    listing = Listing()
    own, folders = landing.listed()
    _add_found(listing, "", own)
    names = [
        name
        for name in folders
        if not name.startswith((".", "_")) and now - settled.get(f"{name}/", 0) > _DAY_NS
    ]
    with ThreadPoolExecutor(LISTINGS) as pool:
        listed = pool.map(lambda name: (landing / name).listed(recursive=True)[0], names)
        for name, found in zip(names, listed, strict=True):
            left = len(listing.left)
            _add_found(listing, f"{name}/", found)
            if len(listing.left) == left and _is_past(name, now):
                listing.settled[f"{name}/"] = now
    return listing


def _is_past(name: str, now: int) -> bool:
    """Say whether a folder is of a day to which nothing is added any more, as far as clocks go."""
    day = datetime.fromtimestamp(now / 1e9 - SETTLED_DAYS * 86_400, UTC)
    return len(name) == 8 and name.isdecimal() and name <= day.strftime("%Y%m%d")


def _add_found(listing: Listing, prefix: str, found: Iterable[Found]) -> None:
    """Add files of a store; `prefix` is what their names begin with."""
    for each in sorted(found):
        name = prefix + each.name
        folders = name.split("/")[:-1]
        if any(part.startswith((".", "_")) for part in name.split("/")):
            continue
        other = len(folders) == 2 and folders[1] in OTHER_FOLDERS
        suffixes = OTHER_SUFFIXES if other else SUFFIXES
        if len(folders) > 1 and not other:
            listing.left["/".join(folders[: 3 if folders[1] in OTHER_FOLDERS else 2])] = DEEPER
        elif not name.endswith(suffixes):
            listing.left[name] = _wrong_end(suffixes)
        else:
            listing.files[name] = Mark(each.size, each.mtime_ns)


def kind(name: str) -> str:
    """Return `ledger` or `clock` for a file of what gateways say of themselves, else `records`."""
    parts = name.split("/")
    return parts[1] if len(parts) == 3 and parts[1] in OTHER_FOLDERS else "records"


def _add_folder(
    listing: Listing,
    folder: Path,
    prefix: str,
    settled: Settled,
    suffixes: tuple[str, ...],
    but: Sequence[str] = (),
) -> None:
    """Add the files of a folder unless it is settled; `prefix` is what their names begin with."""
    changed = _changed(folder)
    if settled.get(prefix) == changed:
        return
    found, left = len(listing.files), len(listing.left)
    _add(listing, folder, prefix, [name for name in _names(folder) if name not in but], suffixes)
    newest = max((mark.mtime for mark in islice(listing.files.values(), found, None)), default=0)
    if (
        len(listing.left) == left
        and max(changed, newest) < time.time_ns() - SETTLED_SECONDS * 10**9
    ):
        listing.settled[prefix] = changed


def _changed(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _names(folder: Path) -> list[str]:
    try:
        seen = os.listdir(folder)  # noqa: PTH208 - there may be 100,000
        return sorted(name for name in seen if not name.startswith((".", "_")))
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        raise PipelineError(f"landing folder {folder} is a file, not a folder") from None
    except OSError as error:
        raise PipelineError(f"cannot read landing folder {folder}: {error.strerror}") from None


def _add(
    listing: Listing, folder: Path, prefix: str, names: list[str], suffixes: tuple[str, ...]
) -> None:
    """Add files of a folder."""
    for name in names:
        path = f"{folder}/{name}"
        try:
            state = os.stat(path)  # noqa: PTH116 - a Path a file would cost half as much again
        except OSError as error:
            if not Path(path).is_symlink():
                if isinstance(error, FileNotFoundError):  # it was moved away
                    continue
                raise
            state = os.lstat(path)  # a link to nowhere, or to itself
        reason = _reason_to_leave(path, name, state.st_mode, suffixes)
        if reason is None:
            listing.files[prefix + name] = Mark(state.st_size, state.st_mtime_ns)
        else:
            listing.left[prefix + name] = reason


def _wrong_end(suffixes: tuple[str, ...]) -> str:
    return f"its name does not end in {' or '.join(suffixes)}"


def _reason_to_leave(path: str, name: str, mode: int, suffixes: tuple[str, ...]) -> str | None:
    if stat.S_ISDIR(mode):
        return DEEPER
    if not name.endswith(suffixes):
        return _wrong_end(suffixes)
    if not stat.S_ISREG(mode):
        return "not a regular file"
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            return "its name is not UTF-8"
    # Of a file that everybody may read the system need not be asked once more.
    if not mode & stat.S_IROTH and not os.access(path, os.R_OK):
        return "no permission to read it"
    return None
