"""What the gateways say became of their numbers, summed by gateway, epoch and stream."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FATES = ("delivered", "filtered", "expired", "evicted", "rejected", "lost")

Key = tuple[str, str, str]
Range = tuple[int, int, str, str]


@dataclass
class Account:
    """The numbers of one stream: how many ended how, up to `last`, the highest that is known.

    `missing` have no end in the ledger: they still wait at the gateway, or their entry does.
    """

    key: Key
    last: int
    fates: Counter[str] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        """How many numbers the ledger says nothing of."""
        return self.last - sum(self.fates.values())

    def __str__(self) -> str:
        told = " + ".join(f"{fate} {self.fates[fate]:,}" for fate in FATES if self.fates[fate])
        return f"{'/'.join(self.key)}: {told or '0'} = last {self.last:,}, missing {self.missing:,}"


def accounts(landing: Path) -> list[Account]:
    """Return an account for each gateway, epoch and stream that a ledger in the folder names.

    Lines that are no entry (docs/ledger-entry.schema.json) are passed over.
    """
    last: Counter[Key] = Counter()
    ranges: dict[Key, list[Range]] = {}
    for gateway, entry in _entries(landing):
        key = (gateway, entry["epoch"], entry["stream"])
        told = [tuple(each) for each in entry["ranges"]]
        ranges.setdefault(key, []).extend(told)
        last[key] = max([last[key], *(each[1] for each in told)])
        previous = entry["previous"] or {"epoch": "", "last": {}}
        for stream, number in previous["last"].items():
            before = (gateway, previous["epoch"], stream)
            last[before] = max(last[before], number)
    return [
        Account(key, last[key], _fates(ranges.get(key, []))) for key in sorted(last) if last[key]
    ]


def _fates(ranges: list[Range]) -> Counter[str]:
    """Count each number once, though it was told of more than once."""
    fates: Counter[str] = Counter()
    covered = 0
    for first, last, fate, cause in sorted(ranges, key=lambda each: each[:2]):
        if last <= covered:
            continue
        if first > covered and (several := _several(cause)):
            fates.update(several)
        else:
            fates[fate] += last - max(covered, first - 1)
        covered = last
    return fates


def _several(cause: str) -> dict[str, int] | None:
    """Return the counts of a range that several fates share, None for any other."""
    pairs = [word.rpartition("*") for word in cause.split(" ")]
    if all(fate in FATES and count.isdecimal() for fate, _, count in pairs):
        return {fate: int(count) for fate, _, count in pairs}
    return None


def _entries(landing: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(landing.glob("[!._]*/ledger/[!._]*.jsonl")):
        for entry in _read(file.read_bytes().splitlines()):
            yield file.parts[-3], entry


def _read(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if _is_entry(entry):
            yield entry


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    previous, ranges = entry.get("previous", ""), entry.get("ranges")
    return (
        all(isinstance(entry.get(name), str) for name in ("epoch", "stream"))
        and isinstance(ranges, list)
        and all(_is_range(each) for each in ranges)
        and (previous is None or _is_previous(previous))
    )


def _is_range(each: object) -> bool:
    return (
        isinstance(each, list)
        and [type(part) for part in each] == [int, int, str, str]
        and 1 <= each[0] <= each[1]
    )


def _is_previous(previous: object) -> bool:
    if not isinstance(previous, dict) or not isinstance(previous.get("epoch"), str):
        return False
    last = previous.get("last")
    return isinstance(last, dict) and all(type(number) is int for number in last.values())
