"""Changes of state crossed with outbox, landing folder and ledger, which are behind the broker."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import gateway.uplink.landing.file as landing_file_module
from tests.judge.far_end import FarEnd
from tests.judge.far_end_changes import FAR_CHANGES, FAR_HOLDERS
from tests.support.disk.storage import until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.reconnecting import reconnect_after


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    reconnect_after(monkeypatch, 0.02)
    monkeypatch.setattr(landing_file_module, "FILE_SECONDS", 0.5)


@pytest.fixture
async def fleet() -> AsyncIterator[FleetBroker]:
    broker = FleetBroker()
    await broker.start()
    yield broker
    await broker.stop()


async def fill(end: FarEnd, holder: str) -> None:
    """Let messages be where the holder has them."""
    await end.start(paused=holder == "the outbox")
    await end.acknowledge(end.accept(3))
    if holder != "the outbox":
        await until(lambda: end.kept.store.outbox.rows == 0)


@pytest.mark.uncovered
@pytest.mark.parametrize("holder", FAR_HOLDERS)
@pytest.mark.parametrize("change", FAR_CHANGES)
async def test_what_was_acknowledged_arrives_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fleet: FleetBroker, change: str, holder: str
) -> None:
    for number, step in enumerate(FAR_CHANGES[change]):
        folder = tmp_path / str(number)
        (folder / "data").mkdir(parents=True)
        with monkeypatch.context() as patches:
            target = None if holder == "the landing folder" else fleet
            end = FarEnd(folder, patches, target)
            await fill(end, holder)
            await step(end)
            await end.acknowledge(end.accept(2))
            await end.finish()
