"""What the fleet hears of the ledger."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import gateway.uplink.reports.ledger_reports as entry_module
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.ledger.range import LedgerRange
from gateway.storage.outbox.row import Outcome
from gateway.uplink.reports.ledger_reports import PASS_SECONDS, ledger_entries
from tests.support.disk.ledger import LedgerStore, answer_all, open_ledger_store
from tests.support.disk.storage import until

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


async def _look(kept: LedgerStore) -> list[dict[str, Any]]:
    """Look twice, as a change that is not on disk yet puts the first look off."""
    entries = []
    for _ in range(2):
        await kept.reports.send_due()
        entries += answer_all(kept.own)
        await kept.store.settle()
    return entries


def _ranges(entries: list[dict[str, Any]]) -> list[Any]:
    return [each for entry in entries for each in entry["ranges"]]


async def test_a_start_is_announced_once(tmp_path: Path) -> None:
    kept = await open_ledger_store(tmp_path / "data")
    kept.take(2, "slow")
    kept.reports.announce()
    assert answer_all(kept.own) == [
        {"epoch": kept.epoch, "start": 1, "previous": None, "stream": "main", "ranges": []}
    ]
    await kept.close()
    for repeat in range(2):  # the second was announced to nobody
        kept = await open_ledger_store(tmp_path / "data", f"{repeat:010x}")
        kept.reports.announce()
        await kept.close()
    kept = await open_ledger_store(tmp_path / "data", "ffffffffff")
    kept.reports.announce()
    announced = answer_all(kept.own)
    assert [entry["start"] for entry in announced] == [2, 3, 4]
    assert announced[0]["previous"] == {"epoch": "00a1b2c3d4", "last": {"slow": 2}}
    assert announced[0]["stream"] == "slow"
    assert kept.starts.unannounced == []
    await kept.close()


async def test_passes_are_paced(tmp_path: Path) -> None:
    kept = await open_ledger_store(tmp_path / "data")
    kept.filter(1)
    await kept.settle()
    assert len(await _look(kept)) == 1
    kept.filter(1)
    await kept.settle()
    assert await _look(kept) == []
    kept.clock.step(PASS_SECONDS)
    assert _ranges(await _look(kept)) == [[2, 2, "filtered", "0@00000000"]]
    await kept.close()


async def test_what_the_fleet_refuses_is_kept(tmp_path: Path) -> None:
    kept = await open_ledger_store(tmp_path / "data")
    kept.filter(1)
    await kept.settle()
    await kept.reports.send_due()
    await kept.reports.send_due()
    assert len(answer_all(kept.own, ReasonCode.NOT_AUTHORIZED)) == 1
    await kept.settle()
    assert len(await kept.on_disk()) == 1
    kept.clock.step(60)
    assert len(await _look(kept)) == 1
    await kept.settle()
    assert await kept.on_disk() == []
    await kept.close()


async def test_the_task_tells_as_fast_as_the_fleet_takes(tmp_path: Path) -> None:
    kept = await open_ledger_store(tmp_path / "data")
    for _ in range(1_500):
        kept.filter()
        kept.take()
    await kept.settle()
    rows = await kept.store.outbox.fetch(0, 2_000)
    kept.store.outbox.remove(rows, Outcome.DELIVERED)
    await kept.settle()
    assert kept.ledger.rows == 3_000
    kept.reports.start()
    entries: list[dict[str, Any]] = []
    async with asyncio.timeout(60):
        while len(_ranges(entries)) < 3_000:
            entries += answer_all(kept.own)
            await asyncio.sleep(0.002)
    assert [each[0] for each in _ranges(entries)] == list(range(1, 3_001))
    await kept.settle()
    await until(lambda: kept.ledger.rows == 0)
    await kept.close()
