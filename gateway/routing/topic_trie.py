"""Which subscriptions a topic name belongs to: a tree of topic levels (MQTT 5, section 4.7)."""

import sys

from gateway.routing.held import Held, excluding, gather, holds, including, size


class _Node:
    """One level of some topic filter; a single child stands inline, more of them in a dict.

    `filter/+` is the child `plus`; `filter/#` needs no node of its own: its subscriptions are
    the node's `rest`.
    """

    __slots__ = ("child", "children", "level", "plus", "rest", "subscriptions")

    def __init__(self) -> None:
        self.level = ""  # of the single child; means nothing without one
        self.child: _Node | None = None
        self.children: dict[str, _Node] | None = None
        self.plus: _Node | None = None
        self.subscriptions: Held = None
        self.rest: Held = None

    def below(self, level: str) -> "_Node | None":
        """Return the child for this level of a topic filter."""
        if level == "+":
            return self.plus
        if self.children is not None:
            return self.children.get(level)
        return self.child if self.level == level else None

    def grow(self, level: str) -> "_Node":
        """Return a new child for this level, which has none yet."""
        node = _Node()
        if level == "+":
            self.plus = node
        elif self.children is not None:
            self.children[level] = node
        elif self.child is not None:
            self.children = {self.level: self.child, level: node}
            self.level, self.child = "", None
        else:
            self.level, self.child = level, node
        return node

    def cut(self, level: str) -> None:
        """Remove the child for this level; the last but one leaves a single child inline."""
        if level == "+":
            self.plus = None
        elif self.children is None:
            self.level, self.child = "", None
        else:
            del self.children[level]
            if len(self.children) == 1:
                ((self.level, self.child),) = self.children.items()
                self.children = None

    def is_empty(self) -> bool:
        """Tell whether no subscription is held here or below."""
        return (
            self.child is None
            and self.children is None
            and self.plus is None
            and self.subscriptions is None
            and self.rest is None
        )

    def nodes_below(self) -> "list[_Node]":
        """Return every child, the one for `+` among them."""
        nodes = [] if self.children is None else list(self.children.values())
        return nodes + [node for node in (self.child, self.plus) if node is not None]


class TopicTrie:
    """Subscriptions by topic filter, found by topic name.

    A subscription is a non-negative number that belongs to one topic filter, so no match can
    name it twice. Topic filters and topic names are taken to be valid
    (`gateway.mqtt.topics`); a topic of 65,535 levels takes time in proportion to its length.
    """

    __slots__ = ("_count", "_root", "nodes")

    def __init__(self) -> None:
        self._root = _Node()
        self._count = 0
        self.nodes = 0  # below the root

    def __len__(self) -> int:
        return self._count

    def add(self, topic_filter: str, subscription: int) -> None:
        """Put the subscription at its topic filter; nothing changes if it is there already."""
        levels, has_rest = _levels(topic_filter)
        node = self._root
        for level in levels:
            below = node.below(level)
            if below is None:
                below = node.grow(level)
                self.nodes += 1
            node = below
        held = node.rest if has_rest else node.subscriptions
        if holds(held, subscription):
            return
        if has_rest:
            node.rest = including(held, subscription)
        else:
            node.subscriptions = including(held, subscription)
        self._count += 1

    def discard(self, topic_filter: str, subscription: int) -> bool:
        """Remove the subscription from its topic filter; return whether it was there."""
        levels, has_rest = _levels(topic_filter)
        path = [self._root]
        for level in levels:
            node = path[-1].below(level)
            if node is None:
                return False
            path.append(node)
        held = path[-1].rest if has_rest else path[-1].subscriptions
        if not holds(held, subscription):
            return False
        if has_rest:
            path[-1].rest = excluding(held, subscription)
        else:
            path[-1].subscriptions = excluding(held, subscription)
        self._count -= 1
        self.nodes -= _reclaim(path, levels)
        return True

    def match(self, topic: str) -> list[int]:
        """Return the subscriptions whose topic filter matches, in any order, in a list of its own.

        `a/#` matches `a` too; a filter that begins with a wildcard doesn't match a topic that
        begins with `$` [MQTT-4.7.2-1].
        """
        levels = topic.split("/")
        nodes = [self._root]
        if topic.startswith("$"):
            node = self._root.below(levels.pop(0))
            nodes = [] if node is None else [node]
        found: list[int] = []
        for level in levels:
            if not nodes:
                return found
            nodes = _descend(nodes, level, found)
        for node in nodes:
            gather(node.subscriptions, found)
            gather(node.rest, found)
        return found

    def memory(self) -> int:
        """Return the bytes of every node, level and number; walks the whole tree."""
        total = sys.getsizeof(self)
        nodes = [self._root]
        while nodes:
            node = nodes.pop()
            nodes += node.nodes_below()
            total += sys.getsizeof(node) + size(node.subscriptions) + size(node.rest)
            if node.children is not None:
                total += sys.getsizeof(node.children) + sum(map(sys.getsizeof, node.children))
            elif node.child is not None:
                total += sys.getsizeof(node.level)
        return total


def _levels(topic_filter: str) -> tuple[list[str], bool]:
    """Return the levels before a closing `#`, and whether there is one."""
    levels = topic_filter.split("/")
    if levels[-1] != "#":
        return levels, False
    levels.pop()
    return levels, True


def _descend(nodes: list[_Node], level: str, found: list[int]) -> list[_Node]:
    """Return the nodes one level down; what is held at `#` beside that level goes to `found`."""
    following: list[_Node] = []
    for node in nodes:
        if node.rest is not None:
            gather(node.rest, found)
        if node.plus is not None:
            following.append(node.plus)
        if node.children is not None:
            child = node.children.get(level)
            if child is not None:
                following.append(child)
        elif node.child is not None and node.level == level:
            following.append(node.child)
    return following


def _reclaim(path: list[_Node], levels: list[str]) -> int:
    """Cut the nodes at the end of the path that hold nothing any more; return how many."""
    before = len(levels)
    while levels and path.pop().is_empty():
        path[-1].cut(levels.pop())
    return before - len(levels)
