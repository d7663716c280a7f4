"""Application messages that arrived together, on their way through the gateway."""

from collections.abc import Sequence
from typing import Final

from gateway.mqtt.codec.publish_properties import PublishProperties
from gateway.mqtt.message import Message
from gateway.mqtt.message_size import MESSAGE_OVERHEAD
from gateway.mqtt.output import Barrier
from gateway.mqtt.packet_batch import PacketBatch

_MESSAGE_OVERHEAD = MESSAGE_OVERHEAD  # compiled, a C name that no other module sees

NO_TOPIC: Final = ""


class Publication:
    """1 to n messages of one publisher, QoS and RETAIN, with the same properties and destinations.

    `packets` are their PUBLISH packets, for MQTT 5 if `mqtt5`, in the one form in which they are
    forwarded unchanged: with their topic names, without DUP and topic alias. `topic` is that of the
    first, `topic_name` the same in UTF-8 behind its length; others may differ if they are `mixed`.
    `received_at` is wall time in milliseconds since 1970,
    `arrived` monotonic seconds of the same moment. `commit_within` is the durability class: the
    seconds by which a commit may be put off, None for what is kept in memory alone. `barrier` is
    what the publisher's answer may wait for, set while the messages are handed out.

    `receivers` is how many sessions are given it at once, and so share its memory.
    `holders` counts the spans in queues that hold it, `stored_for` the sessions that it is kept
    for on disk, where its number is `row`; there others may refer to it too if it is `shared`.
    """

    __slots__ = (
        "arrived",
        "barrier",
        "client_id",
        "commit_within",
        "first_byte",
        "forms",
        "holders",
        "messages",
        "mixed",
        "mqtt5",
        "packet_id",
        "packets",
        "properties",
        "qos",
        "received_at",
        "receivers",
        "retain",
        "row",
        "shared",
        "stored_for",
        "topic",
        "topic_name",
        "username",
    )

    def __init__(
        self,
        packets: PacketBatch,
        first_byte: int,
        mqtt5: bool,
        topic_name: bytes,
        properties: PublishProperties,
    ) -> None:
        self.packets = packets
        self.first_byte = first_byte
        self.mqtt5 = mqtt5
        self.topic_name = topic_name
        self.properties = properties
        self.qos = first_byte >> 1 & 3
        self.retain = bool(first_byte & 1)
        self.topic = NO_TOPIC
        self.mixed = False
        self.packet_id: int | None = None  # where its packet was written anew, without it
        self.client_id: str | None = None
        self.username: str | None = None
        self.received_at: int | None = None
        self.arrived = 0.0
        self.commit_within: float | None = 0.0
        self.barrier: Barrier | None = None
        self.receivers = 1
        self.holders = 0
        self.stored_for = 0
        self.row = 0
        self.shared = False
        # in which receivers are sent it, while they share them: see `publish_encoder.form`
        self.forms: dict[int, PacketBatch] | None = None
        # each as an object, made by `message`
        self.messages: list[Message | None] | None = None

    def identifiers(self) -> Sequence[int]:
        """Return the packet identifiers that the messages came with, at QoS 1 and 2."""
        if self.packet_id is not None:
            return (self.packet_id,)
        return self.packets.identifiers()

    def name_of(self, number: int) -> bytes:
        """Return the topic name of the message with this number, behind its length."""
        return self.packets.topic_name(number) if self.mixed else self.topic_name

    def topic_of(self, number: int) -> str:
        """Return its topic."""
        return self.packets.topic_name(number)[2:].decode() if self.mixed else self.topic

    @property
    def count(self) -> int:
        """How many messages these are."""
        return self.packets.count

    def size(self, first: int, count: int) -> int:
        """Return the bytes of memory of so many messages, from number `first` on."""
        packets = self.packets
        if packets.size:
            return count * (packets.size + _MESSAGE_OVERHEAD)
        return packets.start(first + count) - packets.start(first) + count * _MESSAGE_OVERHEAD

    def fitting(self, first: int, most: int, room: int) -> int:
        """Return how many messages from `first` on, at most `most`, fit into so many bytes.

        The last may exceed them; none fits if there is no room at all.
        """
        packets = self.packets
        if packets.size:
            each = packets.size + _MESSAGE_OVERHEAD
            return max(0, min(most, -(-room // each)))
        count = 0
        while count < most and room > 0:
            room -= self.size(first + count, 1)
            count += 1
        return count

    def expired(self, now: float) -> bool:
        """Tell whether the Message Expiry Interval has passed at second `now` [MQTT-3.3.2-5]."""
        expiry = self.properties.expiry
        return expiry is not None and self.arrived + expiry <= now

    def share_forms(self) -> None:
        """Keep every form that is made from now on, for all receivers."""
        self.forms = {}

    def forget_forms(self) -> None:
        """Give up the forms, and the objects that were made of the messages."""
        self.forms = self.messages = None

    def message(self, number: int) -> Message:
        """Return the message with this number, from 0: the same object each time."""
        if self.messages is None:
            self.messages = [None] * self.count
        message = self.messages[number]
        if message is None:
            message = self.messages[number] = self.new_message(number)
        return message

    def new_message(self, number: int) -> Message:
        """Return the message with this number as an object of the caller's own."""
        message = Message(
            self.topic_of(number),
            self.packets.one(number),
            self.qos,
            self.retain,
            client_id=self.client_id,
            username=self.username,
            received_at=self.received_at,
            arrived=self.arrived,
        )
        message.commit_within = self.commit_within
        message.barrier = self.barrier
        if self.properties.data or self.properties.expiry is not None:
            message.set_properties(self.properties.fields)
        return message

    def one(self, number: int) -> "Publication":
        """Return the message with this number as a publication of its own."""
        return self if self.packets.count == 1 else self.part(number, 1)

    def copy(self) -> "Publication":
        """Return all messages as another publication, which nobody is owed."""
        return self.part(0, self.packets.count)

    def part(self, first: int, count: int) -> "Publication":
        """Return so many messages, from number `first` on, as a publication of their own."""
        packets = self.packets.part(first, count)
        name = self.name_of(first)
        part = Publication(packets, self.first_byte, self.mqtt5, name, self.properties)
        part.topic = self.topic_of(first)
        part.mixed = self.mixed and count > 1
        part.client_id = self.client_id
        part.username = self.username
        part.received_at = self.received_at
        part.arrived = self.arrived
        part.commit_within = self.commit_within
        return part
