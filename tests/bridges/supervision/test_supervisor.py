"""A bridge's fault ends neither the bridge nor its neighbours, and closing waits for all."""

import asyncio
import logging

import pytest

from gateway.bridges.supervision import supervisor as supervisor_module
from gateway.bridges.supervision.supervisor import Supervisor
from tests.support.storage import until


class Bridge:
    """Fails as often as `faults` says, after `lasts` s, then works until it is cancelled."""

    def __init__(self, name: str, faults: int, lasts: float = 0.0) -> None:
        self.name = name
        self.faults = faults
        self.lasts = lasts
        self.starts = 0
        self.closed = False

    async def run(self) -> None:
        self.starts += 1
        if self.starts <= self.faults:
            await asyncio.sleep(self.lasts)
            raise RuntimeError(f"fault {self.starts}")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # closing takes a moment
            self.closed = True


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "RESTART_FIRST", 0.01)


async def test_a_bridge_that_fails_is_started_again_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    failing, healthy = Bridge("serial a", 2), Bridge("serial b", 0)
    supervisor = Supervisor([failing, healthy])
    supervisor.start()
    await until(lambda: failing.starts == 3)
    assert healthy.starts == 1
    await supervisor.close()
    assert failing.closed
    assert healthy.closed
    assert [record.message for record in caplog.records] == [
        "serial a: fault",
        "serial a: starts again in 0.01 s",
        "serial a: fault",
        "serial a: starts again in 0.02 s",
    ]
    assert "RuntimeError: fault 1" in caplog.text


async def test_the_delay_begins_anew_after_a_long_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor_module, "RESTART_MAX", 0.05)
    bridge = Bridge("serial a", 3, lasts=0.06)
    supervisor = Supervisor([bridge])
    supervisor.start()
    await until(lambda: bridge.starts == 4)
    await supervisor.close()
    assert {record.message for record in caplog.records if "again" in record.message} == {
        "serial a: starts again in 0.01 s"
    }


async def test_closing_without_bridges_or_before_the_start() -> None:
    supervisor = Supervisor([])
    supervisor.start()
    await supervisor.close()
    await Supervisor([Bridge("serial a", 0)]).close()


async def test_the_delay_grows_up_to_its_maximum(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: sleep(0))
    monkeypatch.setattr(supervisor_module, "RESTART_FIRST", 25.0)
    bridge = Bridge("serial a", 4)
    supervisor = Supervisor([bridge])
    supervisor.start()
    await until(lambda: bridge.starts == 5)
    await supervisor.close()
    delays = [record.message for record in caplog.records if "again" in record.message]
    assert delays == [f"serial a: starts again in {delay} s" for delay in (25, 50, 60, 60)]
