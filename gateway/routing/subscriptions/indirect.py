"""Subscriptions that need more than a topic: shared ones, and those with a `$where`."""

from collections import Counter
from typing import TYPE_CHECKING, cast

from gateway.mqtt.topics import split_shared
from gateway.routing.filters.filter_index import FilterIndex
from gateway.routing.subscriptions.subscription import Group, Subscriber, Subscription
from gateway.routing.trie.topic_trie import TopicTrie

if TYPE_CHECKING:
    from gateway.where.compile import Where

INDIRECT = 1 << 30
"""The bit that distinguishes these nodes from those of the other trie."""

PLACE = 32
"""The position of the node in a subscription's number, above the subscriber's number."""

OVERHEAD = 550
"""Bytes of a subscription without its topic filter: the object, its destination, its table
entries."""


class IndirectSubscriptions:
    """Subscriptions stored as objects, by number.

    A topic filter as clients write it has a node: that of an index of expressions, or of a group
    that shares a subscription. The node is removed with the last subscription and the channel.
    """

    __slots__ = (
        "_bytes",
        "_free",
        "_nodes",
        "_places",
        "_subscriptions",
        "_trie",
        "_uses",
        "shared",
    )

    def __init__(self) -> None:
        self._trie = TopicTrie()  # of nodes, by the topic filter that topics must match
        self._nodes: dict[str, int] = {}  # by topic filter as clients write it, without INDIRECT
        self._places: dict[int, FilterIndex | Group] = {}  # by node
        self._free: list[int] = []  # nodes below the greatest
        self._subscriptions: dict[int, Subscription] = {}  # by number
        self._uses: Counter[Where] = Counter()  # subscriptions by their expression
        self._bytes = 0  # of all but the trie
        self.shared = 0  # how many of them are shared ones

    def __bool__(self) -> bool:
        """Whether a topic may match any: a channel matches without a subscription, too."""
        return bool(self._nodes)

    def reach(self, topic_filter: str) -> int:
        """Return the node of a topic filter, a new one if necessary; call `put` next."""
        node = self._nodes.get(topic_filter)
        if node is None:
            node = self._free.pop() if self._free else len(self._places)
            share_name, matching = split_shared(topic_filter)
            place = FilterIndex() if share_name is None else Group()
            self._nodes[topic_filter], self._places[node] = node, place
            self._bytes += place.bytes
            self._trie.add(matching, node)
        return node | INDIRECT

    def put(self, node: int, subscriber: int, subscription: Subscription) -> None:
        """Add a shared or filtered subscription; its subscriber has none at this node."""
        place, where = self._places[node & ~INDIRECT], subscription.where
        before = place.bytes
        if isinstance(place, FilterIndex):
            place.add(cast("Where", where), subscription)
        else:
            place.add(subscription)
            self.shared += 1
        self._subscriptions[node << PLACE | subscriber] = subscription
        self._bytes += place.bytes - before + len(subscription.topic_filter) + OVERHEAD
        if where is not None:
            self._uses[where] += 1
            if self._uses[where] == 1:
                self._bytes += where.bytes

    def remove(self, node: int, subscriber: int) -> None:
        """Remove the subscription at a node, which must exist."""
        subscription = self._subscriptions.pop(node << PLACE | subscriber)
        place, where = self._places[node & ~INDIRECT], subscription.where
        before = place.bytes
        if isinstance(place, FilterIndex):
            place.discard(cast("Where", where), subscription)
        else:
            place.remove(subscription)
            self.shared -= 1
        self._bytes -= before - place.bytes + len(subscription.topic_filter) + OVERHEAD
        if where is not None:
            self._uses[where] -= 1
            if not self._uses[where]:
                del self._uses[where]
                self._bytes -= where.bytes
        self._forget_empty(subscription.topic_filter)

    def _forget_empty(self, topic_filter: str) -> None:
        """Remove the node of a topic filter without subscriptions and channel."""
        node = self._nodes[topic_filter]
        place = self._places[node]
        if not place:
            del self._nodes[topic_filter], self._places[node]
            self._bytes -= place.bytes
            self._trie.discard(split_shared(topic_filter)[1], node)
            self._free.append(node)
        if not self._nodes:
            self._free = []

    def uses(self, where: "Where") -> bool:
        """Return whether a subscription has this expression."""
        return where in self._uses

    def node(self, subscriber: int, topic_filter: str) -> int:
        """Return the node of a subscription, 0 if there is none."""
        node = self._nodes.get(topic_filter)
        if node is None or (node | INDIRECT) << PLACE | subscriber not in self._subscriptions:
            return 0
        return node | INDIRECT

    def get(self, node: int, subscriber: int) -> Subscription:
        """Return the subscription at a node, which must exist."""
        return self._subscriptions[node << PLACE | subscriber]

    def match(self, topic: str) -> tuple[tuple[FilterIndex, ...], tuple[Group, ...]]:
        """Return the indexes and the groups whose topic filter matches; raise TooManyNodes."""
        places = [self._places[node] for node in self._trie.match(topic)]
        indexes = [place for place in places if isinstance(place, FilterIndex)]
        return tuple(indexes), tuple([place for place in places if isinstance(place, Group)])

    def index(self, topic_filter: str) -> FilterIndex | None:
        """Return the index of a topic filter, None without filtered subscriptions."""
        node = self._nodes.get(topic_filter)
        place = None if node is None else self._places[node]
        return place if isinstance(place, FilterIndex) else None

    def group(self, topic_filter: str) -> Group | None:
        """Return the members of a topic filter that begins with `$share/`, None without any."""
        node = self._nodes.get(topic_filter)
        place = None if node is None else self._places[node]
        return place if isinstance(place, Group) and place.members else None

    def attach(self, topic_filter: str, channel: Subscriber) -> Group:
        """Give the messages of a group to a channel; `topic_filter` begins with `$share/`.

        The group exists even without a member.
        """
        group = cast("Group", self._places[self.reach(topic_filter) & ~INDIRECT])
        group.channel = channel
        return group

    def detach(self, topic_filter: str) -> None:
        """Give the messages of a channel's group to its members again."""
        cast("Group", self._places[self._nodes[topic_filter]]).channel = None
        self._forget_empty(topic_filter)

    def memory(self) -> int:
        """Return about the bytes of all subscriptions; 0 without any."""
        return self._bytes + self._trie.memory() if self._nodes else 0
