"""Which times are believed, when two boards have one name, and who goes on under another name.

No event is later than its receipt, and no clock counts that was never set. Two epochs of a gateway
that run at one time are two boards. A sensor or gateway that took the place of another one
continues its series (docs/understand/clocks.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

TIME_MIN = 946_684_800_000
"""Milliseconds: 2000-01-01. Seconds mistaken for milliseconds fall below, as does a fresh clock."""
TIME_MAX = 4_102_444_799_999
"""Milliseconds: the last of 2099. Microseconds mistaken for milliseconds lie above."""

TOLERANCE_MS = 300_000
"""An event may be so much later than its receipt, since no two clocks agree."""

UNSET = {
    "2000-01-01": 946_684_800_000,  # ESP32 and ESP8266 by MicroPython, many clock chips
    "2010-01-01": 1_262_304_000_000,
    "2015-01-01": 1_420_070_400_000,  # STM32 by MicroPython
    "2021-01-01": 1_609_459_200_000,  # RP2040
}
"""Days on which boards' clocks begin that were never set; those of 1970 and 1980 are below
TIME_MIN."""
UNSET_MS = 31 * 86_400_000
"""So long after such a day a time is one of a clock that was never set ..."""
UNSET_LATE_MS = 366 * 86_400_000
"""... if it was received so much later: longer than any backlog."""


SWITCHES = 3
"""Messages of two epochs alternate if one follows the other so often: a restart is one switch, and
a backlog that comes behind it two."""


@dataclass(frozen=True)
class Aliases:
    """Names of gateways and nodes that have another one now."""

    gateways: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By the gateway's name of now and the node's of before."""

    def of(self, gateway: str, node: str | None) -> tuple[str, str | None]:
        """Return the names of now."""
        now = self.gateways.get(gateway, gateway)
        return now, None if node is None else self.nodes.get((now, node), node)


def in_range(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Say which times (ms) are from 2000 to 2099; null is not."""
    return between(times, TIME_MIN, TIME_MAX)


def between(times: pa.ChunkedArray, low: int, high: int) -> pa.ChunkedArray:
    """Say which times lie from `low` to `high`, both included; null does not."""
    found = pc.and_(pc.greater_equal(times, low), pc.less_equal(times, high))
    return pc.fill_null(found, fill_value=False)


def receipt(received: pa.ChunkedArray, read_ms: int) -> pa.ChunkedArray:
    """Return the latest time that an event may have, without the tolerance.

    It is that of the receipt, and never later than `read_ms`, when the pipeline read the record: a
    gateway that lands its own files sets `received` itself.
    """
    return pc.min_element_wise(pc.if_else(in_range(received), received, read_ms), read_ms)


def believed(times: pa.ChunkedArray, latest: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return those times in ms that can be right, null for the others; `latest` is `receipt`."""
    after_start = [between(times, begin, begin + UNSET_MS) for begin in UNSET.values()]
    late = pc.greater(pc.subtract(latest, times), UNSET_LATE_MS)
    never_set = pc.and_(late, reduce(pc.or_, after_start))
    early = pc.less_equal(times, pc.add(latest, TOLERANCE_MS))
    right = pc.and_(in_range(times), pc.and_not(early, never_set))
    return pc.if_else(right, times, pa.scalar(None, pa.int64()))
