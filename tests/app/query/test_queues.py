"""What waits where, what the rules took, and retained messages that are cleared."""

import asyncio
from typing import Any

import pytest

from gateway.app.query import queues as module
from gateway.mqtt.packets import Disconnect, PubAck, Publish
from gateway.mqtt.properties import Properties
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.operator import Operator
from tests.support.raw_client import Clients, RawClient

AWAY = Properties(session_expiry_interval=1_000)


async def publish(client: RawClient, topic: str, *payloads: bytes, **fields: Any) -> None:
    for number, payload in enumerate(payloads, 1):
        await client.send(Publish(topic, payload, 1, packet_id=number, **fields))
        answer = await client.take(PubAck)
        assert answer.reason_code < 0x80


async def test_what_waits_is_told_of_uplinks_channels_delays_and_sessions(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    away = await clients.connect("away", properties=AWAY)
    await away.subscribe("a/#", 1)
    await away.send(Disconnect())
    await until(lambda: "away" not in gateway.broker.clients)
    publisher = await clients.connect("p")
    await publish(publisher, "a/b", b"1", b"2")
    await publish(publisher, "work/1", b"1", b"2", b"3")
    await publish(publisher, "$delay/100/later", b"1")
    answer = await operator.ask("queues")
    assert [(row["kind"], row["name"], row["depth"]) for row in answer["rows"]] == [
        ("uplink", "", 0),
        ("channel", "jobs", 3),
        ("delayed", "", 1),
        ("session", "away", 2),
    ]
    uplink, channel, _, session = answer["rows"]
    assert (uplink["state"], uplink["error"]) == ("connected", "")
    assert (channel["filter"], channel["state"]) == ("work/#", "open")
    assert channel["oldest_seconds"] >= 0
    assert (session["state"], session["inflight"]) == ("offline", 0)
    assert session["oldest_seconds"] >= 0
    only = await operator.ask("queues", kind="session", limit=1)
    assert (only["total"], len(only["rows"])) == (1, 1)


async def test_rates_say_when_a_queue_is_empty(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    publisher = await clients.connect("p")
    await publish(publisher, "work/1", *[b"1"] * 30)
    reader = await clients.connect("reader", properties=Properties(receive_maximum=1))
    asked = asyncio.get_running_loop().create_task(
        operator.ask("queues", kind="channel", seconds=0.5)
    )
    await asyncio.sleep(0.1)
    await reader.subscribe("$share/jobs/work/#", 1)
    for _ in range(10):
        packet = await reader.take(Publish)
        await reader.send(PubAck(packet.packet_id))
    (row,) = (await asked)["rows"]
    assert row["in_rate"] == 0
    assert row["out_rate"] > 0
    assert row["empty_seconds"] > 0
    rows = (await operator.ask("queues", seconds=0.01))["rows"]
    assert "in_rate" in rows[0]


async def test_a_session_that_reads_slowly_has_rates(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    slow = await clients.connect("slow", properties=Properties(receive_maximum=1))
    await slow.subscribe("a", 1)
    publisher = await clients.connect("p")
    await publish(publisher, "a", b"1", b"2", b"3")
    (row,) = (await operator.ask("queues", kind="session", seconds=0.05))["rows"]
    assert (row["name"], row["inflight"], row["depth"]) == ("slow", 1, 2)
    assert row["out_rate"] == 0


async def test_rules_have_their_counters(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    publisher = await clients.connect("p")
    await publish(publisher, "sensors/x", b'{"value":1}', b'{"value":30}', b"{}")
    first, second = (await operator.ask("rules"))["rows"]
    assert (first["topic"], first["where"]) == ("sensors/#", "payload.value > 20")
    counters = first["counters"]
    assert (counters["evaluated"], counters["passed"], counters["null"]) == (3, 1, 1)
    assert first["rule"].startswith("0@")
    assert (second["where"], second["uplinks"], second["lane"]) == (None, [""], "live")


async def test_retained_messages_are_cleared_and_subscribers_told(
    gateway: Gateway, operator: Operator, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = await clients.connect("p")
    for topic in ("a/1", "a/2", "a/3", "b"):
        await publish(publisher, topic, b"1", retain=True)
    listener = await clients.connect("listener")
    await listener.subscribe("a/1")
    await listener.take(Publish)
    monkeypatch.setattr(module, "MAXIMUM_CLEARED", 2)
    answer = await operator.ask("retained/clear", filter="a/#")
    assert (answer["cleared"], answer["more"]) == (2, True)
    cleared = await listener.take(Publish)
    assert (cleared.topic, cleared.payload) == ("a/1", b"")
    assert (await operator.ask("retained/clear", filter="#"))["cleared"] == 2
    assert "the gateway's own topics cannot be cleared" in await operator.refused(
        "retained/clear", filter="$SYS/#"
    )
    assert "filter 'a/#/b'" in await operator.refused("retained/clear", filter="a/#/b")
    assert gateway.broker.retained.get("$SYS/broker/version") is not None
