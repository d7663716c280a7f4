"""Subscriptions that need more than a topic: shared ones, and those with a `$where`."""

from collections import Counter
from typing import TYPE_CHECKING, cast

from gateway.access.rule import covers
from gateway.mqtt.topics import split_shared
from gateway.routing.filters.filter_index import FilterIndex
from gateway.routing.subscriptions.subscription import Group, Part, Subscriber, Subscription
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

    Some channels are `open`: a shared subscription of the channel's name to a part of its topics
    joins it. Such a `Part` is not in the trie, since the channel gets its messages already.
    """

    __slots__ = (
        "_bytes",
        "_free",
        "_nodes",
        "_open",
        "_places",
        "_subscriptions",
        "_trie",
        "_uses",
        "shared",
    )

    def __init__(self) -> None:
        self._trie = TopicTrie()  # of nodes, by the topic filter that topics must match
        self._nodes: dict[str, int] = {}  # by topic filter as clients write it, without INDIRECT
        self._places: dict[int, FilterIndex | Group | Part] = {}  # by node
        self._open: dict[str, tuple[str, Group]] = {}  # by share name: channels' filters and groups
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
            whole = self._whole(topic_filter)
            place = Part(whole) if whole else FilterIndex() if share_name is None else Group()
            self._nodes[topic_filter], self._places[node] = node, place
            self._bytes += place.bytes
            if whole is None:
                self._trie.add(matching, node)
        return node | INDIRECT

    def _whole(self, topic_filter: str) -> Group | None:
        """Return the group of the open channel of which a topic filter has a part, if any."""
        share_name, part = split_shared(topic_filter)
        channel_filter, group = self._open.get(share_name or "", ("", None))
        return group if group and channel_filter != part and covers(channel_filter, part) else None

    def channel(self, topic_filter: str) -> Subscriber | None:
        """Return the channel that gives a topic filter's subscribers messages, None without one."""
        if not self._nodes:
            return None
        node = self._nodes.get(topic_filter)
        place = self._whole(topic_filter) if node is None else self._places[node]
        return None if place is None or isinstance(place, FilterIndex) else place.channel

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
            if not isinstance(place, Part):
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

    def attach(self, topic_filter: str, channel: Subscriber, *, is_open: bool = False) -> Group:
        """Give the messages of a group to a channel; `topic_filter` begins with `$share/`.

        The group exists even without a member.
        """
        node = self.reach(topic_filter) & ~INDIRECT
        share_name, channel_filter = split_shared(topic_filter)
        place = self._places[node]
        if isinstance(place, Part):  # a consumer's; it is to be a channel of its own
            self._separate(topic_filter)
        group = cast("Group", self._places[node])
        group.channel = channel
        if is_open and share_name not in self._open:
            self._open[share_name or ""] = (channel_filter, group)
            for each in [each for each in self._nodes if self._whole(each) is group]:
                place = self._places[self._nodes[each]]
                if isinstance(place, Group) and place.channel is None:
                    self._join(each, Part(group))
        return group

    def detach(self, topic_filter: str) -> None:
        """Give the messages of a channel's group to its members again."""
        share_name, channel_filter = split_shared(topic_filter)
        group = cast("Group", self._places[self._nodes[topic_filter]])
        group.channel = None
        if self._open.get(share_name or "") == (channel_filter, group):
            del self._open[share_name or ""]
            for each, node in [*self._nodes.items()]:
                place = self._places[node]
                if isinstance(place, Part) and place.group is group:
                    self._separate(each)
        self._forget_empty(topic_filter)

    def _join(self, topic_filter: str, part: Part) -> None:
        """Make the members of a group members of a channel with a wider topic filter."""
        node = self._nodes[topic_filter]
        group, self._places[node] = cast("Group", self._places[node]), part
        for member in [*group.members]:
            group.remove(member)
            part.add(member)
        self._trie.discard(split_shared(topic_filter)[1], node)

    def _separate(self, topic_filter: str) -> None:
        """Make a part of a channel's members a group of their own."""
        node, group = self._nodes[topic_filter], Group()
        part, self._places[node] = cast("Part", self._places[node]), group
        for member in [*part.members]:
            part.remove(member)
            group.add(member)
        self._trie.add(split_shared(topic_filter)[1], node)

    def memory(self) -> int:
        """Return about the bytes of all subscriptions; 0 without any."""
        return self._bytes + self._trie.memory() if self._nodes else 0
