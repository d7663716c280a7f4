"""How long rows may wait for their commit."""

import asyncio
import time
from pathlib import Path

import pytest

import gateway.storage.engine.writer as writer_module
from tests.support.disk.storage import Store, meta_names, open_store, until

INSERT = "INSERT INTO meta VALUES (?, ?)"


class Dirty:
    """Rows that are kept in memory until a batch begins, unless somebody undoes them."""

    def __init__(self, store: Store) -> None:
        self.names: set[str] = set()
        self._store = store
        store.writer.before_batch.append(self.gather)

    def set(self, name: str, within: float) -> None:
        self.names.add(name)
        self._store.writer.schedule_commit(within)

    def gather(self) -> None:
        for name in sorted(self.names):
            self._store.writer.add(INSERT, (name, 1))
        self.names.clear()


async def test_what_is_wanted_now_is_committed_at_the_end_of_the_turn(store: Store) -> None:
    dirty = Dirty(store)
    dirty.set("a", 0.0)
    assert store.writer.commit_number() == 1
    store.writer.hand_over()
    await until(lambda: store.writer.committed == 1)
    assert await meta_names(store) == ["a"]
    assert store.writer.commit_number() == 0


async def test_what_may_wait_is_committed_within_its_time(store: Store) -> None:
    clock = asyncio.get_running_loop().time
    dirty = Dirty(store)
    began = clock()
    dirty.set("a", 600.0)
    store.writer.hand_over()
    dirty.set("b", 1200.0)  # asks for no more
    store.writer.hand_over()
    dirty.set("c", 0.04)
    store.writer.hand_over()
    await until(lambda: not dirty.names)
    assert clock() - began >= 0.04
    await until(lambda: store.writer.committed == 1)
    assert await meta_names(store) == ["a", "b", "c"]


async def test_the_commit_delay_counts_from_the_end_of_the_turn(store: Store) -> None:
    clock = asyncio.get_running_loop().time
    store.writer.commit_delay = 0.05
    dirty = Dirty(store)
    dirty.set("a", 0.05)
    time.sleep(0.06)  # noqa: ASYNC251 - a long turn: what others might answer has not left yet
    ended = clock()
    store.writer.hand_over()
    store.writer.hand_over()
    await until(lambda: store.writer.batch == 2)
    assert clock() - ended >= 0.05


async def test_a_row_that_is_due_takes_along_what_may_wait(store: Store) -> None:
    dirty = Dirty(store)
    dirty.set("a", 60.0)
    store.writer.hand_over()
    assert store.writer.add(INSERT, ("b", 1)) == 1
    store.writer.hand_over()
    await until(lambda: store.writer.committed == 1)
    assert await meta_names(store) == ["a", "b"]


async def test_what_is_undone_before_its_batch_is_never_written(store: Store) -> None:
    dirty = Dirty(store)
    numbers: list[int] = []
    store.writer.on_committed.append(numbers.append)
    dirty.set("a", 0.01)
    store.writer.hand_over()
    dirty.names.clear()
    await until(lambda: store.writer.committed == 1)  # whoever waits for the batch goes on
    assert numbers == [1]
    assert store.counters.count("tidegate/storage/commits") == 0
    assert store.writer.add(INSERT, ("b", 1)) == 2


async def test_what_may_wait_is_not_committed_because_a_commit_has_ended(store: Store) -> None:
    dirty = Dirty(store)
    store.writer.add(INSERT, ("a", 1))
    store.writer.hand_over()
    await asyncio.sleep(0)  # the commit of "a" begins
    dirty.set("b", 600.0)
    store.writer.hand_over()
    await until(lambda: store.writer.committed == 1)
    assert dirty.names == {"b"}
    assert store.writer.commit_number() == 2
    dirty.set("b", 0.05)
    store.writer.hand_over()
    await until(lambda: store.writer.committed == 2)
    assert await meta_names(store) == ["a", "b"]


async def test_a_row_may_wait_too(store: Store) -> None:
    assert store.writer.add(INSERT, ("a", 1), commit_within=600.0) == 1
    store.writer.hand_over()
    await asyncio.sleep(0)
    assert (store.writer.batch, store.writer.commit_number()) == (1, 1)
    assert store.writer.add(INSERT, ("b", 1), commit_within=0.03) == 1
    store.writer.hand_over()
    await until(lambda: store.writer.committed == 1)


async def test_a_stretch_uses_less_of_a_promised_window(store: Store) -> None:
    clock = asyncio.get_running_loop().time
    store.writer.stretch = 0.1 / 600.0
    began = clock()
    store.writer.add(INSERT, ("a", 1), commit_within=600.0)
    store.writer.hand_over()
    await until(lambda: store.writer.batch == 2)
    assert clock() - began >= 0.1


async def test_a_stretch_leaves_the_commit_delay_alone(store: Store) -> None:
    clock = asyncio.get_running_loop().time
    store.writer.commit_delay, store.writer.stretch = 0.05, 0.0
    for within in (0.05, 600.0):  # and never comes below it
        began, batch = clock(), store.writer.batch
        store.writer.schedule_commit(within)
        store.writer.hand_over()
        await until(lambda: store.writer.batch > batch)  # noqa: B023 - awaited here
        assert clock() - began >= 0.05


async def test_what_is_kept_in_memory_is_written_when_nobody_waits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MEMORY_DELAY", 0.05)
    clock = asyncio.get_running_loop().time
    began = clock()
    store.writer.add(INSERT, ("a", 1), commit_within=None)
    store.writer.hand_over()
    await until(lambda: store.writer.committed == 1)
    assert clock() - began >= 0.05


async def test_close_commits_what_could_still_wait(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    Dirty(store).set("a", 60.0)
    store.writer.hand_over()
    await store.close()
    again = await open_store(tmp_path)
    assert await meta_names(again) == ["a"]
    await again.close()
