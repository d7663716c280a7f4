"""The rows that somebody has fetched and holds: one object for each, however often it is read."""

from collections.abc import Iterable
from weakref import WeakValueDictionary

from gateway.storage.outbox.outbox_row import OutboxRow


class FetchedRows:
    """Knows rows by their id for as long as anybody holds them."""

    def __init__(self) -> None:
        self._rows: WeakValueDictionary[int, OutboxRow] = WeakValueDictionary()

    def known(self, rows: Iterable[OutboxRow]) -> list[OutboxRow]:
        """Return `rows`, those that are held already as the objects that are known."""
        return [self._rows.setdefault(row.id, row) for row in rows]

    def is_taken(self, identifier: int) -> bool:
        """Return whether the row of this id is on its way to the fleet."""
        row = self._rows.get(identifier)
        return row is not None and bool(row.taken)

    def leaves(self, row: OutboxRow) -> None:
        """Mark a row that left on the object that is held."""
        held = self._rows.get(row.id)
        if held is not None:
            held.left = True
