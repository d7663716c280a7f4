"""Filtered subscriptions of which only candidates are asked, by topic filter."""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING

from gateway.routing.filter_index import FilterIndex
from gateway.routing.topic_trie import TopicTrie
from gateway.routing.where.message import Message

if TYPE_CHECKING:
    from gateway.routing.where.equalities import Equality


class IndexedFilters:
    """One index for each topic filter; it is one entry of a trie, however many it holds.

    `indexes` and `fields` are how many of them there are, for who accounts for memory.
    """

    __slots__ = ("_at", "_indexes", "_numbers", "_trie", "fields")

    def __init__(self) -> None:
        self._trie = TopicTrie()
        self._numbers = count()
        self._at: dict[str, int] = {}  # the index's number in the trie, by topic filter
        self._indexes: dict[int, FilterIndex] = {}
        self.fields = 0

    def memory(self) -> int:
        """Return the bytes of the trie."""
        return self._trie.memory()

    @property
    def indexes(self) -> int:
        """How many topic filters have an index; 0 while no subscription has a place here."""
        return len(self._indexes)

    def add(self, topic_filter: str, equalities: "Sequence[Equality]", subscription: int) -> None:
        """Keep a subscription whose `$where` asks for these equalities, at least one."""
        number = self._at.get(topic_filter)
        if number is None:
            number = self._at[topic_filter] = next(self._numbers)
            self._indexes[number] = FilterIndex()
            self._trie.add(topic_filter, number)
        index = self._indexes[number]
        self.fields -= index.fields
        index.add(equalities, subscription)
        self.fields += index.fields

    def discard(
        self, topic_filter: str, equalities: "Sequence[Equality]", subscription: int
    ) -> None:
        """Remove a subscription that was added with the same topic filter and equalities."""
        number = self._at[topic_filter]
        index = self._indexes[number]
        self.fields -= index.fields
        index.discard(equalities, subscription)
        self.fields += index.fields
        if not index.fields:
            self._trie.discard(topic_filter, number)
            del self._at[topic_filter], self._indexes[number]

    def begins(self, level: str) -> bool:
        """Return whether topics that begin with this level may have an index."""
        return self._trie.begins(level)

    def indexes_of(self, topic: str) -> list[FilterIndex]:
        """Return the indexes whose topic filter matches."""
        if not self._indexes:
            return []
        return [self._indexes[number] for number in self._trie.match(topic)]


def candidates(indexes: Iterable[FilterIndex], message: Message) -> list[int]:
    """Return the subscriptions in these indexes whose `$where` can be TRUE."""
    found: list[int] = []
    for index in indexes:
        index.candidates(message, found)
    return found
