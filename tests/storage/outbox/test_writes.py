"""Rows that must be written share commits when many come, and nobody waits long for that."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import gateway.storage.outbox.writes as writes_module
from gateway.storage.outbox.row import OutboxRow
from gateway.storage.outbox.writes import GROUP_ROWS, GROUP_SECONDS
from tests.support.disk.storage import Store, open_store, outbox_row, until

WAIT = 0.25
"""Seconds for which a publisher's answer could wait for a fleet that answers."""

SECONDS = 4 * GROUP_SECONDS


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(tmp_path)
    yield store
    await store.close()


def add(store: Store, first: int, count: int = 1, wait: float = WAIT) -> None:
    """Add rows in a turn of their own."""
    for number in range(first, first + count):
        store.outbox.add(outbox_row(number), 0.0, wait)
    store.writer.hand_over()


async def added_at_once(store: Store) -> None:
    """Add the first row after a pause, whose commit waits for nothing."""
    begun = store.writer.batch
    add(store, 1)
    await until(lambda: store.writer.committed >= begun)


async def test_rows_that_keep_coming_share_commits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes_module, "QUIET_SECONDS", 3600.0)  # a busy machine pauses, too
    monkeypatch.setattr(writes_module, "QUIET_GAPS", 1 << 20)
    loop = asyncio.get_running_loop()
    begun, number = loop.time(), 0
    while loop.time() - begun < SECONDS:
        number += 1
        add(store, number)
        await asyncio.sleep(0.001)
    most = 3 + (loop.time() - begun) / GROUP_SECONDS  # the first, the second, the last
    await store.settle()
    assert store.writer.committed <= most
    assert store.outbox.rows == number


async def test_the_first_after_a_pause_is_committed_at_once(store: Store) -> None:
    add(store, 1)
    await asyncio.sleep(0)
    assert store.writer.batch == 2  # the first is closed


async def test_a_row_that_stays_alone_waits_until_it_is_quiet(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes_module, "GROUP_SECONDS", 3600.0)
    await added_at_once(store)
    add(store, 2)
    assert store.writer.due.wanted
    await until(lambda: store.writer.committed == 2)


async def test_many_rows_wait_for_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes_module, "GROUP_SECONDS", 3600.0)
    monkeypatch.setattr(writes_module, "QUIET_SECONDS", 3600.0)
    await added_at_once(store)
    add(store, 2, GROUP_ROWS - 1)
    assert not store.writer.due.passed
    add(store, GROUP_ROWS + 1)
    await until(lambda: store.writer.batch == 3)


async def test_another_commit_takes_them_along(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes_module, "GROUP_SECONDS", 3600.0)
    monkeypatch.setattr(writes_module, "QUIET_SECONDS", 3600.0)
    await added_at_once(store)
    add(store, 2)
    add(store, 3, wait=0.0)  # its publisher's answer may not wait
    await until(lambda: store.writer.committed == 2)
    assert store.outbox.rows == 3
    await asyncio.sleep(0.05)  # the timer finds nothing to do
    assert store.writer.batch == 3


class Draining:
    """An uplink that is up, and has a backlog to send."""

    is_free = False

    def accepts(self, _: OutboxRow) -> bool:
        return True

    def send(self, row: OutboxRow) -> None:
        """Leave the row to the backlog."""


async def test_nothing_waits_while_a_backlog_goes_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes_module, "GROUP_SECONDS", 3600.0)
    await added_at_once(store)
    store.outbox.writes.begin_live(Draining())
    add(store, 2)
    await until(lambda: store.writer.batch == 3)  # the second is closed
    await store.settle()
