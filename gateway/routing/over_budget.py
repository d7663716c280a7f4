"""Log lines about a `$where` that was NULL because it would have cost too much."""

import logging
import math
from typing import Final

from gateway.mqtt.message import Message

logger = logging.getLogger(__name__)

LINES: Final = 10
"""Owners that are logged in WARNING_SECONDS; further ones are counted."""

WARNING_SECONDS: Final = 60.0

SHOWN_CODE_POINTS: Final = 200
"""The longest part of an expression that a warning or `$SYS` repeats."""

EVALUATION: Final = "one evaluation may not cost so much"
CLIENT: Final = "all filters of the client have cost what they may in a second"
MESSAGE: Final = "all filters together have cost what they may for a message"
RULES: Final = "all rules together may not cost so much for a message"
"""Names of the bounds."""


class OverBudget:
    """Counts evaluations that were not finished, and logs their owners."""

    __slots__ = ("_reported", "_since", "_unreported", "count")

    def __init__(self) -> None:
        self.count = 0
        self._since = -math.inf  # monotonic second of the first line of this minute
        self._reported: set[str] = set()
        self._unreported = 0

    def note(self, owner: str, bound: str, text: str, message: Message, now: float) -> None:
        """Count one, and log it unless the owner, or LINES others, were logged in this minute."""
        self.count += 1
        if not now - self._since < WARNING_SECONDS:
            self._since = now
            self._reported.clear()
        if owner in self._reported or len(self._reported) >= LINES:
            self._unreported += 1
            return
        self._reported.add(owner)
        logger.warning(
            "%s: a filter is NULL for a message of %d bytes on %.80r: %s (%d more since the last"
            " line): %s",
            owner,
            len(message.payload),
            message.topic,
            bound,
            self._unreported,
            shown(text),
        )
        self._unreported = 0


def shown(text: str) -> str:
    """Return an expression in one line, shortened if it is long."""
    line = " ".join(text[: SHOWN_CODE_POINTS + 1].split())
    return line if len(text) <= SHOWN_CODE_POINTS else f"{line[:SHOWN_CODE_POINTS]}..."
