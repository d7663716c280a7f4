"""Finds the subscriptions of a topic name in a tree of topic levels (MQTT 5, section 4.7)."""

from gateway.routing.trie.held_numbers import HeldNumbers
from gateway.routing.trie.levels import TopicLevels
from gateway.routing.trie.nodes import A_CHILD, HAS_PLUS, HAS_REST, ROOT, TrieNodes

PLUS = b"+"
REST = b"#"

MAXIMUM_NODES = 32_768
"""Nodes that a topic may match beyond one at each level: enough for a topic of fourteen levels,
whatever is subscribed to. Filters made for a longer one could let it match millions, seconds of
work; this many take some milliseconds."""

OBJECTS = 1_000
"""Bytes of an empty trie's objects without their columns."""


class TooManyNodes(Exception):  # noqa: N818 - an answer, not a mistake of ours
    """A topic matches more nodes than MAXIMUM_NODES allows."""


# Compiled, these are C names.
_A_CHILD = A_CHILD
_HAS_PLUS = HAS_PLUS
_HAS_REST = HAS_REST
_MAXIMUM_NODES = MAXIMUM_NODES
_ROOT = ROOT


class TopicTrie:
    """Subscriptions by topic filter, found by topic name.

    A subscription is a number from 0 that belongs to one topic filter, so no match can name it
    twice. Topic filters and topic names must be valid (`gateway.mqtt.topics`); a topic of 65,535
    levels takes time in proportion to its length. No subscription or level has an object: a hundred
    thousand subscriptions are a few columns of numbers.
    """

    __slots__ = ("_count", "_held", "_levels", "_nodes")

    def __init__(self) -> None:
        self._nodes = TrieNodes()
        self._held = HeldNumbers()
        self._count = 0
        self._begin_levels()

    def _begin_levels(self) -> None:
        """Begin with the wildcards, HAS_PLUS and HAS_REST: neither is a level of a topic name."""
        self._levels = TopicLevels()
        self._levels.use(PLUS)
        self._levels.use(REST)

    def __len__(self) -> int:
        return self._count

    def add(self, topic_filter: str, subscription: int) -> None:
        """Add the subscription at its topic filter; adding it again changes nothing."""
        self.put(self.reach(topic_filter), subscription)

    def discard(self, topic_filter: str, subscription: int) -> bool:
        """Remove the subscription from its topic filter; return whether it existed."""
        node = self.find(topic_filter)
        return node != _ROOT and self.remove(node, subscription)

    def match(self, topic: str) -> list[int]:
        """Return the subscriptions whose topic filter matches, in any order, in a new list.

        `a/#` matches `a` too; a filter that begins with a wildcard doesn't match a topic that
        begins with `$` [MQTT-4.7.2-1]. Raises TooManyNodes.
        """
        found: list[int] = []
        for node in self.nodes(topic):
            self._held.gather(self._nodes.held(node), found)
        return found

    def nodes(self, topic: str) -> list[int]:
        """Return the nodes of the topic filters that match, as `find` returns them.

        Raises TooManyNodes.
        """
        table = self._nodes
        found: list[int] = []
        nodes = [_ROOT]
        met = 0
        wild = not topic.startswith("$")
        for level in topic.encode().split(b"/"):
            # level by level: its text is found once, however many nodes were reached
            above, nodes = nodes, []
            number = self._levels.find(level)  # 0: no filter has it, only wildcards match
            for node in above:
                children = table.children(node)
                if children & _HAS_REST and wild:
                    found.append(table.child(node, _HAS_REST))
                if children & _HAS_PLUS and wild:
                    nodes.append(table.child(node, _HAS_PLUS))
                if number and children >= _A_CHILD:  # most nodes are leaves: no search for those
                    below = table.child(node, number)
                    if below:
                        nodes.append(below)
            if not nodes:
                return found
            met += len(nodes) - 1  # one at each level is the topic's own length, which is bounded
            if met > _MAXIMUM_NODES:
                raise TooManyNodes
            wild = True  # a `$` topic excludes wildcards only at its first level
        for node in nodes:
            if table.held(node):
                found.append(node)
            # `a/#` matches `a`, too
            if table.children(node) & _HAS_REST:
                found.append(table.child(node, _HAS_REST))
        return found

    def find(self, topic_filter: str) -> int:
        """Return the node of a topic filter, a number from 1, or 0 if nothing is held there.

        It stays that topic filter's node while something is held there.
        """
        node = _ROOT
        for level in topic_filter.encode().split(b"/"):
            number = self._levels.find(level)
            node = self._nodes.child(node, number) if number else _ROOT
            if node == _ROOT:
                return _ROOT
        return node if self._nodes.held(node) else _ROOT

    def reach(self, topic_filter: str) -> int:
        """Return the node of a topic filter, a new one if necessary; call `put` next."""
        node = _ROOT
        for level in topic_filter.encode().split(b"/"):
            number = self._levels.find(level)
            below = self._nodes.child(node, number) if number else 0
            if not below:
                # every node counts as one use of its level
                if number:
                    self._levels.use_again(number)  # or its text would go with another filter
                else:
                    number = self._levels.add(level)
                below = self._nodes.grow(node, number)
            node = below
        return node

    def topic_filter(self, node: int) -> str:
        """Return the topic filter of a node."""
        levels: list[bytes] = []
        while node != _ROOT:
            levels.append(self._levels.text(self._nodes.level(node)))
            node = self._nodes.parent(node)
        levels.reverse()
        return b"/".join(levels).decode()

    def put(self, node: int, subscription: int) -> None:
        """Add the subscription at a node; adding it again changes nothing."""
        word = self._nodes.held(node)
        if not self._held.holds(word, subscription):
            self._nodes.hold(node, self._held.including(word, subscription))
            self._count += 1

    def remove(self, node: int, subscription: int) -> bool:
        """Remove the subscription from a node; return whether it existed."""
        word = self._nodes.held(node)
        if not self._held.holds(word, subscription):
            return False
        self._nodes.hold(node, self._held.excluding(word, subscription))
        self._count -= 1
        self._reclaim(node)
        return True

    def first(self, node: int, minimum: int) -> int:
        """Return the first subscription at a node from the number `minimum` on, -1 without one."""
        return self._held.first(self._nodes.held(node), minimum)

    def held(self, node: int) -> list[int]:
        """Return the subscriptions at a node by number, in a new list."""
        found: list[int] = []
        self._held.gather(self._nodes.held(node), found)
        return found

    def memory(self) -> int:
        """Return the bytes of the trie."""
        return OBJECTS + self._levels.memory() + self._nodes.memory() + self._held.memory()

    def _reclaim(self, node: int) -> None:
        """Cut the node and its parents as far as they hold nothing."""
        nodes = self._nodes
        while node != _ROOT and nodes.children(node) < _A_CHILD and nodes.held(node) == 0:
            parent, number = nodes.parent(node), nodes.level(node)
            nodes.cut(node)
            self._levels.release(number)
            node = parent
        if nodes.count == 0:
            self._begin_levels()  # this frees what their columns had grown to
