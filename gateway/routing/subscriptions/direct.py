"""Subscriptions found only by their topic filter: a number in a trie for each, no object."""

from collections.abc import Iterable

from gateway.mqtt.delivery_policy import DeliveryPolicy
from gateway.routing.route import ConflatedDestination, Destination, destination_of
from gateway.routing.subscriptions.subscription import Subscribers, Subscription
from gateway.routing.trie.topic_trie import TopicTrie

QOS = 0b000011
NO_LOCAL = 0b000100
RETAIN_AS_PUBLISHED = 0b001000
IDENTIFIED = 0b010000
WITH_POLICY = 0b100000
"""Bits of a subscription's word; the last two mark entries in the identifier and policy tables."""

SUBSCRIBER = 6
"""The position of the subscriber's number in the word, which leaves 25 bits: 33 million."""

NODE = 32
"""The position of the node in an entry, above the word."""
WORD = (1 << NODE) - 1

ENTRY_OVERHEAD = 200
"""Bytes of an identifier or a delivery policy, which few subscriptions have, in its table."""


class DirectSubscriptions:
    """The subscriptions of a topic, as entries: the node of a topic filter above a word.

    They are held by the nodes of a trie. A word is the number of the subscriber and the options, so
    a node's words are ordered by subscriber; each has one at most.
    """

    __slots__ = ("_identifiers", "_policies", "_subscribers", "trie")

    def __init__(self, subscribers: Subscribers) -> None:
        self._subscribers = subscribers
        self.trie = TopicTrie()
        self._identifiers: dict[int, int] = {}  # by entry without its options
        self._policies: dict[int, DeliveryPolicy] = {}  # likewise

    def reach(self, topic_filter: str) -> int:
        """Return the node for subscriptions with this topic filter; call `put` next."""
        return self.trie.reach(topic_filter)

    def put(self, node: int, subscriber: int, subscription: Subscription) -> None:
        """Add a subscription; its subscriber has none at this node."""
        word = subscriber << SUBSCRIBER | subscription.qos
        key = node << NODE | subscriber
        if subscription.no_local:
            word |= NO_LOCAL
        if subscription.retain_as_published:
            word |= RETAIN_AS_PUBLISHED
        if subscription.identifier is not None:
            word |= IDENTIFIED
            self._identifiers[key] = subscription.identifier
        if subscription.delivery is not None:
            word |= WITH_POLICY
            self._policies[key] = subscription.delivery
        self.trie.put(node, word)

    def remove(self, node: int, subscriber: int) -> None:
        """Remove the subscription at a node, which must exist."""
        self._identifiers.pop(node << NODE | subscriber, None)
        self._policies.pop(node << NODE | subscriber, None)
        self.trie.remove(node, self._word(node, subscriber))

    def node(self, subscriber: int, topic_filter: str) -> int:
        """Return the node of a subscription, 0 if there is none."""
        node = self.trie.find(topic_filter)
        if node and self._word(node, subscriber) >> SUBSCRIBER == subscriber:
            return node
        return 0

    def get(self, node: int, subscriber: int) -> Subscription:
        """Return the subscription at a node, which must exist."""
        return self.subscription(node << NODE | self._word(node, subscriber))

    def entries(self, nodes: Iterable[int]) -> list[int]:
        """Return the entries of all subscriptions at these nodes."""
        return [node << NODE | word for node in nodes for word in self.trie.held(node)]

    def subscription(self, entry: int) -> Subscription:
        """Return a subscription object for an entry."""
        node, word = entry >> NODE, entry & WORD
        subscriber = word >> SUBSCRIBER
        key = node << NODE | subscriber
        return Subscription(
            self._subscribers.subscriber(subscriber),
            self.trie.topic_filter(node),
            word & QOS,
            no_local=bool(word & NO_LOCAL),
            retain_as_published=bool(word & RETAIN_AS_PUBLISHED),
            identifier=self._identifiers[key] if word & IDENTIFIED else None,
            delivery=self._policies[key] if word & WITH_POLICY else None,
        )

    def destinations(self, entries: Iterable[int]) -> list[Destination]:
        """Return one destination for each subscriber of entries that all want every message."""
        found: dict[int, Destination] = {}
        for entry in entries:
            node, subscriber = entry >> NODE, subscriber_of(entry)
            destination = found.get(subscriber)
            if destination is None:
                who = self._subscribers.subscriber(subscriber)
                destination = found[subscriber] = destination_of(who)
            if isinstance(destination, ConflatedDestination):
                destination.add(self.subscription(entry))
                continue
            destination.qos = max(destination.qos, entry & QOS)
            if entry & RETAIN_AS_PUBLISHED:
                destination.retain_as_published = True
            if entry & IDENTIFIED:
                destination.identify(self._identifiers[node << NODE | subscriber])
            if entry & WITH_POLICY:
                destination.hold_as(self._policies[node << NODE | subscriber])
            if destination.subscriber.inline:
                destination.name(self.trie.topic_filter(node))
        return list(found.values())

    def memory(self) -> int:
        """Return about the bytes of all subscriptions."""
        entries = len(self._identifiers) + len(self._policies)
        return self.trie.memory() + ENTRY_OVERHEAD * entries

    def _word(self, node: int, subscriber: int) -> int:
        """Return the subscriber's word at a node; another one or -1 if it has none there."""
        return self.trie.first(node, subscriber << SUBSCRIBER)


def subscriber_of(entry: int) -> int:
    """Return the number of an entry's subscriber."""
    return (entry & WORD) >> SUBSCRIBER
