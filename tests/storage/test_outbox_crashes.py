"""An outbox with crashes, against a model."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.storage.fate import Fate
from gateway.storage.outbox_row import OutboxRow
from tests.support.storage import crash_image, open_store, outbox_row


class OutboxWithCrashes(RuleBasedStateMachine):
    """After a crash the file holds the outbox as of one batch: committed, or later.

    Never a part of a batch, never less than was said to be on disk, never a removed row that
    was removed for good.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folders = tempfile.TemporaryDirectory()
        self._crashes = 0
        self._folder = Path(self._folders.name) / "0"
        self._folder.mkdir()
        self._runner = asyncio.Runner()
        self._seq = 0
        self._rows: dict[int, OutboxRow] = {}
        self._start()

    def _start(self) -> None:
        self.store = self._runner.run(open_store(self._folder))
        self._by_batch: dict[int, dict[int, OutboxRow]] = {0: dict(self._rows)}

    def _note(self) -> None:
        self._by_batch[self.store.writer.batch] = dict(self._rows)

    @rule(count=st.integers(1, 5), size=st.sampled_from([0, 20, 3_000]))
    def add(self, count: int, size: int) -> None:
        for _ in range(count):
            self._seq += 1
            row = outbox_row(self._seq, payload=bytes(size))
            self.store.outbox.add(row)
            self._rows[row.id] = row
        self._note()

    @rule(places=st.lists(st.integers(0, 1_000), max_size=8))
    def remove(self, places: list[int]) -> None:
        """The fleet takes some rows that are on disk, in any order."""
        for place in places:
            rows = self._rows.values()
            on_disk = [row for row in rows if row.id <= self.store.outbox.committed_id]
            if on_disk:
                row = on_disk[place % len(on_disk)]
                self.store.outbox.remove([row], Fate.DELIVERED)
                del self._rows[row.id]
        self._note()

    @rule()
    def end_turn(self) -> None:
        self._runner.run(self.store.end_turn())

    @rule()
    def settle(self) -> None:
        self._runner.run(self.store.settle())
        assert self._on_disk() == self._rows

    def _on_disk(self) -> dict[int, OutboxRow]:
        outbox = self.store.outbox
        rows = self._runner.run(outbox.fetch(0, 10_000, up_to=2**62))
        return {row.id: row for row in rows}

    @rule()
    def restart(self) -> None:
        self._runner.run(self.store.close())
        self._start()
        assert self._on_disk() == self._rows

    @rule()
    def crash(self) -> None:
        """At any moment, also while a commit runs in its thread."""
        promised = self.store.writer.committed
        self._crashes += 1
        image = crash_image(self._folder, Path(self._folders.name) / str(self._crashes))
        self._runner.run(self.store.close())
        states = self._by_batch
        self._folder = image
        self._start()
        found = self._on_disk()
        before = max(number for number in states if number <= promised)
        assert found in [state for number, state in states.items() if number >= before]
        self._rows = found
        self._by_batch = {0: dict(found)}

    @invariant()
    def counts_are_exact(self) -> None:
        outbox = self.store.outbox
        assert outbox.rows == len(self._rows)
        assert outbox.bytes == sum(row.size for row in self._rows.values())
        assert (outbox.oldest_time is None) == (not self._rows)

    def teardown(self) -> None:
        self._runner.run(self.store.close())
        self._runner.close()
        self._folders.cleanup()


TestOutboxWithCrashes = pytest.mark.uncovered(OutboxWithCrashes.TestCase)
TestOutboxWithCrashes.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
