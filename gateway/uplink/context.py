"""What all parts of one uplink use: settings, outbox, counters, clock and queues."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.settings.uplink import UplinkSettings
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.uplink.begin_connection import BeginConnection, begin_connection
from gateway.uplink.link.budget import Metering
from gateway.uplink.remote_session import RemoteSession
from gateway.uplink.reports.control_messages import ControlMessages

if TYPE_CHECKING:
    from gateway.storage.state.uplink_state import FleetTopics
    from gateway.uplink.down import Down
    from gateway.uplink.retained import RetainedUp


RECALL_TOPIC = "control/recall"
"""Below `<prefix>/<gateway_id>/`: requests for messages of the history."""

RECALL_ANSWERS = "recall"
"""The topic of the answers."""


class Queue(Protocol):
    """What sends, at the end of a turn, what was queued in it."""

    active: bool
    """Whether its peer may wait for what is sent."""

    def flush(self, committed: int, now: object) -> int:
        """Send it; return the batch that the rest waits for, 0 if none."""
        ...


AtTurnEnd = Callable[[Queue], None]
"""Has a queue flushed at the end of the turn that handles packets."""


class Topics:
    """The topics to which the session at the fleet's broker is subscribed; here in memory only."""

    def __init__(self) -> None:
        self.topics: set[str] = set()

    def add(self, topics: Iterable[str]) -> None:
        """Note topics."""
        self.topics.update(topics)

    def discard(self, topics: Iterable[str]) -> None:
        """Note that topics are subscribed to no more."""
        self.topics.difference_update(topics)


@dataclass(slots=True)
class Requests:
    """The handlers of requests, without which the gateway does not subscribe.

    `retained` sends the retained messages.
    """

    recall: Callable[[bytes], None] | None = None
    down: "Down | None" = None
    retained: "RetainedUp | None" = None
    subscribed: "Topics | FleetTopics" = field(default_factory=Topics)


def soon(queue: Queue) -> None:
    """Have it flushed in the next round of the loop, if there are no turns."""
    asyncio.get_running_loop().call_soon(queue.flush, 0, None)


@dataclass(frozen=True, slots=True)
class UplinkContext:
    """Made once for an uplink and passed to each of its parts.

    `uplink` is its bit in the outbox.
    """

    settings: UplinkSettings
    outbox: Outbox
    rejected: Rejected
    counters: Counters
    clock: Clock
    control_messages: ControlMessages
    metering: Metering
    session: RemoteSession
    at_turn_end: AtTurnEnd = soon
    begin_connection: BeginConnection = begin_connection
    requests: Requests = field(default_factory=Requests)
    uplink: int = 1
