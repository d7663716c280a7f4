"""Reports the ledger to the fleet, and deletes it when the fleet has acknowledged."""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import NamedTuple

from gateway.background import background
from gateway.clock import Clock
from gateway.counters import Counters
from gateway.storage.ledger.pages import LedgerPages
from gateway.storage.ledger.range import LedgerRange, collapsed
from gateway.storage.ledger.starts import (
    Start,
    Starts,
)
from gateway.uplink.reports.control_messages import ControlMessages
from gateway.uplink.reports.reliable_messages import ReliableMessages

logger = logging.getLogger(__name__)


MAX_ENTRY_BYTES = 8 * 1024
"""Bytes of ranges in one entry, which any broker accepts; further ranges are in the next."""


SUFFIX = "ledger"

PASS_SECONDS = 30.0
"""The least seconds between two passes through the ledger: outcomes meanwhile collapse into fewer
ranges."""

PASS_RANGES = 2_000
"""Ranges from which a pass begins early."""

PAGE_RANGES = 200
"""Ranges read from the ledger at a time; an entry or a few of them."""

CHECK_SECONDS = 1.0
"""Seconds between two checks of the ledger."""


class LedgerEntry(NamedTuple):
    """A payload, and the ranges on disk that it reports."""

    payload: bytes
    ranges: list[LedgerRange]


def ledger_entries(ranges: Sequence[LedgerRange], starts: Starts) -> Iterator[LedgerEntry]:
    """Yield entries for ranges in the order of epoch, stream and number."""
    for (epoch, stream), group in groupby(ranges, key=lambda each: (each.epoch, each.stream)):
        part: list[LedgerRange] = []
        size = 0
        for each in group:
            length = len(_json(_as_json(each))) + 1
            if part and size + length > MAX_ENTRY_BYTES:
                yield _entry(starts.of(epoch), stream, part)
                part, size = [], 0
            part.append(each)
            size += length
        yield _entry(starts.of(epoch), stream, part)


def announcement(start: Start, stream: str) -> bytes:
    """Return the payload that reports a start, and what it knew of the one before."""
    return _entry(start, stream, []).payload


def _entry(start: Start, stream: str, ranges: list[LedgerRange]) -> LedgerEntry:
    entries = [_as_json(each) for each in collapsed(replace(each) for each in ranges)]
    entry = {
        "epoch": start.epoch,
        "start": start.start,
        "previous": start.previous,
        "stream": stream,
        "ranges": entries,
    }
    return LedgerEntry(_json(entry), ranges)


def _as_json(each: LedgerRange) -> list[object]:
    return [each.first, each.last, each.outcome.value, each.reason]


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


class LedgerReports:
    """A task that passes through the ledger repeatedly, as fast as the fleet accepts entries.

    Passes begin `interval` seconds apart, and PASS_SECONDS at least.
    """

    def __init__(
        self,
        pages: LedgerPages,
        starts: Starts,
        own: ControlMessages,
        counters: Counters,
        clock: Clock,
        uplink: str = "",
        interval: float = 0.0,
    ) -> None:
        self._interval = max(interval, PASS_SECONDS)
        self._uplink = uplink
        self._pages = pages
        self._starts = starts
        self._clock = clock
        self._counters = counters
        self._messages = ReliableMessages(SUFFIX, own, counters, clock)
        self._messages.on_capacity.append(self._wake)
        self._woken = asyncio.Event()
        self._pass_at = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Announce this start, and begin."""
        self._task = background(self._run())

    async def close(self) -> None:
        """End; unreported ranges stay on disk."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def send_due(self) -> None:
        """Send what is due and what there is capacity for."""
        self._messages.resend()
        await self._pages.shorten()
        while self._messages.has_capacity and self._is_due():
            page = await self._pages.next_page(PAGE_RANGES)
            if page is None:
                return
            for entry in ledger_entries(page, self._starts):
                self._messages.send(entry.payload, partial(self._pages.reported, entry.ranges))
            if self._pages.between_passes:
                self._pass_at = self._clock.monotonic() + self._interval
                return

    def announce(self) -> None:
        """Announce each start that the fleet does not know."""
        for start in self._starts.unannounced:
            payload = announcement(start, _stream(start))
            self._messages.send(payload, partial(self._starts.save_announced, start, self._uplink))

    def _is_due(self) -> bool:
        return (
            not self._pages.between_passes
            or self._clock.monotonic() >= self._pass_at
            or (self._pages.rows >= PASS_RANGES and self._messages.idle)
        )

    async def _run(self) -> None:
        self.announce()
        while True:
            try:
                await self.send_due()
            except sqlite3.Error as error:
                logger.warning("the ledger could not be read: %s", error)
            # Not wait_for: Python 3.11 loses a cancellation that coincides with the event, and the
            # gateway's stop would wait for ever.
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS):
                    await self._woken.wait()
            self._woken.clear()

    def _wake(self) -> None:
        self._woken.set()


def _stream(start: Start) -> str:
    last = (start.previous or {}).get("last", {})
    return next(iter(last), "main")
