"""What one session is still owed: a bounded queue, first in first out (MQTT 5, section 4.6)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gateway.mqtt.message import Message
from gateway.mqtt.message_expiry import expired
from gateway.mqtt.message_size import message_size

MAXIMUM_MESSAGES = 50_000
"""Deliveries that wait for one session: a night without the client at one a second."""

MAXIMUM_BYTES = 64 * 1024 * 1024
"""Bytes of what waits for one session; 50,000 messages of 700 bytes fit."""

DELIVERY_OVERHEAD = 100
"""Bytes of a delivery beside its message: the object and its place in the queue."""


@dataclass(slots=True)
class Delivery:
    """A message on its way to one session: `qos` and `retain` are those it is sent with.

    `subscription_identifiers` are those of every subscription that matched [MQTT-3.3.4-3].
    """

    message: Message
    qos: int
    retain: bool = False
    subscription_identifiers: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The bytes it occupies, its message included although others may share that."""
        return DELIVERY_OVERHEAD + message_size(self.message)

    def expired(self, now: float) -> bool:
        """Tell whether the Message Expiry Interval has passed; `now` is monotonic seconds."""
        return expired(self.message, now)


class DeliveryQueue:
    """Deliveries in the order they were appended, within bounds of number and bytes.

    A full queue refuses the newest, never drops what waits already: that was acknowledged to
    its publisher. The caller counts what was refused.
    """

    __slots__ = ("_bytes", "_deliveries", "maximum_bytes", "maximum_messages")

    def __init__(
        self, maximum_messages: int = MAXIMUM_MESSAGES, maximum_bytes: int = MAXIMUM_BYTES
    ) -> None:
        self.maximum_messages = maximum_messages
        self.maximum_bytes = maximum_bytes
        self._deliveries: deque[Delivery] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._deliveries)

    @property
    def bytes(self) -> int:
        """The bytes of what waits; the last delivery may exceed `maximum_bytes`, then none."""
        return self._bytes

    @property
    def full(self) -> bool:
        """True if the next `append` is refused, whatever its size."""
        return len(self._deliveries) >= self.maximum_messages or self._bytes >= self.maximum_bytes

    def append(self, delivery: Delivery) -> bool:
        """Queue the delivery; return False, and leave it out, if the queue is full."""
        if self.full:
            return False
        self._deliveries.append(delivery)
        self._bytes += delivery.size
        return True

    def first(self) -> Delivery:
        """Return the delivery that is next; raises IndexError if none waits."""
        return self._deliveries[0]

    def popleft(self) -> Delivery:
        """Remove and return the delivery that is next; raises IndexError if none waits."""
        delivery = self._deliveries.popleft()
        self._bytes -= delivery.size
        return delivery

    def remove_expired(self, now: float) -> int:
        """Remove what has expired at `now` (monotonic seconds) [MQTT-3.3.2-5]; return how many."""
        return self._keep(lambda delivery: not delivery.expired(now))

    def remove_qos_0(self) -> int:
        """Remove what needs no acknowledgement, and so no session to wait in; return how many."""
        return self._keep(lambda delivery: delivery.qos > 0)

    def _keep(self, wanted: Callable[[Delivery], bool]) -> int:
        before = len(self._deliveries)
        kept = [delivery for delivery in self._deliveries if wanted(delivery)]
        if len(kept) < before:
            self._deliveries = deque(kept)
            self._bytes = sum(delivery.size for delivery in kept)
        return before - len(kept)
