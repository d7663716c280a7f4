"""What of one stream may wait for the fleet: `[[uplink.stream]]`."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.config.checks import one_of, stream, whole_number
from gateway.config.declaration import Mistake, key
from gateway.config.quantities import duration, size_from
from gateway.config.when_full import OF_A_STREAM


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """What of one stream may wait for the fleet."""

    name: str = key(
        stream,
        "a stream of the rules that has [bounds or a mode of its own](#what-waits-for-the-fleet)",
    )
    priority: int = key(
        whole_number(1, 10),
        "the backlog of a higher priority goes up first, and `drop-lowest-priority` "
        "gives up the lowest first",
        5,
    )
    maximum_bytes: int | None = key(
        size_from(64 * 1024),
        "bytes that may wait of this stream, as in `[outbox]`",
        None,
    )
    maximum_messages: int | None = key(
        whole_number(1, 1_000_000_000),
        "messages of this stream that may wait",
        None,
    )
    maximum_age: int = key(
        duration,
        "how long a message of this stream may wait",
        0,
        shown='`"0"`, no bound',
    )
    when_full: str | None = key(
        one_of(*OF_A_STREAM),
        "what happens at the stream's own bounds",
        None,
        shown='`"reject"` if `[outbox]` says so, otherwise `"drop-newest"`',
    )
    mode: str = key(
        one_of("all", "latest", "expire"),
        "`latest`: of each topic only the newest message waits; `expire`: each waits "
        "for `expire_after` at most",
        "all",
    )
    expire_after: int = key(
        duration,
        'how long each message waits at most, with `mode = "expire"`',
        0,
    )

    def mistakes(self, given: frozenset[str]) -> Iterator[Mistake]:  # noqa: ARG002 - a shape
        """Yield what does not go together."""
        if (self.mode == "expire") != (self.expire_after > 0):
            allowed = 'a time such as "1h" with mode = "expire", and only with it'
            yield "expire_after", self.expire_after, allowed
