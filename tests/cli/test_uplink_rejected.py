"""`tidegate uplink rejected` with a running gateway whose fleet refuses and closes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.uplink import lines, rejected_table
from gateway.mqtt.packets import Publish
from tests.cli.conftest import Command
from tests.support.disk.storage import until
from tests.support.fleet.scripted_fleet import ScriptedFleet, Talk, take
from tests.support.paho_clients import Publisher
from tests.support.processes.gateway_process import GatewayProcess

CONFIG = """
[gateway]
id = "barn"

[[uplink]]
name = "cloud"
url = "mqtt://127.0.0.1:{port}"

[[uplink.rule]]
topic = "sensors/#"
uplink = ["cloud", "plant"]

[[uplink]]
name = "plant"
directory = "{folder}"
"""


@pytest.fixture
async def fleet() -> AsyncIterator[ScriptedFleet]:
    made = ScriptedFleet()
    await made.start()
    yield made
    await made.stop()


def publish(port: int, payloads: list[bytes]) -> None:
    """Publish with QoS 1, one after the other."""
    publisher = Publisher(port)
    for payload in payloads:
        assert publisher.publish("sensors/n1/t", payload) < 0x80
    publisher.close()


def closes_or_refuses(talk: Talk, publish: Publish) -> None:
    """Close on one message, refuse another for good."""
    if publish.payload == b'{"value":2}':
        talk.close()
    elif publish.payload == b'{"value":5}':
        talk.refuse(publish, 0x99)
    else:
        talk.take(publish)


@pytest.mark.uncovered
async def test_rejected_messages_can_be_seen_sent_again_and_dropped(
    tmp_path: Path, tidegate: Command, fleet: ScriptedFleet
) -> None:
    fleet.script = closes_or_refuses
    gateway = GatewayProcess(tmp_path, CONFIG.format(port=fleet.port, folder=tmp_path / "landing"))

    async def ask(*words: str, status: int = 0) -> str:
        url = f"mqtt://127.0.0.1:{gateway.port}"
        done = await asyncio.to_thread(tidegate, "uplink", "rejected", *words, url)
        assert done.returncode == status, done.stderr
        return done.stdout or done.stderr

    async def listed() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(await ask("list", "--json"))
        return found

    await asyncio.to_thread(gateway.start)
    try:
        assert await ask() == "no message is rejected\n"
        payloads = [b'{"value":%d}' % value for value in range(1, 9)]
        await asyncio.to_thread(publish, gateway.port, payloads)
        await until(lambda: len(set(fleet.taken)) == 6)
        await until(lambda: " was rejected (closed)" in gateway.log())
        rows = await listed()
        assert [(each["number"].partition(".")[2], each["cause"]) for each in rows] == [
            ("main.5", "0x99"),
            ("main.2", "closed"),
        ]
        assert {each["uplink"] for each in rows} == {"cloud"}
        five, two = (each["number"] for each in rows)
        assert f"payload         {payloads[1].decode()}" in await ask("show", two)
        assert "none of these is stored" in await ask("show", "0.main.77", status=2)
        assert "there is no uplink 'x'" in await ask("list", "--uplink", "x", status=2)
        assert "needs numbers" in await ask("drop", status=2)
        assert "there are list, show, retry, drop" in await ask("keep", status=2)
        assert "unrecognized arguments: -x" in await ask("list", "-x", status=2)
        gateway.kill()
        await asyncio.to_thread(gateway.start)
        fleet.script = take
        assert await ask("retry", two, "--uplink", "plant", status=2)
        assert await ask("retry", two) == "1 put back into the outbox\n"
        await until(lambda: 2 in fleet.taken)
        assert await ask("drop", "all") == "1 deleted\n"
        assert await listed() == []
        assert five not in {str(number) for number in fleet.taken}
    finally:
        gateway.kill()
    assert sorted(set(fleet.taken)) == [1, 2, 3, 4, 6, 7, 8]


ENTRY: dict[str, Any] = {
    "number": "00a1b2c3d4.main.17",
    "uplink": "",
    "cause": "closed",
    "code": "0x80",
    "topic": "sensors/n1/image",
    "bytes": 70_000,
    "time": 1_763_740_000_000,
    "rejected_at": 1_763_740_100_000,
}


def test_what_a_person_reads() -> None:
    assert rejected_table([ENTRY]) == [
        "number              cause   bytes   rejected             topic",
        "00a1b2c3d4.main.17  closed  70,000  2025-11-21 15:48:20  sensors/n1/image",
    ]
    assert rejected_table([{**ENTRY, "uplink": "cloud"}])[1].split()[1] == "cloud"
    full = lines({**ENTRY, "payload": "/0E=", "client_id": None, "user_properties": []})
    assert full[-1] == "payload         \\xffA"
    assert "rejected at     2025-11-21 15:48:20" in full
    assert not any(line.startswith(("client id", "user properties")) for line in full)
