"""Who gets a copy of a message, and how."""

from gateway.routing.subscription import Subscription


class Recipient:
    """One subscriber's copy of a message: the highest QoS and every identifier that matched.

    `qos` and `retain` are given as the publisher's, and kept as they are sent.
    """

    __slots__ = ("identifiers", "qos", "retain", "subscriber", "topic_filters")

    shared = False  # True for the copy that a shared subscription gives to one of its members

    def __init__(self, subscription: Subscription, qos: int, retain: bool) -> None:
        self.subscriber = subscription.subscriber
        self.qos = min(subscription.qos, qos)
        # [MQTT-3.3.1-12] and [MQTT-3.3.1-13]: live messages keep RETAIN only where asked
        self.retain = retain and subscription.retain_as_published
        self.identifiers: tuple[int, ...] = ()
        self.topic_filters = [subscription.topic_filter]
        if subscription.identifier is not None:
            self.identifiers = (subscription.identifier,)

    def merge(self, subscription: Subscription, qos: int, retain: bool) -> None:
        """Add an overlapping subscription of the same subscriber [MQTT-3.3.4-2]."""
        self.qos = max(self.qos, min(subscription.qos, qos))
        self.retain = self.retain or (retain and subscription.retain_as_published)
        self.topic_filters.append(subscription.topic_filter)
        if subscription.identifier is not None:
            self.identifiers += (subscription.identifier,)


class SharedRecipient(Recipient):
    """The member of a shared subscription that gets its copy; the only filter is the shared one."""

    __slots__ = ()

    shared = True
