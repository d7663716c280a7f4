"""What of all streams may wait for the fleet: `[outbox]`."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.config.checks import number, one_of, whole_number
from gateway.config.declaration import Mistake, key
from gateway.config.quantities import duration, size_from
from gateway.config.when_full import WhenFull


@dataclass(frozen=True, slots=True)
class OutboxConfig:
    """What of all streams may [wait for the fleet](#what-waits-for-the-fleet)."""

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
        duration,
        "how long a message may wait; older ones end as expired",
        0,
        shown='`"0"`, no bound',
    )
    when_full: str = key(
        one_of(*WhenFull),
        "[what happens](#what-waits-for-the-fleet) to a message that has no room; by default "
        "local subscribers get it and the fleet does not",
        "drop-newest",
    )
    survive: int = key(
        duration,
        "how long an outage of the fleet must be borne at the expected load: a "
        "configuration that [cannot keep it](#outages) is refused",
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
        """Yield what a promise lacks."""
        for name in ("expected_rate", "expected_bytes"):
            if self.survive and name not in given:
                yield name, None, "must be given with survive"
