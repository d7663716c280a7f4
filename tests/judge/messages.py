"""The values that the judge speaks of: messages, copies, subscriptions."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.conformance.support import wire
from tests.conformance.support.answers import Properties, Value


@dataclass(frozen=True, eq=False, slots=True)
class Message:
    """What somebody published; `number` is unique, `expires` the monotonic second of its end.

    `value` is the payload's member `v`, None in a payload that is empty. The `properties` are all
    but the Message Expiry Interval, which is `interval`.
    """

    number: int
    publisher: str
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = field(default_factory=list)
    interval: int | None = None
    value: int | None = None
    accepted: float = 0.0

    @property
    def expires(self) -> float:
        return math.inf if self.interval is None else self.accepted + self.interval


@dataclass(eq=False, slots=True)
class Copy:
    """A message for one session; `optional` where nobody promises that it comes.

    `replay` is the topic filter because of whose SUBSCRIBE a retained message is sent. It `came`,
    and is `done` when it was also acknowledged at QoS 1 and 2. Where a message was published a
    second time, since it had no answer, or is replayed a second time before the first ended,
    `first` is the copy of the first time, which may do.
    """

    message: Message
    qos: int
    retain: bool
    identifiers: list[int]
    replay: str = ""
    optional: bool = False
    came: bool = False
    done: bool = False
    first: "Copy | None" = None
    of_channel: bool = False

    def like(self, other: "Copy") -> bool:
        """Return whether no client can tell two copies with the same payload and topic apart."""
        return self._seen() == other._seen()

    def _seen(self) -> tuple[object, ...]:
        message = self.message
        return self.qos, self.retain, self.identifiers, message.properties, message.interval

    @property
    def key(self) -> tuple[str, str, int]:
        """Return what has an order: publisher, topic and QoS."""
        return self.message.publisher, self.message.topic, self.qos

    def size(self, version: int) -> int:
        """Return the bytes of the PUBLISH without a topic alias."""
        topic, properties = self.message.topic, self.properties(version)
        packet = wire.publish(version, topic, b"", self.qos, 1, properties=properties)
        body = len(packet) - len(wire.variable(len(packet) - 2)) - 1 + len(self.message.payload)
        return 1 + len(wire.variable(body)) + body

    def properties(self, version: int) -> bytes:
        if version < wire.MQTT_5:
            return b""
        found = [*self.message.properties]
        found += [(wire.SUBSCRIPTION_IDENTIFIER, each) for each in self.identifiers]
        if self.message.interval is not None:
            found.append((wire.MESSAGE_EXPIRY_INTERVAL, self.message.interval))
        return encode(found)


def always(_: Message) -> bool:
    """Pass every message, as a subscription without `$where` does."""
    return True


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription; of a shared one `share` is all of the filter, and the name is cut off."""

    topic_filter: str
    qos: int
    share: str = ""
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int | None = None
    where: Callable[[Message], bool] = always


@dataclass(eq=False, slots=True)
class Choice:
    """A message for one member of a shared subscription.

    It is `loose` if a member's session ended, or the message may be lost on one: then others may
    get it, too. Its `place` is the order of publication.
    """

    share: str
    message: Message
    copies: dict[str, Copy]
    taken: str | None = None
    loose: bool = False
    place: int = 0

    @property
    def open(self) -> bool:
        """Whether it may still come to somebody."""
        if self.taken is None:
            return True
        return self.loose and not self.copies[self.taken].done


def matches(topic_filter: str, topic: str) -> bool:
    levels, names = topic_filter.split("/"), topic.split("/")
    if levels[-1] == "#":
        levels, names = levels[:-1], names[: len(levels) - 1]
    return len(levels) == len(names) and all(
        level in ("+", name) for level, name in zip(levels, names, strict=True)
    )


def encode(properties: Properties) -> bytes:
    """Return the properties of a message as they stand in a packet, without their length."""
    return b"".join(_encode(identifier, value) for identifier, value in properties)


def _encode(identifier: int, value: Value) -> bytes:
    if isinstance(value, tuple):
        return wire.user_property(*value)
    if isinstance(value, bytes):
        return wire.text_property(identifier, value)
    if identifier == wire.SUBSCRIPTION_IDENTIFIER:
        return wire.subscription_identifier(value)
    if identifier == wire.MESSAGE_EXPIRY_INTERVAL:
        return wire.four_property(identifier, value)
    if identifier == wire.TOPIC_ALIAS:
        return wire.two_property(identifier, value)
    return wire.byte_property(identifier, value)
