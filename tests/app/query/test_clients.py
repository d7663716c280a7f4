"""Who is connected, who floods, and who is thrown out."""

import asyncio
from typing import Any

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, Disconnect, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.operator import Operator
from tests.support.raw_client import Clients

AWAY = Properties(session_expiry_interval=1_000)


def ids(answer: dict[str, Any]) -> list[str]:
    return [row["id"] for row in answer["rows"]]


async def leave(clients: Clients, gateway: Gateway, client_id: str, topic_filter: str) -> None:
    """Leave a persistent session with a subscription."""
    client = await clients.connect(client_id, properties=AWAY)
    await client.subscribe(topic_filter, 1)
    await client.send(Disconnect())
    await until(lambda: client_id not in gateway.broker.clients)


async def test_clients_are_listed_by_page_state_user_and_pattern(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    await leave(clients, gateway, "away", "a/#")
    await clients.connect("pump-1", username="anna", keep_alive=77)
    await clients.connect("pump-2", MQTT_3_1_1)
    answer = await operator.ask("clients")
    assert ids(answer) == ["away", "operator", "pump-1", "pump-2"]
    away, _, first, second = answer["rows"]
    assert (away["connected"], away["expiry"], away["subscriptions"]) == (False, 1_000, 1)
    assert "address" not in away
    assert abs(away["disconnected"] - answer["time"]) < 60_000
    assert (first["user"], first["keep_alive"], first["version"]) == ("anna", 77, "5")
    assert first["listener"].startswith("127.0.0.1:")
    assert abs(first["since"] - answer["time"]) < 60_000
    assert (second["user"], second["version"], second["expiry"]) == (None, "3.1.1", 0)
    for request, found in (
        ({"match": "pump-*"}, ["pump-1", "pump-2"]),
        ({"user": "anna"}, ["pump-1"]),
        ({"user": ""}, ["away", "operator", "pump-2"]),
        ({"state": "offline"}, ["away"]),
        ({"state": "connected", "match": "*2"}, ["pump-2"]),
        ({"offset": 1, "limit": 2}, ["operator", "pump-1"]),
        ({"offset": 4}, []),
        ({"sort": "since"}, ["pump-2", "pump-1", "operator", "away"]),
    ):
        assert ids(await operator.ask("clients", **request)) == found, request
    page = await operator.ask("clients", limit=3)
    assert (page["total"], page["next"]) == (4, 3)
    assert (page["connected"], page["offline"]) == (3, 1)


async def test_who_floods_stands_first(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    await clients.connect("quiet")
    loud = await clients.connect("loud")

    async def flood() -> None:
        while True:
            await loud.send(*[Publish("x", b"1")] * 20)
            await asyncio.sleep(0.01)

    flooding = asyncio.get_running_loop().create_task(flood())
    answer = await operator.ask("clients", sort="received_rate", seconds=0.3)
    flooding.cancel()
    first, *others = answer["rows"]
    assert first["id"] == "loud"
    assert first["received_rate"] > 10
    assert all(row["received_rate"] < 10 for row in others)
    for sort in ("rate", "sent_rate"):
        assert "needs seconds" in await operator.refused("clients", sort=sort)
    for sort in ("received", "sent", "waiting", "inflight"):
        assert (await operator.ask("clients", sort=sort))["total"] == 3


async def test_a_client_is_shown_with_its_subscriptions_and_what_waits(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    where = Properties(user_properties=(("$where", "payload.value > 20"),))
    properties = Properties(topic_alias_maximum=5)
    client = await clients.connect("c", properties=properties)
    await client.subscribe("sensors/#", 1, where, no_local=True)
    await client.subscribe("plain")
    for value in (10, 30, 31):
        topic, payload = "sensors/boiler/temperature", b'{"value":%d}' % value
        await operator.client.send(Publish(topic, payload))
    for _ in range(2):
        await client.receive()
    answer = await operator.ask("client", id="c", seconds=0.01)
    assert answer["client"]["subscriptions"] == 2
    filtered, plain = sorted(answer["subscriptions"], key=lambda each: "where" not in each)
    assert filtered["where"] == "payload.value > 20"
    assert (filtered["messages"], filtered["evaluated"], filtered["passed"]) == (3, 2, 2)
    assert filtered["no_local"] is True
    assert plain == {"filter": "plain", "qos": 0}
    assert answer["aliases"] == {"maximum": 5, "used": 1, "hits": 1}
    assert (answer["ends"], answer["oldest_seconds"]) == ([], None)
    assert "there is no client or session 'x'" in await operator.refused("client", id="x")


async def test_what_waits_for_who_is_away_is_told(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    await leave(clients, gateway, "away", "a/#")
    for _ in range(3):
        await operator.client.send(Publish("a/b", b"12345"))
    publisher = await clients.connect("p")
    for number in range(1, 4):
        await publisher.send(Publish("a/b", b"12345", 1, packet_id=number))
        await publisher.receive()
    answer = await operator.ask("client", id="away")
    assert answer["client"]["waiting"] == 3
    assert answer["client"]["waiting_bytes"] > 15
    assert answer["oldest_seconds"] >= 0
    assert (answer["aliases"], answer["held_back"]) == (None, 0)
    (end,) = answer["ends"]
    assert end["reason"] == "DISCONNECT"


async def test_a_client_is_disconnected_and_told_by_whom_and_why(
    gateway: Gateway, operator: Operator, clients: Clients, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    client = await clients.connect("c")
    old = await clients.connect("old", MQTT_3_1_1)
    assert (await operator.ask("client/disconnect", id="c"))["address"].startswith("127.0.0.1:")
    (packet,) = await client.until_closed()
    assert isinstance(packet, Disconnect)
    assert packet.reason_code == ReasonCode.ADMINISTRATIVE_ACTION
    assert packet.properties.reason_string == "disconnected by an operator"
    await operator.ask("client/disconnect", id="old", reason="too loud")
    assert await old.until_closed() == []
    await until(lambda: "old" not in gateway.broker.clients)
    assert "too loud, requested by client 'operator'" in caplog.text
    assert "'c' is not connected" in await operator.refused("client/disconnect", id="c")
    (end,) = (await operator.ask("client", id="old"))["ends"]
    assert end["reason"] == "too loud (0x98)"


async def test_a_session_is_dropped_with_what_waits_and_its_will(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    await leave(clients, gateway, "away", "a/#")
    publisher = await clients.connect("p")
    await publisher.send(Publish("a/b", b"1", 1, packet_id=1))
    await publisher.receive()
    assert (await operator.ask("session/drop", id="away"))["messages"] == 1
    assert "away" not in gateway.broker.sessions
    here = await clients.connect("here", properties=AWAY)
    await operator.ask("session/drop", id="here")
    (packet,) = await here.until_closed()
    assert isinstance(packet, Disconnect)
    assert packet.properties.reason_string == "its session is dropped"
    assert "here" not in gateway.broker.sessions
    clean = await clients.connect("clean")
    await operator.ask("session/drop", id="clean")
    await clean.until_closed()
    assert "there is no session 'here'" in await operator.refused("session/drop", id="here")


async def test_two_devices_with_one_identifier_are_noticed(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    for _ in range(3):
        await clients.connect("twin")
    assert not (await operator.ask("client", id="twin"))["client"]["shared_identifier"]
    await clients.connect("twin")
    answer = await operator.ask("client", id="twin")
    assert answer["client"]["shared_identifier"]
    assert {end["reason"] for end in answer["ends"]} == {
        "another connection has this client id (0x8E)"
    }


async def test_what_a_client_lost_is_told_by_cause(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    await leave(clients, gateway, "away", "a/#")
    session = gateway.broker.sessions["away"]
    session.queue.maximum_messages = 2
    publisher = await clients.connect("p")
    for number in range(1, 6):
        await publisher.send(Publish("a/b", b"1", 1, packet_id=number))
        await publisher.receive()
    drops = (await operator.ask("client", id="away"))["drops"]
    assert drops == {"newest": 3}


async def test_an_answer_has_only_as_many_subscriptions_as_it_has_room_for(
    gateway: Gateway, operator: Operator, clients: Clients
) -> None:
    client = await clients.connect("wordy")
    for number in range(40):
        assert await client.subscribe(f"{number}/" + "x" * 4_000) == 0
    answer = await operator.ask("client", id="wordy")
    assert answer["client"]["subscriptions"] == 40
    assert len(answer["subscriptions"]) == 16  # 64 KiB
