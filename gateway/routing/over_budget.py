"""Who is told that a `$where` was NULL because it would have cost too much."""

import logging
import math
from typing import Final

from gateway.mqtt.message import Message

logger = logging.getLogger(__name__)

LINES: Final = 10
"""Owners that a line of the log tells of in WARNING_SECONDS; those left out are counted."""

WARNING_SECONDS: Final = 60.0

SHOWN_CODE_POINTS: Final = 200
"""Longest piece of an expression that a warning or `$SYS` repeats."""

EVALUATION: Final = "one evaluation may not cost so much"
CLIENT: Final = "all filters of the client have cost what they may in a second"
MESSAGE: Final = "all filters together have cost what they may for a message"
RULES: Final = "all rules together may not cost so much for a message"
"""Which bound it was."""


class OverBudget:
    """Counts evaluations that were not carried out, and tells the log whose they were."""

    __slots__ = ("_since", "_told", "_unsaid", "count")

    def __init__(self) -> None:
        self.count = 0
        self._since = -math.inf  # monotonic second of the first line of this minute
        self._told: set[str] = set()
        self._unsaid = 0

    def note(self, owner: str, bound: str, text: str, message: Message, now: float) -> None:
        """Count one, and say so unless the owner was told in this minute, or enough others were."""
        self.count += 1
        if not now - self._since < WARNING_SECONDS:
            self._since = now
            self._told.clear()
        if owner in self._told or len(self._told) >= LINES:
            self._unsaid += 1
            return
        self._told.add(owner)
        logger.warning(
            "%s: a filter is NULL for a message of %d bytes on %.80r: %s (%d more since last said):"
            " %s",
            owner,
            len(message.payload),
            message.topic,
            bound,
            self._unsaid,
            shown(text),
        )
        self._unsaid = 0


def shown(text: str) -> str:
    """Return an expression as a warning or `$SYS` repeats it: in one line, cut if it is long."""
    line = " ".join(text[: SHOWN_CODE_POINTS + 1].split())
    return line if len(text) <= SHOWN_CODE_POINTS else f"{line[:SHOWN_CODE_POINTS]}..."
