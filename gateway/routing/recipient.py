"""Who gets a copy of a message, and how."""

from collections.abc import Iterable, Sequence

from gateway.routing.subscription import Subscriber, Subscription


class Recipient:
    """One subscriber's copy of a message: the highest QoS and every identifier that matched.

    `qos` and `retain` are those of the copy as it is sent; `topic_filters` is empty unless the
    subscriber `asks_filters` or the copy is shared.
    """

    __slots__ = ("identifiers", "qos", "retain", "subscriber", "topic_filters")

    shared = False  # True for the copy that a shared subscription gives to one of its members

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        self.qos = 0
        self.retain = False
        self.identifiers: Sequence[int] = ()
        self.topic_filters: Sequence[str] = ()

    def add(self, qos: int, retain: bool, identifier: int | None) -> None:
        """Add a subscription of the subscriber's; all that overlap make one copy [MQTT-3.3.4-2].

        `qos` and `retain` are what this one alone asks for.
        """
        self.qos = max(self.qos, qos)
        if retain:
            self.retain = True
        if identifier is not None:
            if isinstance(self.identifiers, list):
                self.identifiers.append(identifier)  # thousands of subscriptions may overlap
            else:
                self.identifiers = [identifier]

    def name(self, topic_filter: str) -> None:
        """Say that this is one of the topic filters that matched."""
        if isinstance(self.topic_filters, list):
            self.topic_filters.append(topic_filter)
        else:
            self.topic_filters = [topic_filter]

    def merge(self, subscription: Subscription, qos: int, retain: bool) -> None:
        """Add a subscription of the subscriber's for a message of this QoS and RETAIN."""
        # [MQTT-3.3.1-12] and [MQTT-3.3.1-13]: live messages keep RETAIN only where asked
        retain = retain and subscription.retain_as_published
        self.add(min(subscription.qos, qos), retain, subscription.identifier)
        if self.shared or self.subscriber.asks_filters:
            self.name(subscription.topic_filter)


class SharedRecipient(Recipient):
    """The member of a shared subscription that gets its copy; the only filter is the shared one."""

    __slots__ = ()

    shared = True


def merged(subscriptions: Iterable[Subscription], qos: int, retain: bool) -> list[Recipient]:
    """Return one recipient for each subscriber, whose subscriptions all want the message."""
    found: dict[Subscriber, Recipient] = {}
    for subscription in subscriptions:
        recipient = found.get(subscription.subscriber)
        if recipient is None:
            recipient = found[subscription.subscriber] = Recipient(subscription.subscriber)
        recipient.merge(subscription, qos, retain)
    return list(found.values())
