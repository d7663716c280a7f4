"""Joins the ledger to the outbox and to the uplink."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.storage.ledger.ledger import Ledger, note_lost
from gateway.storage.ledger.pages import LedgerPages
from gateway.storage.ledger.starts import Starts
from gateway.storage.outbox.outbox import Outbox
from gateway.uplink.reports.ledger_reports import LedgerReports
from gateway.uplink.uplink import Uplink

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway


async def open_ledger(gateway: "Gateway") -> Ledger:
    """Return the ledger of this start; it is there before the outbox, to miss no end of a row."""
    starts = Starts(
        gateway.database, gateway.writer, gateway.counters, gateway.starts, gateway.epoch
    )
    await starts.begin()
    configs = gateway.configuration.uplinks
    ledger = Ledger(
        *(gateway.database, gateway.writer, gateway.counters, starts),
        [each.name or "" for each in configs],
        sum(1 << index for index, each in enumerate(configs) if each.reports),
    )
    await ledger.load()
    if gateway.database.salvage is not None:
        await note_lost(gateway.database, ledger, gateway.database.salvage.numbers)
    return ledger


def report_ledger(
    gateway: "Gateway", ledger: Ledger, outbox: Outbox, uplinks: Sequence[Uplink]
) -> None:
    """Start reporting to the fleet by each uplink how numbers ended there."""
    counters = gateway.counters
    ledger.starts.listeners = len(uplinks)
    for uplink in uplinks:
        pages = LedgerPages(
            gateway.database, gateway.writer, counters, ledger, lambda: outbox.rows, uplink.name
        )
        reports = LedgerReports(
            *(pages, ledger.starts, uplink.control_messages, counters, gateway.clock), uplink.name
        )
        reports.start()
        gateway.stack.push_async_callback(reports.close)
