"""A rule over the messages of one topic in their order: what goes up, and what that costs.

The gateway's own evaluator decides, so that a back test and a gateway have one meaning.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from gateway.mqtt.message import Message
from gateway.where.rule import RuleWhere, compile_rule

BATCH = 100
"""Messages that are compressed together, as `[uplink] batch` does."""
ENVELOPE = 60
"""Bytes of a message at the fleet's broker beside topic and payload: header, `seq` and `time`."""


class Row(NamedTuple):
    """A message of the tables, and the time that holds for it in ms since 1970."""

    gateway_id: str
    topic: str
    event_ms: int
    payload: bytes
    qos: int | None
    retain: bool | None
    clientid: str | None
    username: str | None
    content_type: str | None
    properties: list[dict[str, str]] | None
    value: float | None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    message_expiry: int | None = None
    payload_format: int | None = None
    rule: int | None = None
    """What Spark decided of the rule (`spark_sql`), None for nothing."""
    alarm: int | None = None


class Sums(NamedTuple):
    """What a topic gave on one day."""

    gateway_id: str
    topic: str
    date: str
    rows: int
    sent: int
    bytes_all: int
    bytes_sent: int
    bytes_batched_all: int
    bytes_batched_sent: int
    longest_silence_ms: int
    largest_error: float | None
    alarms: int
    missed: int
    unknown: int = 0
    """Readings of which a reader knows nothing, since none was sent by then."""
    worst_ms: int | None = None
    """When the error was largest; without an error, when a reader first had no value."""


@dataclass
class _Packed:
    """The size of messages that are compressed BATCH at a time."""

    size: int = 0
    _waiting: list[bytes] = field(default_factory=list)

    def add(self, row: Row) -> None:
        self._waiting.append(
            b'{"topic":"%b","time":%d}' % (row.topic.encode(), row.event_ms) + row.payload
        )
        if len(self._waiting) >= BATCH:
            self.close()

    def close(self) -> int:
        if self._waiting:
            self.size += len(zlib.compress(b"\n".join(self._waiting))) + ENVELOPE
            self._waiting.clear()
        return self.size


class TopicFold:
    """Runs a rule over the messages of one gateway's topic; an alarm may be another rule."""

    def __init__(self, rule: str, alarm: str | None) -> None:
        self._rule = compile_rule(rule)
        self._alarm = compile_rule(alarm) if alarm else None
        self._last_sent: Row | None = None
        self._begun_ms: int | None = None

    def days(self, rows: Iterable[Row]) -> Iterator[Sums]:
        """Yield what the rows, which are in their order, give on each day."""
        day: _Day | None = None
        for row in rows:
            date = datetime.fromtimestamp(row.event_ms / 1000, UTC).date().isoformat()
            if day is None or day.date != date:
                if day is not None:
                    yield day.sums()
                day = _Day(row.gateway_id, row.topic, date)
            self._take(row, day)
        if day is not None:
            yield day.sums()

    def decide(self, row: Row) -> bool:
        """Say whether a row is sent, and remember it."""
        return _passes(self._rule, row, row.rule)

    def _take(self, row: Row, day: "_Day") -> None:
        sent = _passes(self._rule, row, row.rule)
        alarm = self._alarm is not None and _passes(self._alarm, row, row.alarm)
        if self._begun_ms is None:
            self._begun_ms = row.event_ms
        day.count(row, self._last_sent, self._begun_ms, sent=sent, alarm=alarm)
        if sent:
            self._last_sent = row


@dataclass
class _Day:
    gateway_id: str
    topic: str
    date: str
    rows: int = 0
    sent: int = 0
    bytes_all: int = 0
    bytes_sent: int = 0
    silence: int = 0
    error: float | None = None
    alarms: int = 0
    missed: int = 0
    unknown: int = 0
    worst_ms: int | None = None
    all: _Packed = field(default_factory=_Packed)
    kept: _Packed = field(default_factory=_Packed)

    def count(
        self, row: Row, before: Row | None, begun_ms: int, *, sent: bool, alarm: bool
    ) -> None:
        """Count a row; `before` was sent last, if anything was since the first row."""
        size = len(row.payload) + len(row.topic) + len(row.gateway_id) + ENVELOPE
        self.rows += 1
        self.bytes_all += size
        self.all.add(row)
        self.alarms += alarm
        self.missed += alarm and not sent
        since = begun_ms if before is None else before.event_ms
        self.silence = max(self.silence, row.event_ms - since)
        if sent:
            self.sent += 1
            self.bytes_sent += size
            self.kept.add(row)
        elif row.value is not None:
            self._count_error(row.event_ms, row.value, None if before is None else before.value)

    def _count_error(self, event_ms: int, value: float, held: float | None) -> None:
        if held is None:
            self.unknown += 1
            self.worst_ms = event_ms if self.worst_ms is None else self.worst_ms
        elif self.error is None or abs(value - held) > self.error:
            self.error = abs(value - held)
            self.worst_ms = event_ms

    def sums(self) -> Sums:
        return Sums(
            *(self.gateway_id, self.topic, self.date, self.rows, self.sent),
            *(self.bytes_all, self.bytes_sent, self.all.close(), self.kept.close()),
            *(self.silence, self.error, self.alarms, self.missed),
            unknown=self.unknown,
            worst_ms=self.worst_ms,
        )


def _passes(rule: RuleWhere, row: Row, decided: int | None) -> bool:
    """Say whether the row passes; what Spark decided leaves nothing to be remembered."""
    if decided is not None:
        return decided == 1
    message = _message(row)
    result = rule.evaluate(message)
    rule.record(message, result)
    return result is True


def _message(row: Row) -> Message:
    pairs: list[dict[str, Any]] = row.properties or []
    return Message(
        row.topic,
        row.payload,
        1 if row.qos is None else row.qos,
        bool(row.retain),
        client_id=row.clientid,
        username=row.username,
        received_at=row.event_ms,
        arrived=row.event_ms / 1000,
        content_type=row.content_type,
        response_topic=row.response_topic,
        correlation_data=row.correlation_data,
        message_expiry=row.message_expiry,
        payload_format=row.payload_format,
        user_properties=tuple((pair["name"], pair["value"]) for pair in pairs),
    )
