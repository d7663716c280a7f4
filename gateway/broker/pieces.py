"""Packets with any number of topic filters are handled a piece at a time."""

from collections.abc import Generator
from typing import TypeAlias

from gateway.broker.instant import Instant

Pieces: TypeAlias = Generator[float | None, Instant, None]
"""The rest of a packet: it is sent the instant at which it goes on, and ends with the packet.

Between two of them others have their turn; it gives the seconds until it can go on, None for no
longer than that.
"""


def _nothing() -> Pieces:
    while True:
        yield None


HELD: Pieces = _nothing()
"""Stands for the pieces of a packet that cannot go on yet, as a CONNECT that is not decided about:
what comes behind it waits until `Client.pieces` is something else, and the connection is told of
output."""

FILTER = 16
"""What a topic filter counts for beside its characters: reading, checking and answering it."""

WORK = 1_500
"""What one piece may come to: some 3 ms in plain Python, of short filters or of deep ones."""


class Piece:
    """How much has been done since others had their turn."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = 0

    def ends_with(self, topic_filter: str) -> bool:
        """Count a topic filter; return whether others may have their turn now."""
        self._done += FILTER + len(topic_filter)
        if self._done < WORK:
            return False
        self._done = 0
        return True
