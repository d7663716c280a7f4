"""What each batch of the writer brings to the outbox on disk and takes from it."""

from typing import TypeVar

T = TypeVar("T")


class OutboxBatches:
    """Bookkeeping of the batches that are not on disk yet.

    `committed_id` is the highest id on disk; `delivering` counts, by uplink, rows that the fleet
    has, or has refused for good, and that a crash would bring back.
    """

    def __init__(self) -> None:
        self.committed_id = 0
        self.delivering: dict[int, int] = {}
        self._last_ids: dict[int, int] = {}
        self._delivered: dict[int, dict[int, int]] = {}
        self._removing: set[int] = set()

    def add(self, batch: int, identifier: int) -> None:
        """Note that `batch` brings the row of this id."""
        self._last_ids[batch] = max(identifier, self._last_ids.get(batch, 0))

    def remove(self, batch: int) -> None:
        """Note that `batch` takes rows away, or takes note of an uplink's that has them."""
        self._removing.add(batch)

    def deliver(self, batch: int, uplink: int, rows: int) -> None:
        """Note that `batch` says of so many rows that an uplink has, or has refused, them."""
        of_batch = self._delivered.setdefault(batch, {})
        of_batch[uplink] = of_batch.get(uplink, 0) + rows
        self.delivering[uplink] = self.delivering.get(uplink, 0) + rows

    def committed(self, batch: int) -> tuple[bool, bool]:
        """Take in that all up to `batch` is on disk; return whether that brought and took rows."""
        last_ids = _pop_up_to(self._last_ids, batch)
        for delivered in _pop_up_to(self._delivered, batch):
            for uplink, rows in delivered.items():
                self.delivering[uplink] -= rows
        removed = {number for number in self._removing if number <= batch}
        self._removing -= removed
        if last_ids:
            self.committed_id = last_ids[-1]
        return bool(last_ids), bool(removed)


def _pop_up_to(by_batch: dict[int, T], batch: int) -> list[T]:
    return [by_batch.pop(number) for number in list(by_batch) if number <= batch]
