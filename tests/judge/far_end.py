"""What stands behind the broker: outbox, ledger, and an uplink to a fleet or a landing folder."""

import errno
import json
import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.uplink.uplink import Uplink
from tests.support.disk.ledger import LedgerStore, open_ledger_store
from tests.support.disk.storage import crash_image, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.uplinks import make_uplink, uplink_settings

Name = tuple[str, str, int]
"""Epoch, stream and number of a message."""

REFUSALS = ("disk I/O error", "database or disk is full")


class FarEnd:
    """Takes messages, and knows which of them were acknowledged: those arrive, or are told.

    The uplink leads to the `fleet`, or without one to a landing folder.
    """

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, fleet: FleetBroker | None
    ) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._fleet = fleet
        self._landing = folder / "landing"
        self._starts = 0
        self._data = folder / "data"
        self._promised: set[Name] = set()
        self._refusing: str | None = None
        self.refused = 0
        self.kept: LedgerStore
        self.uplink: Uplink

    async def start(self, *, paused: bool = False) -> None:
        """Start on what is there, with an epoch of its own."""
        self._starts += 1
        self.kept = await open_ledger_store(self._data, f"{self._starts:010x}")
        self._watch_disk()
        port = None if self._fleet is None else self._fleet.port
        directory = None if self._fleet is not None else self._landing
        self.uplink = make_uplink(self.kept.store, uplink_settings(port, directory))
        if paused:
            self.uplink.pause()
        await self.uplink.start()
        if not paused:
            await until(lambda: self.uplink.state == "connected")

    def accept(self, count: int) -> set[Name]:
        """Add messages to the pending batch; return their names."""
        first = self.kept.last.get("main", 0) + 1
        self.kept.take(count)
        self.kept.store.writer.hand_over()
        return {(self.kept.epoch, "main", first + place) for place in range(count)}

    async def acknowledge(self, names: set[Name]) -> None:
        """Wait for the disk, as the publishers' answers do."""
        await self.kept.settle()
        self._promised |= names

    async def crash(self) -> None:
        """Leave what is on disk, and start on that."""
        image = crash_image(self._data, self._folder / f"crashed-{self._starts}")
        await self.kept.store.end_turn()
        task = self.uplink._task
        assert task is not None
        task.cancel()
        with suppress(BaseException):
            await task
        await self.kept.close()
        self._refusing = None
        self._data = image
        await self.start()

    async def refuse(self, text: str) -> None:
        """Let neither the database nor a landing file be written, until `take_again`."""
        self._refusing = text

    async def take_again(self) -> None:
        """Let the disk take rows again, once it has refused some."""
        await until(lambda: self.refused > 0)
        self._refusing = None

    async def pause(self) -> None:
        self.uplink.pause()
        await until(lambda: self.uplink.state == "paused")

    async def lose_link(self) -> None:
        """Cut the connection, or take the landing folder away."""
        if self._fleet is not None:
            self._fleet.drop()
        else:
            shutil.rmtree(self._landing)

    async def finish(self) -> None:
        """Let all go up and stop in good order: what was promised has arrived, and is told."""
        self.uplink.resume()
        await until(lambda: self.kept.store.outbox.rows == 0)
        await self.uplink.close()
        await self.kept.settle()
        reported = await self._reported()
        await self.kept.close()
        assert self._promised <= self._arrived(), "acknowledged, and not there"
        assert self._promised <= reported.keys(), "acknowledged, and not told"
        assert {reported[each] for each in self._promised} == {"delivered"}

    async def _reported(self) -> dict[Name, str]:
        """Return how numbers ended, by the ledger; no number may be there twice."""
        statement = "SELECT epoch, stream, first, last, outcome FROM ledger"
        reader = self.kept.store.database.reader
        found: dict[Name, str] = {}
        for epoch, stream, first, last, outcome in await reader.query(statement, (), list):
            for number in range(first, last + 1):
                assert (epoch, stream, number) not in found
                found[epoch, stream, number] = outcome
        return found

    def _arrived(self) -> set[Name]:
        if self._fleet is not None:
            properties = [dict(each.properties.user_properties) for each in self._fleet.data]
            names = [each["seq"].split(".") for each in properties]
            return {(epoch, stream, int(number)) for epoch, stream, number in names}
        files = self._landing.rglob("*.jsonl")
        records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return {
            (record["epoch"], record["stream"], record["seq"])
            for record in records
            if "seq" in record
        }

    def _watch_disk(self) -> None:
        """Stand between this start and its disk."""
        writer, sync = self.kept.store.database.writer, os.fdatasync
        committed = writer.commit

        def commit(batch: object) -> None:
            if self._refusing is not None:
                self.refused += 1
                raise sqlite3.OperationalError(self._refusing)
            committed(batch)  # type: ignore[arg-type]  # as it came

        def synced(descriptor: int) -> None:
            if self._refusing is not None:
                self.refused += 1
                raise OSError(errno.ENOSPC, "No space left on device")
            sync(descriptor)

        self._monkeypatch.setattr(writer, "commit", commit)
        if self._starts == 1:
            self._monkeypatch.setattr("gateway.uplink.landing.file.os.fdatasync", synced)
