"""Subscriptions with a `$where`, by topic filter."""

from itertools import count
from typing import TYPE_CHECKING

from gateway.routing.filters.filter_index import FilterIndex
from gateway.routing.subscriptions.subscription import Subscription
from gateway.routing.trie.topic_trie import TopicTrie

if TYPE_CHECKING:
    from gateway.where.compile import Where

INDEX_OVERHEAD = 570
"""Bytes of the index of a topic filter."""

NODE_OVERHEAD = 900
"""Bytes of a node of an operand that an index works out: the operand's tables, key and closures."""

EXPRESSION_OVERHEAD = 280
"""Bytes of an expression in an index, beside those of the expression itself."""


class FilteredSubscriptions:
    """One index for each topic filter; it is one entry of a trie, however many it holds."""

    __slots__ = ("_at", "_expressions", "_indexes", "_nodes", "_numbers", "_trie")

    def __init__(self) -> None:
        self._trie = TopicTrie()
        self._numbers = count()
        self._at: dict[str, int] = {}  # the index's number in the trie, by topic filter
        self._indexes: dict[int, FilterIndex] = {}
        self._nodes = 0
        self._expressions = 0

    def memory(self) -> int:
        """Return about the bytes of trie and indexes, beside the subscriptions themselves."""
        indexes = len(self._indexes) * INDEX_OVERHEAD + self._nodes * NODE_OVERHEAD
        return self._trie.memory() + indexes + self._expressions * EXPRESSION_OVERHEAD

    def add(self, topic_filter: str, where: "Where", subscription: Subscription) -> None:
        """Keep a subscription that has this `$where`."""
        number = self._at.get(topic_filter)
        if number is None:
            number = self._at[topic_filter] = next(self._numbers)
            self._indexes[number] = FilterIndex()
            self._trie.add(topic_filter, number)
        index = self._indexes[number]
        self._count(index, -1)
        index.add(where, subscription)
        self._count(index, 1)

    def discard(self, topic_filter: str, where: "Where", subscription: Subscription) -> None:
        """Remove a subscription that was added with the same topic filter and `$where`."""
        number = self._at[topic_filter]
        index = self._indexes[number]
        self._count(index, -1)
        index.discard(where, subscription)
        self._count(index, 1)
        if not index:
            self._trie.discard(topic_filter, number)
            del self._at[topic_filter], self._indexes[number]

    def _count(self, index: FilterIndex, sign: int) -> None:
        self._nodes += sign * index.nodes
        self._expressions += sign * len(index)

    def indexes(self, topic: str) -> list[FilterIndex]:
        """Return the indexes whose topic filter matches."""
        if not self._indexes:
            return []
        return [self._indexes[number] for number in self._trie.match(topic)]
