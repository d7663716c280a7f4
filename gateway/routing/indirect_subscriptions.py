"""Subscriptions that more than a topic finds: shared ones, and those an index looks at."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gateway.mqtt.topics import SHARED_PREFIX, split_shared
from gateway.routing.filter_index import FilterIndex
from gateway.routing.indexed_filters import IndexedFilters, candidates
from gateway.routing.shared_subscriptions import SharedSubscriptions
from gateway.routing.subscription import Subscription
from gateway.routing.topic_trie import TopicTrie
from gateway.routing.where.message import Message

if TYPE_CHECKING:
    from gateway.routing.where.equalities import Equality

INDIRECT = 1 << 30
"""The bit that tells these places from the nodes of any other trie."""

PLACE = 32
"""How far up in a subscription's number its place stands, above the subscriber's number."""

OVERHEAD = 450
"""Bytes of a subscription beside its topic filter: the object and its places in the tables."""

INDEX_OVERHEAD = 400
"""Bytes of the index of a topic filter."""

INDEXED_FIELD_OVERHEAD = 900
"""Bytes of a field that an index looks at: its tables and what reads it."""


class IndirectSubscriptions:
    """Subscriptions that are kept as objects, by number.

    Their places are the nodes that a trie has for their topic filters as the clients wrote them.
    """

    __slots__ = ("_indexed", "_shared", "_subscriptions", "_text", "_trie")

    def __init__(self) -> None:
        self._trie = TopicTrie()  # of subscribers' numbers
        self._indexed = IndexedFilters()
        self._shared = SharedSubscriptions()
        self._subscriptions: dict[int, Subscription] = {}
        self._text = 0  # bytes of topic filters

    def __len__(self) -> int:
        return len(self._subscriptions)

    @property
    def shared(self) -> int:
        """How many of them are shared ones."""
        return len(self._shared)

    def reach(self, topic_filter: str) -> int:
        """Return the place for subscriptions with this topic filter; `put` is to follow."""
        return self._trie.reach(topic_filter) | INDIRECT

    def put(self, place: int, subscriber: int, subscription: Subscription) -> None:
        """Take a subscription of which the subscriber has no like, and that `is_indirect`."""
        self._trie.put(place & ~INDIRECT, subscriber)
        number = _number(place, subscriber)
        share_name, topic_filter = split_shared(subscription.topic_filter)
        if share_name is not None:
            self._shared.add(share_name, topic_filter, number)
        else:
            self._indexed.add(topic_filter, _asked_for(subscription), number)
        self._subscriptions[number] = subscription
        self._text += len(subscription.topic_filter)

    def take(self, place: int, subscriber: int) -> None:
        """Give up the subscription at a place, which is there."""
        number = _number(place, subscriber)
        subscription = self._subscriptions.pop(number)
        share_name, topic_filter = split_shared(subscription.topic_filter)
        if share_name is not None:
            self._shared.discard(share_name, topic_filter, number)
        else:
            self._indexed.discard(topic_filter, _asked_for(subscription), number)
        self._trie.take(place & ~INDIRECT, subscriber)
        self._text -= len(subscription.topic_filter)

    def place(self, subscriber: int, topic_filter: str) -> int:
        """Return the place of a subscription, 0 if there is none."""
        node = self._trie.find(topic_filter)
        if node and self._trie.first(node, subscriber) == subscriber:
            return node | INDIRECT
        return 0

    def get(self, place: int, subscriber: int) -> Subscription:
        """Return the subscription at a place, which is there."""
        return self._subscriptions[_number(place, subscriber)]

    def begins(self, level: str) -> bool:
        """Return whether topics that begin with this level may have an index or a group."""
        return self._indexed.begins(level) or self._shared.begins(level)

    def indexes(self, topic: str) -> list[FilterIndex]:
        """Return the indexes whose topic filter matches."""
        return self._indexed.indexes_of(topic)

    def groups(self, topic: str) -> list[int]:
        """Return the groups of shared subscriptions that match."""
        return self._shared.groups(topic)

    def candidates(self, indexes: Iterable[FilterIndex], message: Message) -> list[Subscription]:
        """Return the subscriptions in these indexes whose `$where` can be TRUE."""
        return [self._subscriptions[number] for number in candidates(indexes, message)]

    def take_turns(self, group: int) -> Iterator[Subscription]:
        """Give the members of a group, the one whose turn it is first."""
        return map(self._subscriptions.__getitem__, self._shared.take_turns(group))

    def members(self, topic_filter: str) -> Iterator[Subscription]:
        """Give the members of the group of a topic filter that begins with `$share/`."""
        share_name, shared_filter = split_shared(topic_filter)
        members = self._shared.members(share_name or "", shared_filter)
        return map(self._subscriptions.__getitem__, members)

    def memory(self) -> int:
        """Return about the bytes of all subscriptions; 0 without any."""
        if not self._subscriptions:
            return 0
        indexed = self._indexed
        tries = self._trie.memory() + indexed.memory() + self._shared.memory()
        indexes = indexed.indexes * INDEX_OVERHEAD + indexed.fields * INDEXED_FIELD_OVERHEAD
        return self._text + tries + indexes + len(self._subscriptions) * OVERHEAD


def is_indirect(subscription: Subscription) -> bool:
    """Tell whether a subscription is one of these."""
    return subscription.topic_filter.startswith(SHARED_PREFIX) or bool(_asked_for(subscription))


def _number(place: int, subscriber: int) -> int:
    return place << PLACE | subscriber


def _asked_for(subscription: Subscription) -> "list[Equality]":
    """Return the equalities that the `$where` asks for; none without one."""
    where = subscription.where
    if where is None:
        return []
    from gateway.routing.where.equalities import equalities

    return equalities(where.expression)
