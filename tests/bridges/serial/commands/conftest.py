"""A rig whose node runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from gateway.bridges.serial import node_commands
from tests.bridges.serial.commands.rig import Line, Rig
from tests.support.disk.storage import until


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    rig = Rig()
    monkeypatch.setattr(node_commands, "RESEND_SECONDS", 0.02)

    async def open_port(_path: str, _baud: int) -> Line:
        return rig.line

    monkeypatch.setattr("gateway.bridges.serial.serial_bridge.open_port", open_port)
    tasks = [asyncio.create_task(rig.bridge.run()), asyncio.create_task(rig.live())]
    await until(lambda: bool(rig.gateway.subscriptions.receivers))
    yield rig
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
