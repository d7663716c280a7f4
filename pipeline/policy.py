"""Which times are believed, when two boards have one name, and who goes on under another name.

No event is later than its receipt, and no clock counts that was never set. Two epochs of a gateway
that run at one time are two boards. A sensor or gateway that took the place of another one
continues its series (docs/understand/clocks.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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


def in_range(value: str) -> str:
    """Return SQL that says whether an expression is a time from 2000 to 2099."""
    return f"({value}) BETWEEN {TIME_MIN} AND {TIME_MAX}"


def receipt(read_ms: int) -> str:
    """Return SQL for the latest time that an event may have, without the tolerance.

    It is that of the receipt, and never later than `read_ms`, when the pipeline read the record: a
    gateway that lands its own files sets `received` itself.
    """
    return f"least(IF({in_range('received')}, received, {read_ms}), {read_ms})"


def believed(value: str, read_ms: int) -> str:
    """Return SQL for a time in ms that can be right, null for one that cannot."""
    latest = receipt(read_ms)
    unset = " OR ".join(
        f"({value}) BETWEEN {begin} AND {begin + UNSET_MS}" for begin in UNSET.values()
    )
    never_set = f"try_subtract({latest}, {value}) > {UNSET_LATE_MS} AND ({unset})"
    right = f"{in_range(value)} AND ({value}) <= {latest} + {TOLERANCE_MS} AND NOT ({never_set})"
    return f"CASE WHEN {right} THEN ({value}) END"
