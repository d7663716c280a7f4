"""Subscriptions that more than a topic finds: shared ones, and those with a `$where`."""

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, cast

from gateway.mqtt.topics import SHARED_PREFIX, split_shared
from gateway.routing.filters.filter_index import FilterIndex
from gateway.routing.subscriptions.shared import Group, SharedSubscriptions
from gateway.routing.subscriptions.subscription import Subscriber, Subscription
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


INDIRECT = 1 << 30
"""The bit that tells these nodes from the nodes of any other trie."""

PLACE = 32
"""How far up in a subscription's number its node stands, above the subscriber's number."""

OVERHEAD = 450
"""Bytes of a subscription beside its topic filter: the object and its entries in the tables."""


class IndirectSubscriptions:
    """Subscriptions that are kept as objects, by number.

    They are kept at the nodes of a trie of the topic filters as the clients wrote them. Their
    expressions count among their memory, each once.
    """

    __slots__ = ("_filtered", "_shared", "_subscriptions", "_text", "_trie", "_uses")

    def __init__(self) -> None:
        self._trie = TopicTrie()  # of subscribers' numbers
        self._filtered = FilteredSubscriptions()
        self._shared: SharedSubscriptions[Subscription] = SharedSubscriptions()
        self._subscriptions: dict[int, Subscription] = {}
        self._text = 0  # bytes of topic filters, and of expressions
        self._uses: Counter[Where] = Counter()  # subscriptions by their expression

    def __bool__(self) -> bool:
        """Whether a topic may match any: a channel matches without a subscription, too."""
        return bool(self._subscriptions) or bool(self._shared)

    @property
    def shared(self) -> int:
        """How many of them are shared ones."""
        return len(self._shared)

    def reach(self, topic_filter: str) -> int:
        """Return the node for subscriptions with this topic filter; `put` is to follow."""
        return self._trie.reach(topic_filter) | INDIRECT

    def put(self, node: int, subscriber: int, subscription: Subscription) -> None:
        """Take a subscription of which the subscriber has no like, and that `is_indirect`."""
        self._trie.put(node & ~INDIRECT, subscriber)
        share_name, topic_filter = split_shared(subscription.topic_filter)
        if share_name is not None:
            self._shared.add(share_name, topic_filter, subscription, picky=subscription.picky)
        else:
            self._filtered.add(topic_filter, _where(subscription), subscription)
        self._subscriptions[_number(node, subscriber)] = subscription
        self._text += len(subscription.topic_filter)
        self._use(subscription.where)

    def remove(self, node: int, subscriber: int) -> None:
        """Give up the subscription at a node, which is there."""
        subscription = self._subscriptions.pop(_number(node, subscriber))
        share_name, topic_filter = split_shared(subscription.topic_filter)
        if share_name is not None:
            self._shared.discard(share_name, topic_filter, subscription, picky=subscription.picky)
        else:
            self._filtered.discard(topic_filter, _where(subscription), subscription)
        self._trie.remove(node & ~INDIRECT, subscriber)
        self._text -= len(subscription.topic_filter)
        self._use_no_more(subscription.where)

    def uses(self, where: "Where") -> bool:
        """Return whether a subscription has this expression."""
        return where in self._uses

    def _use(self, where: "Where | None") -> None:
        if where is not None:
            self._uses[where] += 1
            self._text += where.bytes if self._uses[where] == 1 else 0

    def _use_no_more(self, where: "Where | None") -> None:
        if where is not None:
            self._uses[where] -= 1
            if not self._uses[where]:
                del self._uses[where]
                self._text -= where.bytes

    def node(self, subscriber: int, topic_filter: str) -> int:
        """Return the node of a subscription, 0 if there is none."""
        node = self._trie.find(topic_filter)
        if node and self._trie.first(node, subscriber) == subscriber:
            return node | INDIRECT
        return 0

    def get(self, node: int, subscriber: int) -> Subscription:
        """Return the subscription at a node, which is there."""
        return self._subscriptions[_number(node, subscriber)]

    def indexes(self, topic: str) -> list[FilterIndex]:
        """Return the indexes whose topic filter matches."""
        return self._filtered.indexes(topic)

    def groups(self, topic: str) -> list[Group[Subscription]]:
        """Return the groups of shared subscriptions that match."""
        return self._shared.groups(topic)

    def attach(self, topic_filter: str, channel: Subscriber) -> Group[Subscription]:
        """Give the messages of a group to a channel; `topic_filter` begins with `$share/`."""
        share_name, shared_filter = split_shared(topic_filter)
        return self._shared.attach(share_name or "", shared_filter, channel)

    def detach(self, topic_filter: str) -> None:
        """Give them to the members again."""
        share_name, shared_filter = split_shared(topic_filter)
        self._shared.detach(share_name or "", shared_filter)

    def group(self, topic_filter: str) -> Group[Subscription] | None:
        """Return the members of a topic filter that begins with `$share/`, None if it has none."""
        share_name, shared_filter = split_shared(topic_filter)
        return self._shared.group(share_name or "", shared_filter)

    def memory(self) -> int:
        """Return about the bytes of all subscriptions; 0 without any."""
        if not self:
            return 0
        tables = self._trie.memory() + self._filtered.memory() + self._shared.memory()
        return self._text + tables + len(self._subscriptions) * OVERHEAD


def is_indirect(subscription: Subscription) -> bool:
    """Tell whether a subscription is one of these."""
    return subscription.where is not None or subscription.topic_filter.startswith(SHARED_PREFIX)


def _number(node: int, subscriber: int) -> int:
    return node << PLACE | subscriber


def _where(subscription: Subscription) -> "Where":
    """Return the `$where` of a subscription that is not shared."""
    return cast("Where", subscription.where)  # else it would not be one of these
