"""What waits for one session, counted against its bounds."""

import math
from collections.abc import Sequence

from gateway.mqtt.message_expiry import expires
from gateway.session.delivery import Delivery
from gateway.session.queue_bounds import (
    MAXIMUM_BYTES,
    MAXIMUM_MEMORY,
    MAXIMUM_MESSAGES,
    MOST_OF_RUN,
)
from gateway.session.queue_memory import QueueMemory
from gateway.session.waiting_run import Waiting, WaitingRun


class QueueAccount:
    """The number and the bytes of what a queue holds, in all and in memory.

    The number is that of messages, also where those of a run wait as one. Bytes count as what they
    take of the disk, or of memory where a delivery is not written. What all sessions share is told
    to their `memory`.

    `DeliveryQueue` is one and has none: an object more would cost each session as much again, and
    each message a call.
    """

    __slots__ = (
        "_bytes",
        "_expires",
        "_memory",
        "_memory_bytes",
        "_messages",
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
        self._messages = 0
        self._bytes = 0
        self._memory_bytes = 0
        self._expires = math.inf  # the monotonic second before which nothing in memory expires

    def __len__(self) -> int:
        return self._messages

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return self._messages > 0

    @property
    def bytes(self) -> int:
        """The bytes of what waits; the last delivery may exceed `maximum_bytes`, then none."""
        return self._bytes

    @property
    def full(self) -> bool:
        """True if the next delivery is refused, whatever its size."""
        return self.over(1)

    def over(self, more: int) -> bool:
        """Tell whether there is no room for `more` deliveries."""
        return self.at_bound_with(more) or self._memory.full or self._memory.disk_full

    def at_bound_with(self, more: int) -> bool:
        """Tell whether there is none by itself, and not for what other sessions hold."""
        return (
            self._messages + more > self.maximum_messages
            or self._bytes >= self.maximum_bytes
            or self._memory_bytes >= MAXIMUM_MEMORY
        )

    @property
    def room_for_run(self) -> int:
        """How many deliveries there surely is room for if none is above LARGEST_OF_RUN."""
        memory = self._memory
        left = min(
            self.maximum_bytes - self._bytes,
            MAXIMUM_MEMORY - self._memory_bytes,
            memory.maximum_bytes - memory.bytes,
            memory.maximum_disk_bytes - memory.disk_bytes,
        )
        return min(self.maximum_messages - self._messages, left // MOST_OF_RUN)

    @property
    def memory_full(self) -> bool:
        """True if it is memory that has no room for more, of this session or of all."""
        return self._memory_bytes >= MAXIMUM_MEMORY or self._memory.full

    def _add(self, delivery: Waiting) -> None:
        """Count a delivery that waits from now on, in memory."""
        self._messages += delivery.count
        self._bytes += delivery.kept or delivery.size
        self._memory.keep(delivery.kept)
        self._remember(delivery)

    def _add_all(self, deliveries: Sequence[Delivery]) -> None:
        """Do that with each; none of them expires."""
        self._messages += len(deliveries)
        self._memory_bytes += self._memory.add_all(each.message for each in deliveries)
        self._bytes += sum(each.kept or each.size for each in deliveries)
        self._memory.keep(sum(each.kept for each in deliveries))

    def _remove(self, delivery: Waiting) -> None:
        """Count a delivery that waited in memory, and does not any more."""
        self._messages -= delivery.count
        self._bytes -= delivery.kept or delivery.size
        self._memory.keep(-delivery.kept)
        self._forget(delivery)

    def _remove_all(self, deliveries: Sequence[Delivery]) -> int:
        """Do that with each; return their bytes in memory."""
        size = self._memory.remove_all(each.message for each in deliveries)
        self._messages -= len(deliveries)
        self._memory_bytes -= size
        self._bytes -= sum(each.kept or each.size for each in deliveries)
        self._memory.keep(-sum(each.kept for each in deliveries))
        return size

    def _remember(self, delivery: Waiting) -> None:
        """Count the delivery as one in memory."""
        self._memory_bytes += delivery.size
        if isinstance(delivery, WaitingRun):
            self._memory.add_run(delivery.run)
            return
        self._memory.add(delivery.message)
        if delivery.message.message_expiry is not None:
            self._expires = min(self._expires, expires(delivery.message))

    def _forget(self, delivery: Waiting) -> None:
        """Count it as none in memory, wherever else it is."""
        self._memory_bytes -= delivery.size
        if isinstance(delivery, WaitingRun):
            self._memory.remove_run(delivery.run)
        else:
            self._memory.remove(delivery.message)

    def _add_paged(self, messages: int, size: int) -> None:
        """Count what waits on disk alone; below 0, what does so no more."""
        self._messages += messages
        self._bytes += size
        self._memory.keep(size)
        self._memory.page(messages, size)
