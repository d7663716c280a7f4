"""Wills of clients that the gateway's own death has cut off."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path
from random import Random

from crashtest.client import Client
from crashtest.numbers import payload_of
from crashtest.participant import until
from crashtest.subscriber import Subscriber
from gateway.mqtt.packets import Connect, Will
from gateway.mqtt.properties import Properties
from tests.crash.conftest import MakeGateway

CLIENTS = 6

LONGEST_LIFE = 0.3
"""Seconds for which the gateway runs before the next kill, at most; wills are due after 5."""


def wills_kept(data: Path) -> int:
    with closing(sqlite3.connect(data / "tidegate.db")) as database:
        return int(database.execute("SELECT count(*) FROM will").fetchone()[0])


async def test_wills_are_published_once_however_often_it_is_killed_before(
    make_gateway: MakeGateway, seed: int
) -> None:
    random = Random(seed)
    gateway = make_gateway()
    findings: list[str] = []
    heir = Subscriber("heir", findings, roots=["wills"], qos=2)
    await gateway.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(heir.aclose)
        await heir.join(gateway.port)
        await heir.subscribed()
        for number in range(1, CLIENTS + 1):
            will = Will("wills/w", payload_of("w", number, 0), 2)
            expiry = random.choice([None, 3600])  # a session that ends with its connection, or not
            properties = Properties(session_expiry_interval=expiry)
            packet = Connect(f"c{number}", will=will, properties=properties)
            client = await Client.connect(gateway.port, packet)
            stack.callback(client.close)
        for _ in range(2):
            gateway.kill()
            await heir.ended()
            await gateway.start()
            await asyncio.sleep(random.uniform(0, LONGEST_LIFE))
        await heir.join(gateway.port)
        await until(lambda: len(heir.received["w"].counts) == CLIENTS, "all wills are published")
        # published and forgotten in one transaction, for which somebody online need not wait
        await until(lambda: wills_kept(gateway.data) == 0, "no will is to be published again")
        gateway.kill()
        await heir.ended()
    assert findings == []
    assert heir.received["w"].repeated == []
    assert wills_kept(gateway.data) == 0
