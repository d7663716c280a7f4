from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.disk.storage import Store, open_store
from tests.support.fleet.fleet_broker import FleetBroker


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    (tmp_path / "data").mkdir()
    opened = await open_store(tmp_path / "data")
    yield opened
    await opened.close()


@pytest.fixture
async def fleet_broker() -> AsyncIterator[FleetBroker]:
    broker = FleetBroker()
    await broker.start()
    yield broker
    await broker.stop()
