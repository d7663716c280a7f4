"""A ledger on a store, as the application wires it, and a fleet that listens to it."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.engine.database import COUNT_START, start_number
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.ledger.pages import LedgerPages
from gateway.storage.ledger.starts import Starts
from gateway.uplink.reports.control_messages import ControlMessages
from gateway.uplink.reports.ledger_reports import LedgerReports
from tests.support.clocks import ManualClock
from tests.support.disk.storage import Store, open_store, outbox_row


@dataclass(slots=True)
class LedgerStore:
    """A store with its ledger; `next_number` gives numbers as the rules do."""

    store: Store
    epoch: str
    starts: Starts
    ledger: Ledger
    pages: LedgerPages
    own: ControlMessages
    reports: LedgerReports
    clock: ManualClock
    last: dict[str, int] = field(default_factory=dict)

    def next_number(self, stream: str = "main") -> int:
        self.last[stream] = self.last.get(stream, 0) + 1
        return self.last[stream]

    def filter(self, count: int = 1, stream: str = "main", rule: str = "0@00000000") -> None:
        """Have a rule not take the next messages."""
        for _ in range(count):
            self.ledger.filtered(stream, self.next_number(stream), rule)

    def take(self, count: int = 1, stream: str = "main") -> None:
        """Have the next messages go to the outbox."""
        for _ in range(count):
            number = self.next_number(stream)
            self.ledger.numbered(stream, number)
            self.store.outbox.add(outbox_row(number, stream, epoch=self.epoch))

    async def settle(self) -> None:
        """Write what is noted, and wait until it is on disk."""
        self.ledger.save()
        await self.store.settle()

    async def on_disk(self) -> list[tuple[Any, ...]]:
        """Return (first, last, outcome, reason) of the ranges on disk, in order."""
        statement = "SELECT first, last, outcome, reason FROM ledger ORDER BY epoch, stream, first"
        reader = self.store.database.reader
        return await reader.query(statement, (), lambda cursor: cursor.fetchall())

    async def close(self) -> None:
        """Stop in good order."""
        await self.reports.close()
        self.ledger.save()
        await self.store.close()


async def open_ledger_store(folder: Path, epoch: str = "00a1b2c3d4") -> LedgerStore:
    """Start on what the folder holds, with a new epoch."""
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    store = await open_store(folder)
    await store.database.writer.write(COUNT_START)
    start = await start_number(store.database)
    starts = Starts(store.database, store.writer, store.counters, start, epoch)
    await starts.begin()
    await store.settle()
    ledger = Ledger(store.database, store.writer, store.counters, starts)
    await ledger.load()
    store.outbox.on_outcome.append(ledger.ended)
    pages = LedgerPages(
        store.database, store.writer, store.counters, ledger, lambda: store.outbox.rows
    )
    own, clock = ControlMessages(), ManualClock()
    reports = LedgerReports(pages, starts, own, store.counters, clock)
    return LedgerStore(store, epoch, starts, ledger, pages, own, reports, clock)


def answer_all(own: ControlMessages, code: ReasonCode = ReasonCode.SUCCESS) -> list[dict[str, Any]]:
    """Answer what waits as a fleet's broker would; return the payloads."""
    payloads = []
    while (message := own.next()) is not None:
        payloads.append(json.loads(message.payload))
        own.answered(message, code)
    return payloads
