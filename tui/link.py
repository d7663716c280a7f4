"""The state of our own connection to the gateway, and what its thread tells."""

from dataclasses import dataclass
from enum import Enum

FIRST_DELAY = 1.0
"""seconds before the first new attempt"""
LONGEST_DELAY = 15.0
"""seconds between attempts at most"""


class Phase(Enum):
    """Where a connection stands."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    WAITING = "waiting"
    REFUSED = "refused"
    """the login was refused: nothing is tried again by itself"""


@dataclass(frozen=True, slots=True)
class Link:
    """A phase of the connection and what belongs to it; times are in seconds since 1970."""

    phase: Phase
    attempt: int = 1
    """this attempt's number, or the next one's, since the connection was last up"""
    reason: str = ""
    """why it is not up"""
    retry_at: float = 0.0
    """when the next attempt comes; of WAITING"""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The gateway answered for a topic filter; `refusal` is empty if it lets us hear it."""

    topic_filter: str
    refusal: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The gateway acknowledged what we published under this key."""

    key: str
    refusal: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The gateway answered a query."""

    key: str
    payload: bytes


LinkEvent = Link | Subscribed | Acknowledged | Answered


def delay_after(attempt: int) -> float:
    """Return the seconds to wait after so many failed attempts: doubled each time, bounded."""
    return float(min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(max(attempt, 1) - 1, 16)))
