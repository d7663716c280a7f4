"""A message on its way to one session."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.mqtt.message import Message
from gateway.mqtt.message_expiry import expired
from gateway.mqtt.message_size import message_size
from gateway.mqtt.output import Pledge
from gateway.session.queue_memory import DELIVERY_OVERHEAD


@dataclass(slots=True)
class Delivery:
    """A message on its way to one session: `qos` and `retain` are those it is sent with.

    `subscription_identifiers` are those of every subscription that matched [MQTT-3.3.4-3]. `place`
    is its number in the session's journal, 0 while it is not kept there; `pledge` is set while its
    publisher's answer may wait for its acknowledgement instead of the disk. `kept` is the bytes
    that it takes of the disk, 0 if it is never written, and `batch` the one that wrote it.
    """

    message: Message
    qos: int
    retain: bool = False
    subscription_identifiers: tuple[int, ...] = ()
    place: int = 0
    pledge: Pledge | None = None
    kept: int = 0
    batch: int = 0

    count: ClassVar[int] = 1

    @property
    def size(self) -> int:
        """The bytes of memory it occupies, its message included although others may share that."""
        return DELIVERY_OVERHEAD + message_size(self.message)

    @property
    def last(self) -> int:
        """The place up to which nothing else stands: its own."""
        return self.place

    def settle(self) -> None:
        """Let its publisher's answer wait for this delivery no longer."""
        pledge, self.pledge = self.pledge, None
        if pledge is not None:
            pledge.settle()

    def expired(self, now: float) -> bool:
        """Tell whether the Message Expiry Interval has passed; `now` is monotonic seconds."""
        return expired(self.message, now)


@dataclass(slots=True)
class SharedDelivery(Delivery):
    """A delivery that a shared subscription gave to this member; `topic_filter` is all of it."""

    topic_filter: str = ""
