"""Makes the outbox and the ledger as configured, removes expired messages, and reports."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack

from gateway.app.parts import Run, Storage
from gateway.background import background
from gateway.broker.store import Store
from gateway.clock import Clock
from gateway.config.configuration import Configuration
from gateway.settings.outbox import OutboxSettings, StreamSettings
from gateway.settings.uplink import UplinkSettings
from gateway.settings.when_full import WhenFull
from gateway.storage.ledger.ledger import Ledger, note_lost
from gateway.storage.ledger.pages import LedgerPages
from gateway.storage.ledger.starts import Starts
from gateway.storage.outbox import bounds
from gateway.storage.outbox.outbox import (
    Outbox,
)
from gateway.storage.outbox.row import (
    OutboxRow,
    Outcome,
)
from gateway.storage.sessions.broker_store import BrokerStore
from gateway.uplink.reports.ledger_reports import LedgerReports
from gateway.uplink.uplink import Uplink

logger = logging.getLogger(__name__)


SWEEP_SECONDS = 1.0
"""Seconds between two searches for expired messages."""


async def start_outbox(
    run: Run,
    storage: Storage,
    store: Store,
    streams: Iterable[str],
    on_outcome: Callable[[Sequence[OutboxRow], Outcome, str], None],
) -> Outbox:
    """Return the outbox with the rows of an earlier run; `streams` are those of the rules.

    `on_outcome` is called with the outcomes of rows.
    """
    settings = outbox_settings(run.configuration, streams)
    pending = store.pending if isinstance(store, BrokerStore) else None
    names = [each.name or "" for each in run.configuration.uplinks]
    outbox = Outbox(storage.database, storage.writer, run.counters, settings, pending, names)
    outbox.on_outcome.append(on_outcome)
    await outbox.load()
    run.stack.push_async_callback(outbox.close)
    sweeping = background(_sweep(run.clock, outbox))
    run.stack.callback(sweeping.cancel)
    return outbox


def outbox_settings(configuration: Configuration, streams: Iterable[str]) -> bounds.OutboxSettings:
    """Return the bounds of the outbox and of each stream, configured or not."""
    configured = {each.name: each for up in configuration.uplinks for each in up.streams}
    names = dict.fromkeys((*configured, *streams))
    whole = configuration.outbox.when_full
    usual = whole if whole is WhenFull.REJECT else WhenFull.DROP_NEWEST
    return bounds.OutboxSettings(
        _retention(configuration.outbox, usual),
        tuple(_stream(configured.get(name, StreamSettings(name)), usual) for name in names),
    )


def _retention(table: OutboxSettings | StreamSettings, usual: WhenFull) -> bounds.Retention:
    return bounds.Retention(
        table.maximum_bytes,
        table.maximum_messages,
        table.maximum_age or None,
        usual if table.when_full is None else table.when_full,
    )


def _stream(table: StreamSettings, usual: WhenFull) -> bounds.StreamSettings:
    return bounds.StreamSettings(
        table.name, table.priority, _retention(table, usual), table.mode, table.expire_after
    )


async def _sweep(clock: Clock, outbox: Outbox) -> None:
    while True:
        more = False
        try:
            more = await outbox.sweep(clock.wall_ms(), clock.monotonic())
        except sqlite3.Error as error:
            logger.warning("the outbox could not be searched for expired messages: %s", error)
        await asyncio.sleep(0 if more else SWEEP_SECONDS)


async def open_ledger(run: Run, storage: Storage) -> Ledger:
    """Return the ledger of this start; it exists before the outbox, to miss no outcome of a row."""
    database, writer, number = storage
    starts = Starts(database, writer, run.counters, number, run.epoch)
    await starts.begin()
    configs = run.configuration.uplinks
    ledger = Ledger(
        *(database, writer, run.counters, starts),
        [each.name or "" for each in configs],
        reporting(configs),
    )
    await ledger.load()
    if database.salvage is not None:
        await note_lost(database, ledger, database.salvage.numbers)
    return ledger


def reporting(uplinks: Sequence[UplinkSettings]) -> int:
    """Return the uplinks that report to the fleet, as bits."""
    return sum(1 << index for index, each in enumerate(uplinks) if each.reports)


def report_ledger(
    run: Run,
    storage: Storage,
    ledger: Ledger,
    outbox: Outbox,
    uplinks: Sequence[Uplink],
    stack: AsyncExitStack,
) -> None:
    """Until the stack ends, report to the fleet by each uplink how numbers ended there."""
    counters = run.counters
    ledger.starts.listeners = len(uplinks)
    intervals = {
        each.name or "": each.landing_interval or 0.0 for each in run.configuration.uplinks
    }
    for uplink in uplinks:
        pages = LedgerPages(
            storage.database, storage.writer, counters, ledger, lambda: outbox.rows, uplink.name
        )
        reports = LedgerReports(
            *(pages, ledger.starts, uplink.control_messages, counters, run.clock),
            uplink=uplink.name,
            interval=intervals.get(uplink.name, 0.0),
        )
        reports.start()
        stack.push_async_callback(reports.close)
