"""The command `update`, which is the gateway's own work."""

import asyncio

from tests.bridges.serial.commands.rig import BOOT, Rig
from tests.support.disk.storage import until


async def test_an_update_is_the_gateways_and_the_next_command_waits_for_it(rig: Rig) -> None:
    """The node restarts meanwhile, which neither begins it again nor ends it."""
    ended = asyncio.get_running_loop().create_future()
    updates: list[str] = []

    async def update(port: str) -> str:
        updates.append(port)
        return "" if len(updates) > 1 else await ended

    object.__setattr__(rig.host.services, "update", update)
    rig.tell(command="update", id=1)
    rig.tell(command="identify", seconds=7, id=2)
    rig.tell(command="update", id=3)
    rig.boot(BOOT + 1)
    await until(lambda: rig.gateway.counters.count("tidegate/serial/frames") > 1)
    assert (updates, rig.answers, rig.board.identified) == (["tty"], [], [])
    ended.set_result("no board")
    await until(lambda: len(rig.answers) == 3)
    assert rig.answers == [
        {"id": 1, "command": "update", "status": "failed", "reason": "no board"},
        {"id": 2, "command": "identify", "status": "done"},
        {"id": 3, "command": "update", "status": "done"},
    ]


async def test_an_update_ends_with_its_bridge(rig: Rig) -> None:
    cancelled = asyncio.Event()

    async def update(_port: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    object.__setattr__(rig.host.services, "update", update)
    rig.tell(command="update")
    await asyncio.sleep(0)
    rig.host.close()
    await cancelled.wait()


async def test_a_gateway_without_updates_says_so(rig: Rig) -> None:
    rig.tell(command="update")
    await until(lambda: bool(rig.answers))
    assert rig.answers[0]["reason"] == "tty: this gateway updates no nodes"
