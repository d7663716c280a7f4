"""Consecutive messages of a publication on their way to one session."""

from typing import Protocol

from gateway.mqtt.publication import Publication

SPAN_OVERHEAD = 160
"""Bytes of a message in a queue beside the message itself: the span and its place."""

_SPAN_OVERHEAD = SPAN_OVERHEAD  # compiled, a C name that no other module sees


class Row(Protocol):
    """Where a session's journal keeps the messages of a span: they have consecutive numbers."""

    @property
    def batch(self) -> int:
        """The batch that writes it; 0 before."""
        ...

    @property
    def last(self) -> int:
        """The sequence number of the last message that it was made for."""
        ...

    @property
    def base(self) -> int:
        """The sequence number of the first message of its publication."""
        ...


class ChannelDeliveries(Protocol):
    """What a channel has given to its consumers, as their sessions see it."""

    def finished(self, span: "Span", number: int, count: int) -> None:
        """Note that so many messages, from this number on, need no further packet."""
        ...

    def too_large(self, span: "Span", number: int) -> None:
        """Take back a message that is above its consumer's Maximum Packet Size."""
        ...

    def return_message(self, span: "Span", number: int) -> None:
        """Take back a message whose consumer has lost its connection."""
        ...


class Span:
    """The messages of a publication from number `first` on, `count` of them.

    They are sent with this `qos` and `retain`, with `subscription_identifiers` of every
    subscription that matched [MQTT-3.3.4-3], and with consecutive packet identifiers from
    `packet_id` on, which is 0 before they are sent. A shared subscription gave them to this member
    if `topic_filter` names one, or a `channel` if that is one. `row` is where the session's journal
    keeps them, None if it does not, and `disk_bytes` the bytes that they take there.
    """

    __slots__ = (
        "_size",
        "channel",
        "count",
        "disk_bytes",
        "first",
        "packet_id",
        "publication",
        "qos",
        "retain",
        "row",
        "subscription_identifiers",
        "topic_filter",
    )

    def __init__(
        self,
        publication: Publication,
        first: int,
        count: int,
        qos: int,
        retain: bool = False,
        subscription_identifiers: tuple[int, ...] = (),
        topic_filter: str = "",
    ) -> None:
        self.publication = publication
        self.first = first
        self.count = count
        self.qos = qos
        self.retain = retain
        self.subscription_identifiers = subscription_identifiers
        self.topic_filter = topic_filter
        self.packet_id = 0
        self.channel: ChannelDeliveries | None = None
        self.row: Row | None = None
        self.disk_bytes = 0
        self._size = 0

    @property
    def size(self) -> int:
        """The bytes of memory that its messages take, although others may share them."""
        if not self._size:  # a queue asks again and again, the window never
            publication, count = self.publication, self.count
            self._size = count * _SPAN_OVERHEAD + publication.size(self.first, count)
        return self._size

    @property
    def sequence(self) -> int:
        """The sequence number of the first message in the session's journal, 0 if not kept."""
        return 0 if self.row is None else self.row.base + self.first

    @property
    def last(self) -> int:
        """The sequence number up to which nothing stands that is not of its row."""
        return 0 if self.row is None else self.row.last

    def split(self, count: int) -> tuple["Span", "Span"]:
        """Return the first so many messages, and the rest; none of them was sent."""
        head, tail = self.part(self.first, count), self.part(self.first + count, self.count - count)
        if self.row is not None:
            each = (self.disk_bytes - self.publication.size(self.first, self.count)) // self.count
            head.disk_bytes = self.publication.size(self.first, count) + count * each
            tail.disk_bytes = self.disk_bytes - head.disk_bytes
        return head, tail

    def part(self, first: int, count: int) -> "Span":
        """Return so many of the messages, from number `first` of the publication on."""
        part = Span(
            self.publication,
            first,
            count,
            self.qos,
            self.retain,
            self.subscription_identifiers,
            self.topic_filter,
        )
        part.row = self.row
        return part
