"""Who gets a copy of a message, and how."""

from collections.abc import Sequence
from typing import Any

from gateway.mqtt.delivery_policy import DeliveryPolicy
from gateway.routing.subscriptions.subscription import Subscriber, Subscription


class Destination:
    """One subscriber's copy of a message, which all of its subscriptions that match share.

    `qos` is the highest that they grant: a message is sent with that or its own, if that is less.
    It keeps RETAIN if it is `retain_as_published`. `topic_filters` is empty unless the subscriber
    `inline`, or the copy is the one that a `shared` subscription gives to this member. `delivery`
    is the policy that they request, None where the subscriber's class decides.
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
        """Add a subscription of the subscriber's; all that overlap make one copy [MQTT-3.3.4-2]."""
        self.qos = max(self.qos, subscription.qos)
        # [MQTT-3.3.1-12] and [MQTT-3.3.1-13]: live messages keep RETAIN only where asked
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
        """Add a delivery policy; of several the shortest time counts, and the least of each."""
        self.delivery = policy if self.delivery is None else self.delivery.shorter(policy)

    def name(self, topic_filter: str) -> None:
        """Add one of the topic filters that matched."""
        if isinstance(self.topic_filters, list):
            self.topic_filters.append(topic_filter)
        else:
            self.topic_filters = [topic_filter]


def to_channel(channel: Subscriber) -> Destination:
    """Return the destination of all messages of a channel, at the QoS at which they come."""
    destination = Destination(channel)
    destination.qos = 2
    destination.retain_as_published = True
    return destination


def destinations(subscriptions: Sequence[Subscription]) -> list[Destination]:
    """Return one destination for each subscriber, whose subscriptions all want the message."""
    if len(subscriptions) == 1:  # as nearly always
        only = Destination(subscriptions[0].subscriber)
        only.add(subscriptions[0])
        return [only]
    found: dict[Subscriber, Destination] = {}
    for subscription in subscriptions:
        destination = found.get(subscription.subscriber)
        if destination is None:
            destination = found[subscription.subscriber] = Destination(subscription.subscriber)
        destination.add(subscription)
    return list(found.values())
