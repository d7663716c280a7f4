"""The bounds of one session, and the memory that it shares with all others."""

from dataclasses import dataclass, field
from enum import StrEnum

from gateway.session.incoming import MAXIMUM_INCOMING
from gateway.session.queue.bounds import MAXIMUM_BYTES, MAXIMUM_MESSAGES
from gateway.session.queue.memory import QueueMemory

MAXIMUM_INFLIGHT = 1_000
"""Unacknowledged messages to one client, where its own Receive Maximum is not less.

As many as a fast client leaves unacknowledged between two reads; `inflight.MAXIMUM_BYTES` bounds
what they hold.
"""


class WhenFull(StrEnum):
    """What becomes of a QoS 1 or 2 message for a session that stays and whose queue is full.

    Only REJECT keeps what was acknowledged.
    """

    REJECT = "reject"  # its publisher is refused, and nobody gets it
    DROP_OLDEST = "drop-oldest"  # it takes the place of what has waited longest
    DROP_NEWEST = "drop-newest"  # this session does not get it


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """What a session may hold: messages and bytes."""

    maximum_inflight: int = MAXIMUM_INFLIGHT
    maximum_incoming: int = MAXIMUM_INCOMING
    maximum_queued_messages: int = MAXIMUM_MESSAGES
    maximum_queued_bytes: int = MAXIMUM_BYTES
    when_full: WhenFull = WhenFull.REJECT
    memory: QueueMemory = field(default_factory=QueueMemory)
