"""Reports the wall clock's error to the fleet, with its uncertainty."""

import json
from functools import partial

from gateway.clock import Clock
from gateway.clock.spans import Finding, Span
from gateway.counters import Counters
from gateway.storage.state.clock_store import ClockStore
from gateway.uplink.reports.control_messages import ControlMessages
from gateway.uplink.reports.reliable_messages import ReliableMessages

SUFFIX = "clock"


def clock_record(finding: Finding) -> dict[str, object]:
    """Return the record of docs/understand/fleet-interface.md; `to` is null during the span."""
    span = finding.span
    return {
        "epoch": span.epoch,
        "offset_ms": finding.offset,
        "uncertainty_ms": finding.uncertainty,
        "from": span.begins,
        "to": span.ends,
        "numbers": _numbers(span),
        "boot": span.boot,
        "uptime_ms": span.begins - span.offset,
    }


def clock_text(finding: Finding) -> str:
    """Return the record as it is stored and sent."""
    return json.dumps(clock_record(finding), separators=(",", ":"))


class ClockReports:
    """Stores each record on disk, in order, until the fleet has acknowledged it."""

    def __init__(
        self, store: ClockStore, own: ControlMessages, counters: Counters, clock: Clock
    ) -> None:
        self._store = store
        self._messages = ReliableMessages(SUFFIX, own, counters, clock)
        self._messages.on_capacity.append(self.send)
        self._sent = 0

    def send(self) -> None:
        """Send as many records as there is capacity for, and resend refused ones."""
        self._messages.resend()
        for identifier in [known for known in self._store.records if known > self._sent]:
            if not self._messages.has_capacity:
                return
            self._sent = identifier
            payload = self._store.records[identifier].encode("ascii")
            self._messages.send(payload, partial(self._reported, identifier))

    def _reported(self, identifier: int) -> None:
        self._store.reported(identifier)
        self._store.end_turn()


def _numbers(span: Span) -> dict[str, list[int | None]]:
    """Return the first and last number of each stream in the span, null if unknown."""
    if span.last is None:
        return {stream: [number + 1, None] for stream, number in span.first.items()}
    return {
        stream: [span.first.get(stream, 0) + 1, last]
        for stream, last in span.last.items()
        if last > span.first.get(stream, 0)
    }
