"""Entries: one for each epoch and stream, in a bounded size, saying no more than is on disk."""

import json
from pathlib import Path

import pytest

import gateway.uplink.reports.ledger_entry as entry_module
from gateway.storage.ledger.range import LedgerRange
from gateway.storage.outbox.row import Outcome
from gateway.uplink.reports.ledger_entry import ledger_entries
from tests.support.disk.ledger import open_ledger_store

EPOCH = "00a1b2c3d4"


def _range(stream: str, first: int, last: int, outcome: Outcome = Outcome.DELIVERED) -> LedgerRange:
    return LedgerRange(EPOCH, stream, first, last, outcome, {"": last - first + 1}, id=first)


async def test_an_entry_has_one_stream_and_joins_what_fits(tmp_path: Path) -> None:
    kept = await open_ledger_store(tmp_path / "data")
    ranges = [
        _range("main", 1, 2),
        _range("main", 3, 5),
        _range("main", 7, 7, Outcome.EXPIRED),
        _range("slow", 1, 1),
    ]
    entries = list(ledger_entries(ranges, kept.starts))
    assert [json.loads(entry.payload) for entry in entries] == [
        {
            "epoch": EPOCH,
            "start": 1,
            "previous": None,
            "stream": "main",
            "ranges": [[1, 5, "delivered", ""], [7, 7, "expired", ""]],
        },
        {
            "epoch": EPOCH,
            "start": 1,
            "previous": None,
            "stream": "slow",
            "ranges": [[1, 1, "delivered", ""]],
        },
    ]
    assert [entry.ranges for entry in entries] == [ranges[:3], ranges[3:]]
    assert ranges[0].last == 2, "what is on disk stays as it is"
    await kept.close()


async def test_entries_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_module, "MAX_ENTRY_BYTES", 60)
    kept = await open_ledger_store(tmp_path / "data")
    ranges = [_range("main", number, number) for number in range(1, 20, 2)]
    entries = list(ledger_entries(ranges, kept.starts))
    assert len(entries) == 5
    assert [each for entry in entries for each in entry.ranges] == ranges
    assert all(len(entry.payload) <= 60 + 80 for entry in entries)
    await kept.close()


async def test_an_epoch_that_nobody_remembers_has_no_start(tmp_path: Path) -> None:
    kept = await open_ledger_store(tmp_path / "data", "ffffffffff")
    (entry,) = ledger_entries([_range("main", 1, 1)], kept.starts)
    said = json.loads(entry.payload)
    assert (said["epoch"], said["start"], said["previous"]) == (EPOCH, None, None)
    await kept.close()
