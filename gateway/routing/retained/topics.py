"""Finds the topics with a retained message by topic filter (MQTT 5, section 4.7)."""

import sys
from collections.abc import Iterable
from typing import Final, cast

from gateway.mqtt.topics import topic_matches

_NO_LIMIT: Final = sys.maxsize
"""More names than there can be."""


class _Level:
    """A level that several topics share; `topic` is the one that ends with it.

    `below` has by the next level's name such a level, or the only topic below it.
    """

    __slots__ = ("below", "topic")

    def __init__(self) -> None:
        self.below: dict[str, _Level | str] = {}
        self.topic: str | None = None


class RetainedTopics:
    """A tree of topic levels with objects only for levels that topics share.

    Levels are counted as in a tree with an object for each.
    """

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root = _Level()

    def missing(self, topic: str) -> int:
        """Return how many levels of a topic no other topic here has."""
        names = topic.split("/")
        level = self._root
        for depth, name in enumerate(names):
            below = level.below.get(name)
            if below is None:
                return len(names) - depth
            if isinstance(below, str):
                return len(names) - _in_common(names, below.split("/"), depth)
            level = below
        return 0

    def add(self, topic: str, most: int) -> int:
        """Add a new topic; return how many of its levels no other topic has.

        It is not added if there are more than `most`.
        """
        names = topic.split("/")
        level = self._root
        for depth, name in enumerate(names):
            below = level.below.get(name)
            if below is None:
                if len(names) - depth <= most:
                    level.below[name] = topic
                return len(names) - depth
            if isinstance(below, str):
                others = below.split("/")
                common = _in_common(names, others, depth)
                if len(names) - common <= most:
                    level = _part(level, names, depth, common)
                    _put(level, others, common, below)
                    _put(level, names, common, topic)
                return len(names) - common
            level = below
        level.topic = topic
        return 0

    def remove(self, topic: str) -> int:
        """Remove a topic; return how many of its levels no other topic has."""
        names = topic.split("/")
        level = self._root
        path = [level]
        for name in names:
            below = level.below[name]
            if isinstance(below, str):
                del level.below[name]
                break
            level = below
            path.append(level)
        else:
            level.topic = None
        removed = len(names) - len(path) + 1
        while len(path) > 1 and path[-1].topic is None and not path[-1].below:
            path.pop()
            del path[-1].below[names[len(path) - 1]]
            removed += 1
        return removed

    def match(self, topic_filter: str) -> list[str]:
        """Return the topics that a topic filter matches.

        `$` topics are not matched by a leading wildcard [MQTT-4.7.2-1].
        """
        return cast("list[str]", self.match_few(topic_filter, _NO_LIMIT))

    def match_few(self, topic_filter: str, most: int) -> list[str] | None:
        """Return the same, or None if more than `most` names would have to be compared."""
        names = topic_filter.split("/")
        has_rest = names[-1] == "#"
        if has_rest:
            names.pop()
        wild = len(names)  # from there on names are literal
        while wild and names[wild - 1] != "+":
            wild -= 1
        ending = "/".join(["", *names[wild:]])
        found: list[str] = []
        levels = [self._root]
        for depth, name in enumerate(names):
            most -= _width(levels) if name == "+" else len(levels)
            if most < 0:
                return None
            levels, singles = self._descend(levels, name)
            if not singles:
                continue
            if has_rest and depth + 1 == len(names):
                found += singles
            elif has_rest or depth + 1 < wild:
                found += [each for each in singles if topic_matches(topic_filter, each)]
            else:
                found += _that_end(singles, ending, len(names) - 1)
        if has_rest:
            return self._with_all_below(levels, found, most)
        for level in levels:
            if level.topic is not None:
                found.append(level.topic)
        return found

    def _descend(self, levels: list[_Level], name: str) -> tuple[list[_Level], list[str]]:
        """Return what this level of a topic filter matches: shared levels, and single topics."""
        following: list[_Level] = []
        singles: list[str] = []
        for level in levels:
            if name == "+":
                _sort(self._wild(level), following, singles)
            elif name in level.below:
                _sort((level.below[name],), following, singles)
        return following, singles

    def _with_all_below(
        self, levels: list[_Level], found: list[str], most: int
    ) -> list[str] | None:
        """Add the topics of the levels and everything below them to `found`, as `#` matches."""
        for level in levels:  # the list grows in the loop
            most -= len(level.below)
            if most < 0:
                return None
            if level.topic is not None:
                found.append(level.topic)
            _sort(self._wild(level), levels, found)
        return found

    def _wild(self, level: _Level) -> Iterable[_Level | str]:
        """Return what a wildcard matches below a level."""
        if level is self._root:
            return [below for name, below in level.below.items() if not name.startswith("$")]
        return level.below.values()


def _in_common(names: list[str], others: list[str], depth: int) -> int:
    """Return how many levels two topics have in common, of which `depth` are known."""
    shortest = min(len(names), len(others))
    while depth < shortest and names[depth] == others[depth]:
        depth += 1
    return depth


def _part(level: _Level, names: list[str], depth: int, common: int) -> _Level:
    """Make the levels from `depth` to `common` below a level; return the last of them."""
    for name in names[depth:common]:
        level.below[name] = level = _Level()
    return level


def _width(levels: list[_Level]) -> int:
    """Return how many names there are below levels."""
    return sum([len(level.below) for level in levels])


def _put(level: _Level, names: list[str], depth: int, topic: str) -> None:
    """Insert a topic below the level that it shares with others, or at that level."""
    if depth == len(names):
        level.topic = topic
    else:
        level.below[names[depth]] = topic


def _sort(found: Iterable[_Level | str], levels: list[_Level], singles: list[str]) -> None:
    """Add levels to `levels` and topics to `singles`."""
    for each in found:
        if isinstance(each, str):
            singles.append(each)
        else:
            levels.append(each)


def _that_end(topics: list[str], ending: str, slashes: int) -> list[str]:
    """Return the topics with this ending and this many slashes."""
    return [each for each in topics if each.endswith(ending) and each.count("/") == slashes]
