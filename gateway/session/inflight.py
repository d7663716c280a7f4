"""QoS 1 and 2 messages that were sent to a client and not yet acknowledged."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.session.delivery_queue import Delivery

MAXIMUM_PACKET_ID = 65_535


@dataclass(slots=True)
class InflightMessage:
    """A delivery on its way; `released` once its PUBREC came and its PUBREL was sent."""

    delivery: Delivery
    released: bool = False


class Inflight:
    """The window of one session's outgoing messages, by packet identifier, in sending order."""

    __slots__ = ("_last", "_messages", "limit")

    def __init__(self, limit: int) -> None:
        self._messages: dict[int, InflightMessage] = {}
        self._last = 0
        self.limit = limit  # the client's Receive Maximum, or ours where that is less

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[tuple[int, InflightMessage]]:
        """Give packet identifier and message in the order they were first sent."""
        return iter(self._messages.items())

    @property
    def has_room(self) -> bool:
        """False while the client's Receive Maximum is reached [MQTT-3.3.4-9]."""
        return len(self._messages) < self.limit

    def add(self, delivery: Delivery) -> int:
        """Keep the delivery and return the free packet identifier it got [MQTT-2.2.1-3]."""
        packet_id = self._last
        while True:
            packet_id = packet_id + 1 if packet_id < MAXIMUM_PACKET_ID else 1
            if packet_id not in self._messages:
                break
        self._last = packet_id
        self._messages[packet_id] = InflightMessage(delivery)
        return packet_id

    def find(self, packet_id: int) -> InflightMessage | None:
        """Return the message with this packet identifier."""
        return self._messages.get(packet_id)

    def remove(self, packet_id: int) -> InflightMessage | None:
        """Forget and return the message; its packet identifier is free again."""
        return self._messages.pop(packet_id, None)
