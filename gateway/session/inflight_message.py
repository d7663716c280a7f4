"""What stands in the window of a session: one message that was sent and not yet acknowledged."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gateway.mqtt.connection import Connection
from gateway.mqtt.message import Message
from gateway.mqtt.output import Pledge
from gateway.session.delivery import Delivery
from gateway.session.queue_memory import QueueMemory


@dataclass(slots=True)
class InflightMessage:
    """A delivery on its way; `released` once its PUBREC came and its PUBREL was sent.

    `noted` is True once the session's journal has its packet identifier. `order` is higher for
    what was sent later.
    """

    delivery: Delivery
    released: bool = False
    noted: bool = False
    order: int = 0


@dataclass(slots=True, frozen=True)
class Origin:
    """What messages of one client and topic have in common: `commit_within` is their class."""

    topic: str
    client_id: str
    username: str | None
    commit_within: float | None


class InflightAlone:
    """An `InflightMessage` at QoS 1 that came and left alone.

    `data` is the packet as it came, with its payload behind `start`; it `arrived` at a monotonic
    second. Most are acknowledged before anybody asks for the `delivery`, which is made then. `size`
    is what `message_size` is of it.

    One that is kept has a `place` in its session's journal, which is told by `on_opened` of a
    delivery; what answers it, in the output of its `publisher`, waits for the `pledge`.
    """

    __slots__ = (
        "_data",
        "_delivery",
        "_received_at",
        "_start",
        "arrived",
        "noted",
        "on_opened",
        "order",
        "origin",
        "place",
        "pledge",
        "publisher",
        "released",
        "size",
    )

    def __init__(
        self, origin: Origin, data: bytes, start: int, size: int, arrived: float, received_at: int
    ) -> None:
        self.origin = origin
        self._data = data
        self._start = start
        self.arrived = arrived
        self._received_at = received_at
        self._delivery: Delivery | None = None
        self.size = size
        self.released = False
        self.noted = False
        self.order = 0
        self.place = 0
        self.publisher: Connection | None = None
        self.pledge: Pledge | None = None
        self.on_opened: Callable[[InflightAlone], None] | None = None

    @property
    def opened(self) -> bool:
        """Whether anybody has asked for the delivery."""
        return self._delivery is not None

    @property
    def delivery(self) -> Delivery:
        """The delivery, the same each time."""
        return self.open()

    def open(self) -> Delivery:
        """Return the delivery."""
        if self._delivery is None:
            origin = self.origin
            message = Message(
                origin.topic,
                self._data[self._start :],
                1,
                client_id=origin.client_id,
                username=origin.username,
                received_at=self._received_at,
                arrived=self.arrived,
            )
            message.commit_within = origin.commit_within
            self._delivery = Delivery(message, 1)
            if self.on_opened is not None:
                self.on_opened(self)
        return self._delivery


Sent = InflightMessage | InflightAlone


def sending_order(item: tuple[int, Sent]) -> int:
    """Return by what packet identifiers and messages are sorted in the order of their sending."""
    return item[1].order


def hold(sent: Iterable[Sent], memory: QueueMemory) -> None:
    """Count in `memory` what was sent, while no connection can acknowledge it."""
    for message in sent:
        memory.add(message.delivery.message)


def release(sent: Iterable[Sent], memory: QueueMemory) -> None:
    """Undo `hold`."""
    for message in sent:
        memory.remove(message.delivery.message)
