"""Ledger entries against their schema, at a broker and in a directory, and past the pipeline."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # ships no types

from gateway.settings.uplink import UplinkSettings
from gateway.storage.outbox.row import Outcome
from gateway.uplink.reports.ledger_reports import LedgerReports
from gateway.uplink.uplink import Uplink
from pipeline.landing.listing import kind, list_landing
from pipeline.ledger.accounts import accounts
from pipeline.place import place_of
from tests.support.disk.ledger import LedgerStore, open_ledger_store
from tests.support.disk.storage import until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.uplinks import running, uplink_settings
from tests.support.schemas import validator_of

OUTCOMES = {outcome.value for outcome in Outcome}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return validator_of("ledger-entry")


async def _with_every_outcome(kept: LedgerStore) -> None:
    """Have a message end in each way, and one with two rules."""
    for outcome, reason in (
        (Outcome.EXPIRED, "maximum_age"),
        (Outcome.EVICTED, "drop-oldest"),
        (Outcome.REJECTED, "0x99"),
        (Outcome.LOST, "a damaged database"),
    ):
        kept.filter(2, rule="0@89abcdef")
        kept.filter(1, rule="1@01234567")
        kept.take()
        await kept.settle()
        rows = await kept.store.outbox.fetch(0, 10)
        kept.store.outbox.remove(rows, outcome, reason)
    kept.take(stream="a-slow_one")
    await kept.settle()


def _reports(kept: LedgerStore, uplink: Uplink) -> LedgerReports:
    return LedgerReports(
        kept.pages, kept.starts, uplink.control_messages, kept.store.counters, kept.clock
    )


async def _tell(kept: LedgerStore, settings: UplinkSettings) -> None:
    """Run an uplink until its outbox is empty and the ledger says so."""
    async with running(kept.store, settings) as uplink:
        reports = _reports(kept, uplink)
        reports.announce()
        await until(lambda: kept.store.outbox.rows == 0)
        await kept.settle()

        async with asyncio.timeout(60):
            while kept.ledger.rows or kept.starts.unannounced:
                await reports.send_due()
                await kept.settle()
                await asyncio.sleep(0.002)


def _reported(entries: list[dict[str, Any]]) -> dict[str, list[list[Any]]]:
    return {entry["stream"]: entry["ranges"] for entry in entries if entry["ranges"]}


EXPECTED = {
    "a-slow_one": [[1, 1, "delivered", ""]],
    "main": [
        [1, 3, "filtered", "0@89abcdef*2 1@01234567*1"],
        [4, 4, "expired", "maximum_age"],
        [5, 7, "filtered", "0@89abcdef*2 1@01234567*1"],
        [8, 8, "evicted", "drop-oldest"],
        [9, 11, "filtered", "0@89abcdef*2 1@01234567*1"],
        [12, 12, "rejected", "0x99"],
        [13, 15, "filtered", "0@89abcdef*2 1@01234567*1"],
        [16, 16, "lost", "a damaged database"],
    ],
}


async def test_at_a_broker(
    tmp_path: Path, validator: Draft202012Validator, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = FleetBroker()
    await broker.start()
    monkeypatch.setattr("gateway.uplink.reports.ledger_reports.PASS_SECONDS", 0.0)
    kept = await open_ledger_store(tmp_path / "data")
    await _with_every_outcome(kept)
    await _tell(kept, uplink_settings(broker.port))
    await kept.close()
    again = await open_ledger_store(tmp_path / "data", "ffffffffff")
    await _tell(again, uplink_settings(broker.port, epoch="ffffffffff"))
    await again.close()
    await broker.stop()
    sent = [publish for publish in broker.publishes if publish.topic == "tidegate/barn/ledger"]
    assert all(publish.qos == 1 and not publish.retain for publish in sent)
    entries = [json.loads(publish.payload) for publish in sent]
    for entry in entries:
        validator.validate(entry)
    assert _reported(entries) == EXPECTED
    assert entries[-1]["previous"] == {"epoch": kept.epoch, "last": {"main": 16, "a-slow_one": 1}}


async def test_in_a_directory_beside_the_records(
    tmp_path: Path, validator: Draft202012Validator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.uplink.landing.file.FILE_SECONDS", 0.05)
    monkeypatch.setattr("gateway.uplink.reports.ledger_reports.PASS_SECONDS", 0.0)
    kept = await open_ledger_store(tmp_path / "data")
    await _with_every_outcome(kept)
    await _tell(kept, uplink_settings(directory=tmp_path / "landing"))
    await kept.close()
    files = sorted((tmp_path / "landing" / "barn" / "ledger").iterdir())
    assert [file.name for file in files] == [
        f"{kept.epoch}.{number}.jsonl" for number in range(1, len(files) + 1)
    ]
    entries = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    for entry in entries:
        validator.validate(entry)
    assert _reported(entries) == EXPECTED
    assert [str(account) for account in accounts(tmp_path / "landing")] == [
        f"barn/{kept.epoch}/a-slow_one: delivered 1 = last 1, missing 0",
        (
            f"barn/{kept.epoch}/main: filtered 12 + expired 1 + evicted 1 + rejected 1 + lost 1"
            " = last 16, missing 0"
        ),
    ]
    listing = list_landing(place_of(tmp_path / "landing"))
    records = [name for name in listing.files if kind(name) == "records"]
    assert (len(records), listing.left) == (1, {})


def test_every_outcome_is_in_the_schema(validator: Draft202012Validator) -> None:
    items = validator.schema["properties"]["ranges"]["items"]["prefixItems"]
    assert set(items[2]["enum"]) == OUTCOMES
