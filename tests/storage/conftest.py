from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.session.queue import delivery_queue
from gateway.settings.broker import BrokerSettings
from gateway.storage.sessions import message_store, pager, restore
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.paged_queues import HEAD
from tests.support.disk.storage import Store, open_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep little of a queue in memory, and read and delete the rest in small steps."""
    monkeypatch.setattr(delivery_queue, "HEAD_MESSAGES", HEAD)
    monkeypatch.setattr(restore, "HEAD_MESSAGES", HEAD)
    monkeypatch.setattr(pager, "PAGE_MESSAGES", 3)
    monkeypatch.setattr(pager, "STEP_ROWS", 5)
    monkeypatch.setattr(message_store, "MAXIMUM_DEAD_BYTES", 1)


@pytest.fixture
def harness() -> DurableHarness:
    """Give a broker whose sessions are on a disk and send two messages at a time."""
    return DurableHarness(BrokerSettings(maximum_inflight=2))
