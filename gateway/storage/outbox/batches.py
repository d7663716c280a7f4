"""What each batch of the writer brings to the outbox on disk and takes from it."""


class OutboxBatches:
    """Bookkeeping of the batches that are not on disk yet.

    `committed_id` is the highest id on disk; `delivering` counts rows that the fleet has, or has
    refused for good, and that a crash would bring back.
    """

    def __init__(self) -> None:
        self.committed_id = 0
        self.delivering = 0
        self._last_ids: dict[int, int] = {}
        self._delivered: dict[int, int] = {}
        self._removing: set[int] = set()

    def add(self, batch: int, identifier: int) -> None:
        """Note that `batch` brings the row of this id."""
        self._last_ids[batch] = max(identifier, self._last_ids.get(batch, 0))

    def remove(self, batch: int, delivered: int) -> None:
        """Note that `batch` takes rows away, `delivered` of which the fleet has, or has refused."""
        self._removing.add(batch)
        if delivered:
            self._delivered[batch] = self._delivered.get(batch, 0) + delivered
            self.delivering += delivered

    def committed(self, batch: int) -> tuple[bool, bool]:
        """Take in that all up to `batch` is on disk; return whether that brought and took rows."""
        last_ids = _pop_up_to(self._last_ids, batch)
        self.delivering -= sum(_pop_up_to(self._delivered, batch))
        removed = {number for number in self._removing if number <= batch}
        self._removing -= removed
        if last_ids:
            self.committed_id = last_ids[-1]
        return bool(last_ids), bool(removed)


def _pop_up_to(by_batch: dict[int, int], batch: int) -> list[int]:
    return [by_batch.pop(number) for number in list(by_batch) if number <= batch]
