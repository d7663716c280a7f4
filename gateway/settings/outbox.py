"""The bounds of all streams that wait for the fleet: `[outbox]`."""

from collections.abc import Iterator
from enum import StrEnum

from gateway.settings.checks import number, one_of, stream, whole_number
from gateway.settings.declaration import Mistake, key, settings_class
from gateway.settings.quantities import seconds, size_from
from gateway.settings.when_full import OF_ONE_QUEUE, WhenFull


class Mode(StrEnum):
    """What waits of each topic: all messages, the newest only, or each for a limited time."""

    ALL = "all"
    LATEST = "latest"
    EXPIRE = "expire"


@settings_class
class OutboxSettings:
    """Limits of all streams that [wait for the fleet](#the-outbox)."""

    maximum_bytes: int = key(
        size_from(64 * 1024),
        "bytes of the database that may wait for the fleet, the write-ahead log included",
        1024 * 1024 * 1024,
    )
    maximum_messages: int | None = key(
        whole_number(1, 1_000_000_000),
        "messages that may wait",
        None,
    )
    maximum_age: int = key(
        seconds(),
        "how long a message may wait; older ones end as expired",
        0,
        shown='`"0"`, no bound',
    )
    when_full: WhenFull = key(
        one_of(*WhenFull),
        "[what happens](#the-outbox) to a message if the outbox is full",
        WhenFull.DROP_NEWEST,
    )
    survive: int = key(
        seconds(),
        "the [outage](#outages) that the outbox must hold at the expected load; otherwise the "
        "configuration is refused",
        0,
        shown='`"0"`, no promise',
    )
    expected_rate: float | None = key(
        number(0.0001, 1_000_000),
        "messages a second that the rules take; required with `survive`",
        None,
    )
    expected_bytes: int | None = key(
        size_from(1),
        "bytes of a topic and its payload; required with `survive`",
        None,
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:
        """Yield what is missing for a promise."""
        for name in ("expected_rate", "expected_bytes"):
            if self.survive and name not in given:
                yield name, None, "must be given with survive"


@settings_class
class StreamSettings:
    """Limits of one stream that waits for the fleet."""

    name: str = key(
        stream,
        "a stream of the rules with [bounds or mode](#the-outbox) of its own",
    )
    priority: int = key(
        whole_number(1, 10),
        "the backlog of a higher priority is sent first and dropped last",
        5,
    )
    maximum_bytes: int | None = key(
        size_from(64 * 1024),
        "bytes of this stream that may wait, as in `[outbox]`",
        None,
    )
    maximum_messages: int | None = key(
        whole_number(1, 1_000_000_000),
        "messages of this stream that may wait",
        None,
    )
    maximum_age: int = key(
        seconds(),
        "how long a message of this stream may wait",
        0,
        shown='`"0"`, no bound',
    )
    when_full: WhenFull | None = key(
        one_of(*OF_ONE_QUEUE),
        "what happens at the stream's bounds",
        None,
        shown='`"reject"` if `[outbox]` says so, otherwise `"drop-newest"`',
    )
    mode: Mode = key(
        one_of(*Mode),
        "`latest`: only the newest message of each topic waits; `expire`: each waits for at "
        "most `expire_after`",
        Mode.ALL,
    )
    expire_after: int = key(
        seconds(),
        'how long each message waits at most with `mode = "expire"`',
        0,
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:  # noqa: ARG002 - a shape
        """Yield conflicts."""
        if (self.mode is Mode.EXPIRE) != (self.expire_after > 0):
            allowed = 'a time such as "1h" with mode = "expire", and only with it'
            yield "expire_after", self.expire_after, allowed
