"""One access rule: the rights on topics that match a topic filter."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from gateway.mqtt.topics import topic_matches

READ = 1
WRITE = 2
"""Rights are a sum of these; a rule that grants 0 denies both."""

WORDS = {"read": READ, "write": WRITE, "readwrite": READ | WRITE, "deny": 0}
"""What a rule may grant, in the words of an ACL file."""

NAMES = re.compile("%[cu]")
"""The placeholders of a pattern for the client identifier and the user name."""


class Rule(NamedTuple):
    """A rule, with placeholders if it is a `pattern`.

    `origin` says for people where it is written.
    """

    topic_filter: str
    grants: int
    origin: str
    pattern: bool = False

    def named(self, client_id: str, username: str | None) -> "Rule | None":
        """Return the rule with these names filled in, None if one that it needs is missing.

        Names are inserted literally: a `%c` in a user name is no placeholder.
        """
        if not self.pattern or "%" not in self.topic_filter:
            return self
        if username is None and "%u" in self.topic_filter:
            return None
        names = {"%c": client_id, "%u": username or ""}
        return self._replace(topic_filter=NAMES.sub(lambda name: names[name[0]], self.topic_filter))


def rights(rules: Iterable[Rule], topic: str) -> tuple[int, bool]:
    """Return the rights that rules grant on a topic, and whether one of them denies all.

    A rule that denies overrides those that grant, wherever it is.
    """
    granted = 0
    for rule in rules:
        if topic_matches(rule.topic_filter, topic):
            if not rule.grants:
                return 0, True
            granted |= rule.grants
    return granted, False


def overlaps(one: str, other: str) -> bool:
    """Return whether some topic matches both topic filters."""
    if (one[0] == "$") != (other[0] == "$"):
        return False  # the wildcards of a first level match no level that begins with $
    levels, others = one.split("/"), other.split("/")
    for mine, theirs in zip(levels, others, strict=False):
        if "#" in (mine, theirs):
            return True
        if mine != theirs and "+" not in (mine, theirs):
            return False
    shorter, longer = sorted((levels, others), key=len)
    return len(shorter) == len(longer) or longer[len(shorter)] == "#"


def covers(wide: str, narrow: str) -> bool:
    """Return whether the topic filter `wide` matches every topic that `narrow` matches."""
    if (wide[0] == "$") != (narrow[0] == "$"):
        return False
    levels = narrow.split("/")
    for index, level in enumerate(wide.split("/")):
        if level == "#":
            return True
        if index == len(levels) or levels[index] == "#" or level not in ("+", levels[index]):
            return False
    return len(levels) == wide.count("/") + 1
