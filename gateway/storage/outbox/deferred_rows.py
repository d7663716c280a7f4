"""Rows that are not written yet, since the fleet may have acknowledged them before they must be."""

import asyncio
import math
from collections.abc import Callable

from gateway.storage.engine.writer import Writer
from gateway.storage.outbox.outbox_row import OutboxRow


class DeferredRows:
    """Rows in the order in which they came, each for as long as it may wait.

    Every batch takes all of them along: once it is on disk, each number up to its last one is in
    the outbox or in the ledger. A batch is begun for their sake only if one has waited too long.
    They are no more than the uplink has in flight and in memory (`Lanes`).
    """

    __slots__ = ("_by_wait", "_on_late", "_timer", "_write", "_writer")

    def __init__(
        self, writer: Writer, write: Callable[[OutboxRow], object], on_late: Callable[[int], None]
    ) -> None:
        self._writer = writer
        self._write = write
        self._on_late = on_late
        self._by_wait: dict[float, dict[int, tuple[float, OutboxRow]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        writer.before_batch.append(self._gather)

    def __len__(self) -> int:
        return sum(map(len, self._by_wait.values()))

    def add(self, row: OutboxRow, wait: float) -> None:
        """Hold a row for `wait` seconds at most."""
        loop = asyncio.get_running_loop()
        due = loop.time() + wait
        self._by_wait.setdefault(wait, {})[row.id] = (due, row)
        if self._timer is None or self._timer.when() > due:
            self._arm(loop, due)

    def __contains__(self, identifier: int) -> bool:
        return any(identifier in rows for rows in self._by_wait.values())

    def discard(self, identifier: int) -> bool:
        """Forget a row that has left; return whether it had not been written."""
        for rows in self._by_wait.values():
            if rows.pop(identifier, None) is not None:
                break
        else:
            return False
        return True

    def write(self) -> None:
        """Have what is held written: nobody will acknowledge it soon."""
        if len(self):
            self._writer.schedule_commit(0.0)
            self._writer.hand_over()

    def _gather(self) -> None:
        """Give the writer all rows, by rising id: it is about to close a batch."""
        held = [row for rows in self._by_wait.values() for _, row in rows.values()]
        self._by_wait.clear()
        for row in sorted(held, key=lambda row: row.id):
            self._write(row)

    def _arm(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(due, self._look)

    def _look(self) -> None:
        """Have the rows written if one is due, or look again when the next is."""
        self._timer = None
        loop = asyncio.get_running_loop()
        firsts = [next(iter(rows.values())) for rows in self._by_wait.values() if rows]
        due = min((due for due, _ in firsts), default=math.inf)
        if due <= (now := loop.time()):
            for due, row in firsts:
                if due <= now:
                    self._on_late(row.uplinks)
            self.write()
        elif due < math.inf:
            self._arm(loop, due)
