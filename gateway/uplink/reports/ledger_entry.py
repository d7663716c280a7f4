"""An entry of the ledger as the fleet reads it (docs/fleet.md)."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from gateway.storage.ledger.range import LedgerRange, collapsed
from gateway.storage.ledger.starts import Start, Starts

MAX_ENTRY_BYTES = 8 * 1024
"""Bytes of ranges in one entry, which any broker takes; what is beyond begins another."""


class LedgerEntry(NamedTuple):
    """What is sent, and the ranges on disk that it tells of."""

    payload: bytes
    ranges: list[LedgerRange]


def ledger_entries(ranges: Sequence[LedgerRange], starts: Starts) -> Iterator[LedgerEntry]:
    """Yield entries for ranges in the order of epoch, stream and number."""
    for (epoch, stream), group in groupby(ranges, key=lambda each: (each.epoch, each.stream)):
        part: list[LedgerRange] = []
        size = 0
        for each in group:
            length = len(_json(_said(each))) + 1
            if part and size + length > MAX_ENTRY_BYTES:
                yield _entry(starts.of(epoch), stream, part)
                part, size = [], 0
            part.append(each)
            size += length
        yield _entry(starts.of(epoch), stream, part)


def announcement(start: Start, stream: str) -> bytes:
    """Return the payload that says that a start was, and what it knew of the one before."""
    return _entry(start, stream, []).payload


def _entry(start: Start, stream: str, ranges: list[LedgerRange]) -> LedgerEntry:
    said = [_said(each) for each in collapsed(replace(each) for each in ranges)]
    entry = {
        "epoch": start.epoch,
        "start": start.start,
        "previous": start.previous,
        "stream": stream,
        "ranges": said,
    }
    return LedgerEntry(_json(entry), ranges)


def _said(each: LedgerRange) -> list[object]:
    return [each.first, each.last, each.outcome.value, each.reason]


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
