"""Whatever fills a disk, and when: what was acknowledged reaches the fleet and is deleted."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import gateway.storage.engine.free_space as free_space_module
import gateway.storage.engine.writer as writer_module
from gateway.storage.engine.free_space import FreeSpace
from gateway.storage.outbox.row import Outcome
from tests.support.disk.small_disk import SmallDisk
from tests.support.disk.storage import open_store, outbox_row, until

pytestmark = [pytest.mark.mount, pytest.mark.uncovered]

WINDOW = 1_000
"""Rows that the fleet acknowledges at once."""


class Gateway:
    """A store on a small disk, which is opened again when it asks for that."""

    def __init__(self, disk: SmallDisk) -> None:
        self.acknowledged: set[int] = set()
        self.restarts = 0
        self._disk = disk
        self._restart = False
        self._sent: dict[int, int] = {}  # the batch of each number that waits for it
        self._seq = 0

    async def open(self) -> None:
        self._restart = False
        self.store = await open_store(self._disk.folder)
        database = self.store.database
        self.free_space = FreeSpace(
            database.path, database.writer, database.reserve, restart=self._ask
        )
        self.store.writer.attempts.free_space = self.free_space
        await self.free_space.begin()

    async def close(self) -> None:
        await self.free_space.close()
        await self.store.close()

    async def publish(self, rows: int, size: int) -> None:
        """Publish in one turn what is admitted."""
        for _ in range(rows):
            self._seq += 1
            row = outbox_row(self._seq, payload=bytes(size))
            if self.store.outbox.admits([row]):
                self._sent[self._seq] = self.store.outbox.add(row)
        self.store.writer.hand_over()

    async def settle(self) -> None:
        """Return when all is on disk, waits for space, or the gateway has started again."""
        writer = self.store.writer
        await until(lambda: not writer.pending_rows or writer.attempts.failing or self._restart)
        done = {seq for seq, batch in self._sent.items() if batch <= writer.committed}
        self.acknowledged |= done
        for seq in done:
            del self._sent[seq]
        if self._restart:
            self.restarts += 1
            self._sent.clear()
            await self.close()
            await self.open()

    async def drain(self) -> set[int]:
        """Return the numbers that the fleet got until nothing waited for it."""
        got: set[int] = set()
        while self.store.outbox.rows:
            outbox, writer = self.store.outbox, self.store.writer
            rows = await outbox.fetch(0, WINDOW)
            got.update(row.seq for row in rows)
            batch = outbox.remove(rows, Outcome.DELIVERED)
            writer.hand_over()
            await until(lambda: writer.committed >= batch or self._restart, 10)  # noqa: B023
            await self.settle()
        return got

    def _ask(self) -> None:
        self._restart = True


FILL, EMPTY, SETTLE = "fill", "empty", "settle"
"""Something else takes all free space, or returns it; the writer is waited for."""

steps = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 400), st.integers(1, 6_000)),
        st.tuples(st.integers(1, 4), st.integers(6_000, 400_000)),
        st.sampled_from([FILL, EMPTY, SETTLE]),
    ),
    max_size=12,
)


async def play(disk: SmallDisk, history: Sequence[str | tuple[int, int]]) -> Gateway:
    """Return the gateway after a history, and after the fleet got all on a full disk."""
    gateway = Gateway(disk)
    await gateway.open()
    for step in (*history, SETTLE, FILL):
        if isinstance(step, tuple):
            await gateway.publish(*step)
        elif step == SETTLE:
            await gateway.settle()
        elif step == EMPTY:
            disk.filler.unlink(missing_ok=True)
        elif not gateway.free_space.exhausted:  # or it would take the reserve's space, too
            disk.fill()
    await gateway.settle()
    got = await gateway.drain()
    assert gateway.acknowledged <= got
    await gateway.close()
    return gateway


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "FIRST_RETRY", 0.01)
    monkeypatch.setattr(free_space_module, "RETRY_SECONDS", 0.01)


@pytest.mark.usefixtures("quick")
@given(megabytes=st.integers(2, 64), history=steps)
@example(64, [(400, 20_000), FILL])  # a log that the reserve could not fold
@example(3, [(3, 322_628), (1, 323_508), FILL, (78, 4_286)])
@example(2, [(9, 1_650), (3, 349_682), FILL, (285, 2_850)])  # a batch fails, and fills the disk
@settings(
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # each failing example takes ten seconds
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_what_was_acknowledged_reaches_the_fleet_on_a_full_disk(
    tmp_path: Path, megabytes: int, history: list[str | tuple[int, int]]
) -> None:
    disk = SmallDisk(tmp_path / "data", megabytes)
    disk.mount()
    try:
        asyncio.run(play(disk, history))
    finally:
        disk.unmount()
