"""Many small messages in one compressed payload (docs/understand/fleet-interface.md, "Batches")."""

import json
from dataclasses import dataclass

from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.envelope import has_more, remaining_expiry

VERSION = b"\x01"
"""The first byte of a batch; a zlib stream (RFC 1950) of JSON lines follows."""

SUFFIX = "batch"
"""The topic below the gateway's prefix."""

LEVEL = 6
"""Compression level: a reading of 80 bytes takes 20 or 30; level 9 saves a few percent more."""
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_quote = json.encoder.encode_basestring


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch is full: messages, bytes before compression, seconds since its first."""

    messages: int
    bytes: int
    delay: float


def batch_line(row: OutboxRow, *, identity: bool, resent: bool, now: int) -> bytes:
    """Return the line of one message, with its line end, as it is sent at `now` (ms since 1970).

    The payload is `text` if it is UTF-8, and else `payload` in base64. Absent fields are omitted,
    and so are `qos` 1, `retain` and `resent` false.
    """
    try:
        name, text = "text", row.message.payload.decode()
    except UnicodeDecodeError:
        name, text = "payload", _base64(row.message.payload)
    line = (  # the common fields; a drain makes thousands a second, so no dictionary here
        f'{{"epoch":{_quote(row.epoch)},"stream":{_quote(row.stream)},"seq":{row.seq},'
        f'"time":{row.time},"topic":{_quote(row.message.topic)},"{name}":{_quote(text)}'
    )
    if resent:
        line += ',"resent":true'
    if rest := _rest(row, identity=identity, now=now):
        line += f",{_encode(rest)[1:-1]}"
    return f"{line}}}\n".encode()


def _rest(row: OutboxRow, *, identity: bool, now: int) -> dict[str, object]:
    """Return the fields that few messages have."""
    rest: dict[str, object] = {}
    if row.message.qos != 1:
        rest["qos"] = row.message.qos
    if row.message.retain:
        rest["retain"] = True
    if row.message.user_properties:
        rest["properties"] = row.message.user_properties
    if identity:
        rest.update(_present(clientid=row.message.client_id, username=row.message.username))
    if has_more(row):
        rest.update(_rare(row, now))
    return rest


def _rare(row: OutboxRow, now: int) -> dict[str, object]:
    """Return the properties that few messages have."""
    blob = row.message.correlation_data
    return _present(
        content_type=row.message.content_type,
        response_topic=row.message.response_topic,
        correlation_data=None if blob is None else _base64(blob),
        message_expiry=remaining_expiry(row, now),
        payload_format=row.message.payload_format,
    )


def _present(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _base64(data: bytes) -> str:
    from base64 import b64encode  # most payloads are text

    return b64encode(data).decode("ascii")


def batch_payload(lines: list[bytes]) -> bytes:
    """Return the payload of a PUBLISH with the lines."""
    import zlib  # only where batches are configured

    return VERSION + zlib.compress(b"".join(lines), LEVEL)


class Batch:
    """The messages that are collected for one PUBLISH."""

    def __init__(self, limits: BatchLimits) -> None:
        self.rows: list[OutboxRow] = []
        self.paced = 0  # of these rows, those that the backlog's pacing admitted
        self.limits = limits
        self._lines: list[bytes] = []
        self._bytes = 0
        self._due = 0.0

    def fits(self, size: int) -> bool:
        """Return whether a line of `size` bytes fits; the first always does."""
        return not self.rows or self._bytes + size <= self.limits.bytes

    def add(self, row: OutboxRow, line: bytes, now: float, *, paced: bool) -> None:
        """Add a message at the monotonic time `now`."""
        if not self.rows:
            self._due = now + self.limits.delay
        self.rows.append(row)
        self.paced += paced
        self._lines.append(line)
        self._bytes += len(line)

    @property
    def full(self) -> bool:
        """True when a limit is reached."""
        return len(self.rows) >= self.limits.messages or self._bytes >= self.limits.bytes

    def wait(self, now: float) -> float | None:
        """Return the seconds until it is due, None when it is empty."""
        return max(0.0, self._due - now) if self.rows else None

    def payload(self) -> bytes:
        """Return the payload to publish."""
        return batch_payload(self._lines)
