"""The first levels of topics that nobody has subscribed to."""

from gateway.routing.direct_subscriptions import DirectSubscriptions
from gateway.routing.indirect_subscriptions import IndirectSubscriptions

MAXIMUM_LEVELS = 1_000
"""First levels that are remembered; when they are so many all are forgotten, and found anew."""

LONGEST_LEVEL = 64
"""Characters of the longest first level that is remembered: a thousand of them take 300 KiB at
most, whoever publishes to topics of his own choice."""

# Compiled, these are C names.
_LONGEST_LEVEL = LONGEST_LEVEL
_MAXIMUM_LEVELS = MAXIMUM_LEVELS


class SilentLevels:
    """Tells at the first level of a topic, where it can, that nobody gets its messages.

    Where many topics come once, as when a device sets its retained messages, that is all that
    their routes cost.
    """

    __slots__ = ("_direct", "_indirect", "_silent")

    def __init__(self, direct: DirectSubscriptions, indirect: IndirectSubscriptions) -> None:
        self._direct = direct
        self._indirect = indirect
        self._silent: set[str] = set()

    def __len__(self) -> int:
        return len(self._silent)

    def forget(self) -> None:
        """Forget what is known: the subscriptions are others now."""
        self._silent.clear()

    def has(self, topic: str) -> bool:
        """Return whether no topic with the first level of this one has a subscription."""
        level = topic.partition("/")[0]
        silent = self._silent
        if level in silent:
            return True
        if self._direct.begins(level) or self._indirect.begins(level):
            return False
        if len(level) <= _LONGEST_LEVEL:
            if len(silent) >= _MAXIMUM_LEVELS:
                silent.clear()
            silent.add(level)
        return True
