"""Deliveries as they are read back from the disk, with their messages."""

from gateway.routing.where.message import Message
from gateway.session.delivery_queue import Delivery, SharedDelivery
from gateway.session.kept import KeptDelivery
from gateway.storage import message_row
from gateway.storage.reading import Values
from gateway.storage.session_rows import text_to_identifiers

_MESSAGE = ", ".join(f"m.{column}" for column in message_row.COLUMNS)

READ = (
    "SELECT session, place, message, delivery.qos, delivery.retain, packet_id, released,"  # noqa: S608 - our columns
    f" identifiers, shared_filter, size, alone, {_MESSAGE}"
    " FROM delivery LEFT JOIN message AS m ON m.id = message"
    " WHERE session = ? AND place > ? AND place <= ? ORDER BY place LIMIT ?"
)
"""The first so many deliveries of a session with places above one and up to another."""

NUMBERS = 11
"""Columns of READ before those of the message."""


class DeliveryReader:
    """Makes deliveries of the rows of READ; `monotonic` (s) and `wall` (ms since 1970) are now.

    Those of one reader share the messages that they have in common.
    """

    def __init__(self, monotonic: float, wall: int) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._shared: dict[int, Message] = {}

    def read(self, values: Values) -> KeptDelivery:
        """Return the delivery; raise ValueError or TypeError for what is none."""
        _, place, row, qos, retain, packet_id, released, numbers, topic_filter, *_ = values
        qos = message_row.check_qos(qos)
        identifiers = text_to_identifiers(numbers)
        packet_id = check_packet_id(packet_id)
        message = self._message(row, values)
        if topic_filter is None:
            delivery = Delivery(message, qos, bool(retain), identifiers, place)
        else:
            delivery = SharedDelivery(
                message, qos, bool(retain), identifiers, place, topic_filter=topic_filter
            )
        delivery.kept = values[9]
        message.owed += 1
        return KeptDelivery(delivery, packet_id, bool(released))

    def _message(self, row: int, values: Values) -> Message:
        message = self._shared.get(row)
        if message is None:
            if values[NUMBERS] is None:
                raise ValueError(f"message {row} is not there")
            message = message_row.from_row(values[NUMBERS:], self._monotonic, self._wall)
            message.row = row
            if not values[NUMBERS - 1]:
                message.shared = True
                self._shared[row] = message
        return message


def check_packet_id(packet_id: int, lowest: int = 0) -> int:
    """Return the packet identifier; raise ValueError if it is none."""
    if not lowest <= packet_id <= 0xFFFF:
        raise ValueError(f"packet identifier {packet_id}")
    return packet_id
