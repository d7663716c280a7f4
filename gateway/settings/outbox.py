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
    """Limits of all that [waits for the fleet](#the-outbox)."""

    maximum_bytes: int = key(
        size_from(64 * 1024),
        "bytes on disk, with the write-ahead log",
        1024 * 1024 * 1024,
    )
    maximum_messages: int | None = key(
        whole_number(1, 1_000_000_000),
        "messages that may wait",
        None,
    )
    maximum_age: int = key(
        seconds(),
        "longest wait; 0: any",
        0,
    )
    when_full: WhenFull = key(
        one_of(*WhenFull),
        "[what happens](#the-outbox) then",
        WhenFull.DROP_NEWEST,
    )
    survive: int = key(
        seconds(),
        "an [outage](#outages) that it must hold",
        0,
    )
    expected_rate: float | None = key(
        number(0.0001, 1_000_000),
        "messages a second that rules take; required with `survive`",
        None,
    )
    expected_bytes: int | None = key(
        size_from(1),
        "size of a topic and its payload; required with `survive`",
        None,
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:
        """Yield what is missing for a promise."""
        for name in ("expected_rate", "expected_bytes"):
            if self.survive and name not in given:
                yield name, None, "must be given with survive"


@settings_class
class StreamSettings:
    """Limits of one [stream](#the-outbox)."""

    name: str = key(
        stream,
        "a stream of the rules",
    )
    priority: int = key(
        whole_number(1, 10),
        "a higher one is sent first and dropped last",
        5,
    )
    maximum_bytes: int | None = key(
        size_from(64 * 1024),
        "bytes that may wait",
        None,
    )
    maximum_messages: int | None = key(
        whole_number(1, 1_000_000_000),
        "messages that may wait",
        None,
    )
    maximum_age: int = key(
        seconds(),
        "longest wait; 0: any",
        0,
    )
    when_full: WhenFull | None = key(
        one_of(*OF_ONE_QUEUE),
        "at these bounds",
        None,
        shown='`"reject"` if `[outbox]` has it, otherwise `"drop-newest"`',
    )
    mode: Mode = key(
        one_of(*Mode),
        "`latest`: only the newest message of each topic waits; `expire`: each at most "
        "`expire_after`",
        Mode.ALL,
    )
    expire_after: int = key(
        seconds(),
        "longest wait in that mode",
        0,
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:  # noqa: ARG002 - a shape
        """Yield conflicts."""
        if (self.mode is Mode.EXPIRE) != (self.expire_after > 0):
            allowed = 'a time such as "1h" with mode = "expire", and only with it'
            yield "expire_after", self.expire_after, allowed
