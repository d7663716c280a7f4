"""Which messages have a size that a channel takes."""

from itertools import groupby

from gateway.mqtt.publication import Publication


class MessageSizes:
    """Payloads of `smallest` to `largest` bytes."""

    __slots__ = ("_largest", "_smallest")

    def __init__(self, smallest: int, largest: int) -> None:
        self._smallest = smallest
        self._largest = largest

    def fitting(self, publication: Publication, first: int, most: int) -> int:
        """Return how many messages in a row, from number `first` on, have a size in between.

        That is a negative number, of those in a row that have not, if the first has not.
        """
        packets = publication.packets
        if not self._smallest and packets.payloads <= self._largest:
            return most
        return self._look(publication, first, most)

    def _look(self, publication: Publication, first: int, most: int) -> int:
        """Return what `fitting` does, for messages of which some may not fit."""
        sizes = (publication.packets.payload_bytes(n, 1) for n in range(first, first + most))
        fits, alike = next(groupby(sizes, lambda size: self._smallest <= size <= self._largest))
        count = len(list(alike))
        return count if fits else -count
