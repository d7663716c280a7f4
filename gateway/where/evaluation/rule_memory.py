"""What an uplink rule remembers of each topic (where-language 13)."""

from collections.abc import Sequence
from typing import Final

from gateway.where.language.conversions import Value

RULE_TOPICS: Final = 100_000
"""Topics that a rule remembers something of; further ones are flagged (where-language 13)."""

RULE_CODE_POINTS: Final = 32 * 1024 * 1024
"""Code points of the topic names and texts that a rule remembers; what is beyond is flagged, too.

The language has no such limit: topic names and texts alone could fill a small board.
"""

CONTAINER: Final[list[Value]] = []
"""Stands for every remembered JSON object or array: nothing can tell one from another."""


class RuleMemory:
    """A row of remembered values for each Topic Name, within two bounds.

    A topic beyond RULE_TOPICS, or one whose texts do not fit RULE_CODE_POINTS any more, is not
    remembered: its messages meet an empty memory. `overflows` counts the messages of which nothing
    could be kept (`state_overflow`).
    """

    __slots__ = ("_code_points", "_rows", "overflows")

    def __init__(self) -> None:
        self._rows: dict[str, Sequence[Value]] = {}
        self._code_points = 0
        self.overflows = 0

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, topic: str) -> Sequence[Value] | None:
        """Return the row of `topic`, None if nothing is remembered of it."""
        return self._rows.get(topic)

    def remember(self, topic: str, row: Sequence[Value]) -> bool:
        """Remember `row`; return False if it does not fit, and `topic` is forgotten."""
        free = RULE_CODE_POINTS - self._code_points
        known = self._rows.get(topic)
        if known is not None:
            free += _code_points(topic, known)
        elif len(self._rows) >= RULE_TOPICS:
            free = -1
        if _code_points(topic, row) > free:
            self.overflows += 1
            self.forget(topic)
            return False
        self._rows[topic] = row
        self._code_points = RULE_CODE_POINTS - free + _code_points(topic, row)
        return True

    def forget(self, topic: str) -> None:
        """Remember nothing of `topic` any more."""
        row = self._rows.pop(topic, None)
        if row is not None:
            self._code_points -= _code_points(topic, row)


def _code_points(topic: str, row: Sequence[Value]) -> int:
    return len(topic) + sum(len(value) for value in row if isinstance(value, str))
