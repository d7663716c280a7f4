"""Consecutive messages of a publication on their way to one session."""

from typing import Protocol

from gateway.mqtt.publication import Publication

SPAN_OVERHEAD = 160
"""Bytes of a message in a queue beside the message itself: the span and its queue entry."""

_SPAN_OVERHEAD = SPAN_OVERHEAD  # compiled, a C name that no other module sees


class Row(Protocol):
    """Where a session's journal stores the messages of a span: they have consecutive numbers."""

    @property
    def batch(self) -> int:
        """The batch that writes it; 0 before."""
        ...

    @property
    def last(self) -> int:
        """The sequence number of the last message that the row was made for."""
        ...

    @property
    def base(self) -> int:
        """The sequence number of the first message of its publication."""
        ...


class ChannelDeliveries(Protocol):
    """A channel's deliveries, as its consumers' sessions see them."""

    def finished(self, span: "Span", number: int, count: int) -> None:
        """Note that messages, from this number on, need no further packet."""
        ...

    def too_large(self, span: "Span", number: int) -> None:
        """Return a message that is above its consumer's Maximum Packet Size."""
        ...

    def return_message(self, span: "Span", number: int) -> None:
        """Return a message whose consumer has lost its connection."""
        ...


class Span:
    """The messages of a publication from number `first` on, `count` of them.

    They are sent with this `qos` and `retain`, and with `subscription_identifiers` of every
    matching subscription [MQTT-3.3.4-3]. Their packet identifiers are consecutive from `packet_id`
    on, which is 0 before they are sent. `topic_filter` names the shared subscription that chose
    this session, if any; `channel` is the channel, if it is one. `row` is their row in the
    session's journal, None without one, and `disk_bytes` the bytes that they occupy there.
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
        self.fill(publication, first, count, qos, retain, subscription_identifiers, topic_filter)

    def fill(
        self,
        publication: Publication,
        first: int,
        count: int,
        qos: int,
        retain: bool,
        subscription_identifiers: tuple[int, ...],
        topic_filter: str,
    ) -> None:
        """Set every attribute; after `__new__` it takes half the time of the constructor."""
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
        """The bytes of memory that its messages occupy, although others may share them."""
        if not self._size:  # a queue needs it often, the window never
            publication, count = self.publication, self.count
            self._size = count * _SPAN_OVERHEAD + publication.size(self.first, count)
        return self._size

    @property
    def sequence(self) -> int:
        """The sequence number of the first message in the session's journal, 0 if not stored."""
        return 0 if self.row is None else self.row.base + self.first

    @property
    def last(self) -> int:
        """The sequence number up to which all belong to its row."""
        return 0 if self.row is None else self.row.last

    def split(self, count: int) -> tuple["Span", "Span"]:
        """Return the first messages, and the rest; none of them was sent."""
        head, tail = self.part(self.first, count), self.part(self.first + count, self.count - count)
        if self.row is not None:
            each = (self.disk_bytes - self.publication.size(self.first, self.count)) // self.count
            head.disk_bytes = self.publication.size(self.first, count) + count * each
            tail.disk_bytes = self.disk_bytes - head.disk_bytes
        return head, tail

    def become(self, other: "Span") -> None:
        """Become another span, which is not used any more; it was not sent."""
        self.publication = other.publication
        self.first, self.count = other.first, other.count
        self.qos, self.retain = other.qos, other.retain
        self.subscription_identifiers = other.subscription_identifiers
        self.topic_filter = other.topic_filter
        self.row, self.disk_bytes = other.row, other.disk_bytes
        self._size = other._size  # noqa: SLF001 - of the same class

    def part(self, first: int, count: int) -> "Span":
        """Return this many of the messages, from number `first` of the publication on."""
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
