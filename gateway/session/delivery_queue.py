"""What one session is still owed: a bounded queue, first in first out (MQTT 5, section 4.6)."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.mqtt.message import Message
from gateway.mqtt.message_expiry import expired, expires
from gateway.mqtt.message_size import message_size
from gateway.mqtt.output import Pledge
from gateway.session.queue_memory import DELIVERY_OVERHEAD, QueueMemory

MAXIMUM_MESSAGES = 50_000
"""Deliveries that wait for one session: a night without the client at one a second."""

MAXIMUM_BYTES = 64 * 1024 * 1024
"""Bytes of what waits for one session; 50,000 messages of 700 bytes fit."""


@dataclass(slots=True)
class Delivery:
    """A message on its way to one session: `qos` and `retain` are those it is sent with.

    `subscription_identifiers` are those of every subscription that matched [MQTT-3.3.4-3]. `place`
    is its number in the session's journal, 0 while it is not kept there; `pledge` is set while its
    publisher's answer may wait for its acknowledgement instead of the disk.
    """

    message: Message
    qos: int
    retain: bool = False
    subscription_identifiers: tuple[int, ...] = ()
    place: int = 0
    pledge: Pledge | None = None

    @property
    def size(self) -> int:
        """The bytes it occupies, its message included although others may share that."""
        return DELIVERY_OVERHEAD + message_size(self.message)

    def expired(self, now: float) -> bool:
        """Tell whether the Message Expiry Interval has passed; `now` is monotonic seconds."""
        return expired(self.message, now)


@dataclass(slots=True)
class SharedDelivery(Delivery):
    """A delivery that a shared subscription gave to this member; `topic_filter` is all of it."""

    topic_filter: str = ""


class DeliveryQueue:
    """Deliveries in the order they were appended, within bounds of number and bytes.

    A full queue refuses the newest, never drops what waits already: that was acknowledged to
    its publisher. So does every queue while the `memory` that they share is full. The caller counts
    what was refused.
    """

    __slots__ = (
        "_bytes",
        "_deliveries",
        "_expires",
        "_memory",
        "maximum_bytes",
        "maximum_messages",
    )

    def __init__(
        self,
        maximum_messages: int = MAXIMUM_MESSAGES,
        maximum_bytes: int = MAXIMUM_BYTES,
        memory: QueueMemory | None = None,
    ) -> None:
        self.maximum_messages = maximum_messages
        self.maximum_bytes = maximum_bytes
        self._memory = memory or QueueMemory()
        self._deliveries: deque[Delivery] = deque()
        self._bytes = 0
        self._expires = math.inf  # the monotonic second before which nothing here expires

    def __len__(self) -> int:
        return len(self._deliveries)

    @property
    def bytes(self) -> int:
        """The bytes of what waits; the last delivery may exceed `maximum_bytes`, then none."""
        return self._bytes

    @property
    def full(self) -> bool:
        """True if the next `append` is refused, whatever its size."""
        return self.at_bound or self._memory.full

    @property
    def at_bound(self) -> bool:
        """True if it is full by itself, and not for what other sessions hold."""
        return len(self._deliveries) >= self.maximum_messages or self._bytes >= self.maximum_bytes

    def append(self, delivery: Delivery) -> bool:
        """Queue the delivery; return False, and leave it out, if the queue is full."""
        if self.full:
            return False
        self.restore(delivery)
        return True

    def restore(self, delivery: Delivery) -> None:
        """Queue what waited in an earlier run, also beyond the bounds: it is promised."""
        self._deliveries.append(delivery)
        self._bytes += delivery.size
        self._memory.add(delivery.message)
        if delivery.message.message_expiry is not None:
            self._expires = min(self._expires, expires(delivery.message))

    def __iter__(self) -> Iterator[Delivery]:
        return iter(self._deliveries)

    def first(self) -> Delivery:
        """Return the delivery that is next; raises IndexError if none waits."""
        return self._deliveries[0]

    def popleft(self) -> Delivery:
        """Remove and return the delivery that is next; raises IndexError if none waits."""
        delivery = self._deliveries.popleft()
        self._bytes -= delivery.size
        self._memory.remove(delivery.message)
        return delivery

    def clear(self) -> None:
        """Remove everything: the session has ended."""
        self._keep(lambda _: False)

    def remove_expired(self, now: float) -> list[Delivery]:
        """Remove and return what has expired at `now` (monotonic seconds) [MQTT-3.3.2-5].

        Costs the length of the queue, and nothing before the first message in it expires.
        """
        if now < self._expires:
            return []
        removed = self._keep(lambda delivery: not delivery.expired(now))
        self._expires = min(
            (expires(delivery.message) for delivery in self._deliveries), default=math.inf
        )
        return removed

    def remove_qos_0(self) -> int:
        """Remove what needs no acknowledgement, and so no session to wait in; return how many."""
        return len(self._keep(lambda delivery: delivery.qos > 0))

    def _keep(self, wanted: Callable[[Delivery], bool]) -> list[Delivery]:
        """Keep what is wanted; return the rest."""
        kept: deque[Delivery] = deque()
        removed = []
        for delivery in self._deliveries:
            if wanted(delivery):
                kept.append(delivery)
            else:
                removed.append(delivery)
                self._bytes -= delivery.size
                self._memory.remove(delivery.message)
        self._deliveries = kept
        return removed
