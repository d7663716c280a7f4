"""The destinations of a topic's messages, as far as they are the same for all messages."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from gateway.mqtt.delivery_policy import OF_CLASS, DeliveryPolicy
from gateway.routing.filters.filter_index import FilterIndex
from gateway.routing.subscriptions.subscription import Group, Subscriber, Subscription


class Destination:
    """One subscriber's copy of a message, for all of its matching subscriptions.

    `qos` is their highest: a message is sent with that or its own, whichever is less. With
    `retain_as_published` it keeps RETAIN. `topic_filters` is empty unless the subscriber is
    `inline`, or a `shared` subscription gives this copy to this member. `delivery` is the policy
    that the subscriptions request, None if the subscriber's class decides.
    """

    __slots__ = (
        "delivery",
        "identifiers",
        "qos",
        "retain_as_published",
        "shared",
        "subscriber",
        "topic_filters",
    )

    def __init__(self, subscriber: Subscriber, *, shared: bool = False) -> None:
        self.subscriber: Any = subscriber  # a session or an inline client: routing knows neither
        self.shared = shared
        self.qos = 0
        self.retain_as_published = False
        self.identifiers: Sequence[int] = ()
        self.topic_filters: Sequence[str] = ()
        self.delivery: DeliveryPolicy | None = None

    def add(self, subscription: Subscription) -> None:
        """Add one of the subscriber's subscriptions.

        Overlapping ones share a copy [MQTT-3.3.4-2].
        """
        self.qos = max(self.qos, subscription.qos)
        # [MQTT-3.3.1-12] and [MQTT-3.3.1-13]: live messages keep RETAIN only on request
        if subscription.retain_as_published:
            self.retain_as_published = True
        if subscription.delivery is not None:
            self.hold_as(subscription.delivery)
        if subscription.identifier is not None:
            self.identify(subscription.identifier)
        if self.shared or self.subscriber.inline:
            self.name(subscription.topic_filter)

    def identify(self, identifier: int) -> None:
        """Add a subscription identifier; thousands of subscriptions may overlap."""
        if isinstance(self.identifiers, list):
            self.identifiers.append(identifier)
        else:
            self.identifiers = [identifier]

    def hold_as(self, policy: DeliveryPolicy) -> None:
        """Add a delivery policy; the shortest time and the smallest limits count."""
        self.delivery = policy if self.delivery is None else self.delivery.shorter(policy)

    def name(self, topic_filter: str) -> None:
        """Add one of the topic filters that matched."""
        if isinstance(self.topic_filters, list):
            self.topic_filters.append(topic_filter)
        else:
            self.topic_filters = [topic_filter]


class ConflatedDestination(Destination):
    """The copy of a message for a session that has conflated subscriptions.

    Its `delivery` is always a policy: it conflates only if all matching subscriptions do.
    """

    __slots__ = ()

    def add(self, subscription: Subscription) -> None:
        """Add one of the subscriber's subscriptions."""
        Destination.add(self, subscription)
        if subscription.delivery is None:
            self.hold_as(OF_CLASS)


def destination_of(subscriber: Any) -> Destination:
    """Return the destination of a subscriber's own subscriptions, which the caller adds."""
    if subscriber.inline or subscriber.conflated is None:
        return Destination(subscriber)
    return ConflatedDestination(subscriber.conflated)


def to_channel(channel: Subscriber) -> Destination:
    """Return the destination of all messages of a channel, at their own QoS."""
    destination = Destination(channel)
    destination.qos = 2
    destination.retain_as_published = True
    return destination


def destinations(subscriptions: Sequence[Subscription]) -> list[Destination]:
    """Return one destination for each subscriber; all these subscriptions want the message."""
    if len(subscriptions) == 1:  # the usual case
        only = subscriptions[0]
        if only.destination is None:
            only.destination = destination_of(only.subscriber)
            only.destination.add(only)
        return [only.destination]
    found: dict[Subscriber, Destination] = {}
    for subscription in subscriptions:
        destination = found.get(subscription.subscriber)
        if destination is None:
            destination = found[subscription.subscriber] = destination_of(subscription.subscriber)
        destination.add(subscription)
    return list(found.values())


ROUTE_OVERHEAD = 400
"""Bytes of a route without what it refers to: the object, its tuples, its dictionary entry."""

DESTINATION_OVERHEAD = 250
"""Bytes of a destination."""

SUBSCRIPTION_OVERHEAD = 250
"""Bytes of a subscription as an object, beside the text of its topic filter."""

REFERENCE = 40
"""Bytes of a topic filter, an index or a group in a match, with its number."""

Match: TypeAlias = tuple[
    tuple[int, ...], tuple[FilterIndex, ...], tuple[Group, ...], tuple[int, ...]
]
"""What a topic matches: topic filters by number, indexes of subscriptions with `$where`, groups of
shared subscriptions, and the numbers of subscribers that may not read it. Topics with the same
match have the same route."""

NOWHERE: Match = ((), (), (), ())
"""The match of every topic without a subscriber."""

CROWDED: Match = ((0,), (), (), ())  # no topic filter has the number 0
"""The match of every topic that matches too many topic filters."""


class Route:
    """The destinations of all topic names that have this `match`.

    Of the destinations that `always` get every message, `inline` are parts of the gateway and
    `sessions` are clients and channels. If it is `selective`, a message's content decides who gets
    it beside them: the `conditional` subscriptions, those that the `indexes` find, and one member
    of each of the `groups`. It is `crowded` if too many topic filters match: nobody gets the
    messages. `topics` is how many cached topics have it, and `size` about its bytes.
    """

    __slots__ = (
        "always",
        "conditional",
        "crowded",
        "groups",
        "indexes",
        "inline",
        "match",
        "selective",
        "sessions",
        "size",
        "topics",
    )

    def __init__(
        self,
        match: Match,
        always: Sequence[Destination] = (),
        conditional: Sequence[Subscription] = (),
    ) -> None:
        self.match = match
        channels = [to_channel(each.channel) for each in match[2] if each.channel is not None]
        self.always = (*always, *channels)
        self.inline = tuple([each for each in always if each.subscriber.inline])
        self.sessions = self.always
        if self.inline:
            self.sessions = tuple([each for each in self.always if not each.subscriber.inline])
        self.conditional = tuple(conditional)
        self.indexes = match[1]
        self.groups = match[2]
        if channels:
            self.groups = tuple([each for each in match[2] if each.channel is None])
        self.crowded = match == CROWDED
        self.selective = bool(self.conditional or self.indexes or self.groups)
        self.topics = 0
        self.size = (
            ROUTE_OVERHEAD
            + DESTINATION_OVERHEAD * len(self.always)
            + REFERENCE * sum([len(part) for part in match])
            + sum([SUBSCRIPTION_OVERHEAD + text_size(each.topic_filter) for each in conditional])
        )


def text_size(text: str) -> int:
    """Return the bytes that the characters of a text occupy at most."""
    return len(text) if text.isascii() else 4 * len(text)
