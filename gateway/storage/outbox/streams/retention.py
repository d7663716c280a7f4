"""How much the outbox keeps, for how long, and who goes when there is no room."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from gateway.config.when_full import WhenFull
from gateway.storage.engine.log_file import known_log_bytes, log_of

DEFAULT_PRIORITY = 5
"""The priority of a stream that has none of its own, in the middle of 1 (lowest) to 10."""

DEFAULT_MAXIMUM_BYTES = 1024 * 1024 * 1024
"""Bytes that the outbox may take of the file, its share of the write-ahead log included."""

LOG_SHARE = 16 * 1024 * 1024
"""Bytes of that bound that are kept for the write-ahead log, a quarter of it if that is less."""


class Mode(StrEnum):
    """What waits of each topic: all messages, the newest only, or each for a limited time."""

    ALL = "all"
    LATEST = "latest"
    EXPIRE = "expire"


@dataclass(frozen=True, slots=True)
class Retention:
    """Bounds in bytes (`row_size`), messages and seconds of age; None is no bound."""

    maximum_bytes: int | None = None
    maximum_messages: int | None = None
    maximum_age: int | None = None
    when_full: WhenFull = WhenFull.REJECT

    @property
    def needs_oldest(self) -> bool:
        """Whether messages that wait may be given up, for room or for their age."""
        drops = self.when_full not in (WhenFull.REJECT, WhenFull.DROP_NEWEST)
        return drops or self.maximum_age is not None

    @property
    def drops(self) -> bool:
        """Whether acknowledged messages may be given up, an arriving one among them."""
        return self.when_full is not WhenFull.REJECT or self.maximum_age is not None

    def over(self, rows: int, size: int) -> bool:
        """Return whether so many rows of so many bytes are too much."""
        return (self.maximum_messages is not None and rows > self.maximum_messages) or (
            self.maximum_bytes is not None and size > self.maximum_bytes
        )


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """One stream of the outbox; `expire_after` is in seconds and belongs to EXPIRE."""

    name: str
    priority: int = DEFAULT_PRIORITY
    retention: Retention = Retention()
    mode: Mode = Mode.ALL
    expire_after: int = 0


@dataclass(frozen=True, slots=True)
class OutboxSettings:
    """The bounds of the whole outbox and its streams; one not listed has the defaults."""

    retention: Retention = Retention(maximum_bytes=DEFAULT_MAXIMUM_BYTES)
    streams: tuple[StreamSettings, ...] = field(default=())


def for_rows(maximum_bytes: int) -> int:
    """Return the bytes that are left for rows of a bound that covers the log as well."""
    return maximum_bytes - min(LOG_SHARE, maximum_bytes // 4)


def log_excess(database: Path) -> int:
    """Return the bytes by which the write-ahead log of `database` is beyond LOG_SHARE."""
    return max(0, known_log_bytes(log_of(database)) - LOG_SHARE)
