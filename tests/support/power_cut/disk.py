"""A disk that keeps, when the power goes, what it was asked to keep, and of the rest what it likes.

Of a file it owes what was written before its last sync; of the names in a folder, what they were
at that folder's last sync. What came later is dropped, kept, or torn between blocks of 512 bytes;
changes of names are undone from the last one back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

from tests.support.disk.disk_recorder import Operation

BLOCK = 512

PASSING = ("-shm", "/reserve", "/lock")
"""Ends of the paths of files that nobody relies on after a loss of power."""

Tear = Callable[[Random], float]

MOODS: list[Tear] = [lambda _: 0.0, lambda _: 1.0, Random.random, lambda r: r.choice([0.0, 1.0])]
"""How likely it is for a block that was not synced to be on the disk, for each write anew."""


@dataclass(slots=True)
class File:
    """`kept` was synced; `changes` are (offset, bytes) since, or (size, None) for a truncation."""

    kept: bytes = b""
    live: bytearray = field(default_factory=bytearray)
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)
    position: int = 0

    def change(self, place: int, data: bytes | None) -> None:
        self.changes.append((place, data))
        _change(self.live, place, data)

    def sync(self) -> None:
        self.kept = bytes(self.live)
        self.changes.clear()

    def after_cut(self, random: Random, tear: Tear) -> bytes:
        content = bytearray(self.kept)
        for place, data in self.changes:
            share = tear(random)
            if data is None:
                if random.random() < share:
                    _change(content, place, None)
                continue
            for start, end in _blocks(place, len(data)):
                if random.random() < share:
                    _change(content, start, data[start - place : end - place])
        return bytes(content)


Names = dict[str, File | None]
"""By path; None stands for a folder."""


class Disk:
    """What is below `root`, which is there from the beginning."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._live: Names = {self._root: None}
        self._kept: Names = dict(self._live)
        self._renames: dict[str, list[list[tuple[str, File | str | None]]]] = {}

    def apply(self, call: Operation) -> bool:
        """Do what the call does; return whether it concerned this disk."""
        paths = [text.decode() for text in call.texts] if call.name in _NAMES else [call.file]
        if not all(each.startswith(self._root + "/") or each == self._root for each in paths):
            return False
        if any(each.endswith(PASSING) for each in paths):
            return False
        if call.name in _NAMES:
            return self._change_names(call, paths)
        return self._change_file(call)

    def cut(self, random: Random, to: Path) -> None:
        """Write into `to` what is there after a loss of power at this moment."""
        tear = random.choice(MOODS)
        names = dict(self._kept)
        for changes in self._renames.values():
            for change in changes[: random.randint(0, len(changes))]:
                _rename(names, change)
        to.mkdir(parents=True)
        for path in sorted(names):
            target = to / Path(path).relative_to(self._root)
            content = names[path]
            if path == self._root or not target.parent.is_dir():
                continue
            if content is None:
                target.mkdir()
            else:
                target.write_bytes(content.after_cut(random, tear))

    def _change_names(self, call: Operation, paths: list[str]) -> bool:
        change: list[tuple[str, File | str | None]] = []
        if call.name == "openat":
            return self._open(call, paths[0])
        if call.name == "mkdir":
            change = [(paths[0], None)]
        elif call.name in ("unlink", "rmdir"):
            change = [(paths[0], "")]
        elif call.name == "rename":
            change = [(paths[1], self._live[paths[0]]), (paths[0], "")]
        self._note(change)
        return True

    def _open(self, call: Operation, path: str) -> bool:
        file = self._live.get(path)
        if file is None:
            if path in self._live or "CREAT" not in call.flags:
                return False
            file = File()
            self._note([(path, file)])
        elif "TRUNC" in call.flags:
            file.change(0, None)
        file.position = 0
        return True

    def _note(self, change: list[tuple[str, File | str | None]]) -> None:
        _rename(self._live, change)
        self._renames.setdefault(str(Path(change[0][0]).parent), []).append(change)

    def _change_file(self, call: Operation) -> bool:
        if call.file not in self._live:
            return False
        file = self._live[call.file]
        if "sync" in call.name:
            if file is None:
                for change in self._renames.pop(call.file, []):
                    _rename(self._kept, change)
            else:
                file.sync()
        elif file is None:
            return False
        elif call.name == "ftruncate":
            file.change(call.number, None)
        elif call.name == "pwrite64":
            file.change(call.number, call.data)
        else:
            file.change(file.position, call.data)
            file.position += len(call.data)
        return True


_NAMES = ("openat", "mkdir", "rename", "unlink", "rmdir")


def _rename(names: Names, change: list[tuple[str, File | str | None]]) -> None:
    for path, content in change:
        if isinstance(content, str):
            names.pop(path, None)
        else:
            names[path] = content


def _blocks(place: int, size: int) -> list[tuple[int, int]]:
    edges = [place, *range(place - place % BLOCK + BLOCK, place + size, BLOCK), place + size]
    return list(pairwise(edges))


def _change(content: bytearray, place: int, data: bytes | None) -> None:
    if len(content) < place:
        content.extend(bytes(place - len(content)))
    if data is None:
        del content[place:]
    else:
        content[place : place + len(data)] = data
