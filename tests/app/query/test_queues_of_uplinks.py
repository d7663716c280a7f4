"""Of several uplinks the one that all waiting messages are for has an age and bytes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.mqtt.packets import Publish
from tests.app.query.test_queues import publish
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway, started
from tests.support.operator import Operator
from tests.support.ports import free_port
from tests.support.processes.mosquitto import Mosquitto
from tests.support.raw_client import Clients

CONFIG = """
[[listener]]
port = {port}
[[uplink]]
name = "cloud"
directory = "{folder}"
[[uplink.rule]]
topic = "both/#"
[[uplink]]
name = "plant"
url = "mqtt://127.0.0.1:{dead}"
[[uplink.rule]]
topic = "#"
"""


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    landing = tmp_path / "landing"
    text = CONFIG.format(port=free_port(), dead=free_port(), folder=landing)
    async with started(tmp_path, text) as made:
        yield made


async def test_what_waits_for_one_alone_is_told_with_its_age(
    operator: Operator, clients: Clients
) -> None:
    publisher = await clients.connect("p")
    await publish(publisher, "both/x", b"1", b"2")

    async def rows() -> dict[str, dict[str, object]]:
        answer = await operator.ask("queues", kind="uplink")
        return {row["name"]: row for row in answer["rows"]}

    found = await rows()
    while found["cloud"]["depth"]:
        found = await rows()
    assert found["plant"]["depth"] == 2
    assert isinstance(found["plant"]["oldest_seconds"], float)
    assert found["plant"]["bytes"]
    assert (found["cloud"]["oldest_seconds"], found["cloud"]["bytes"]) == (None, None)


@pytest.mark.mosquitto
async def test_what_is_in_flight_is_told_of_each_uplink(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    """Each link counts it for each message in figures of its own, and a round shows them."""
    text = CONFIG.replace('directory = "{folder}"', 'url = "mqtt://127.0.0.1:{fleet}"')
    text = text.format(port=free_port(), dead=free_port(), fleet=mosquitto.port)
    async with started(tmp_path, text) as gateway:
        figures = gateway.counters.values
        clients = Clients(int(gateway.configuration.listeners[0].port))
        publisher = await clients.connect("p")
        await publish(publisher, "both/x", b"0")
        # the first messages of a link, such as the status, are in flight for a while, too
        await until(lambda: figures["tidegate/uplink/cloud/acknowledged"] == 1)
        await until(lambda: figures["tidegate/uplink/cloud/inflight"] == 0)
        mosquitto.freeze()
        await publish(publisher, "both/x", b"1", b"2")
        await until(lambda: figures["tidegate/uplink/cloud/inflight"] == 2)
        await until(lambda: figures["tidegate/uplink/inflight"] == 2)
        mosquitto.thaw()
        await until(lambda: figures["tidegate/uplink/cloud/inflight"] == 0)
        await clients.close()


async def test_the_next_attempt_to_connect_is_told_until_it_is_not_planned(
    gateway: Gateway, operator: Operator
) -> None:
    figures, plant = gateway.counters.values, "tidegate/uplink/plant/"

    async def seconds(query: str, key: str) -> dict[str, object]:
        answer = await operator.ask(query)
        return {row["name"]: row.get("next_attempt_seconds") for row in answer[key]}

    await until(lambda: figures[plant + "state"] == "disconnected")
    async with asyncio.timeout(60):
        while (await seconds("queues", "rows"))["plant"] is None:  # an attempt is being made
            pass
        while not (reported := await seconds("status", "uplinks"))["plant"]:
            pass
    assert reported["cloud"] is None
    assert isinstance(reported["plant"], int)
    assert 1 <= reported["plant"] <= 60
    await until(lambda: bool(figures[plant + "next_attempt_seconds"]))
    assert figures["tidegate/uplink/cloud/next_attempt_seconds"] == 0
    common = figures["tidegate/uplink/next_attempt_seconds"]
    assert common == figures[plant + "next_attempt_seconds"]
    await operator.client.send(Publish("$CONTROL/tidegate/uplink/plant", b"pause", 1, packet_id=99))
    await until(lambda: figures[plant + "state"] == "paused")
    assert (await seconds("queues", "rows"))["plant"] is None
    await until(lambda: figures[plant + "next_attempt_seconds"] == 0)
