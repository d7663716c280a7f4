"""Whether all is well, as far as the gateway knows."""

import pytest

from gateway.mqtt.packets import Publish
from tests.app.query.test_queues import publish
from tests.support.disk.storage import until
from tests.support.gateway_here import Gateway
from tests.support.operator import Operator
from tests.support.raw_client import Clients


async def test_all_is_well_until_something_is_not(gateway: Gateway, operator: Operator) -> None:
    await until(lambda: gateway.counters.values["tidegate/uplink/state"] == "connected")
    answer = await operator.ask("status")
    assert (answer["verdict"], answer["troubles"], answer["alarms"]) == ("well", [], [])
    (uplink,) = answer["uplinks"]
    assert (uplink["state"], uplink["waiting"]) == ("connected", 0)
    assert answer["outbox"] == {"messages": 0, "bytes": 0, "oldest_seconds": None}
    assert answer["clients"] == {"connected": 1, "offline": 0}
    assert answer["free_bytes"] > 0
    gateway.counters.set("tidegate/serial/boiler/state", "silent")
    gateway.counters.set("tidegate/serial/boiler/error", "nothing for 60 s")
    gateway.counters.set("tidegate/channels/jobs/state", "waiting")
    gateway.alarm("listener", "a file is gone")
    answer = await operator.ask("status")
    assert answer["verdict"] == "attention"
    assert answer["silent"] == [
        {"kind": "serial", "name": "boiler", "state": "silent", "error": "nothing for 60 s"}
    ]
    (alarm,) = answer["alarms"]
    assert (alarm["name"], alarm["text"]) == ("listener", "a file is gone")
    gateway.troubles.append(lambda: "the outbox is full")
    answer = await operator.ask("status")
    assert (answer["verdict"], answer["troubles"]) == ("trouble", ["the outbox is full"])


async def test_a_pause_wants_attention_and_says_what_waits(
    gateway: Gateway, operator: Operator
) -> None:
    await until(lambda: gateway.counters.values["tidegate/uplink/state"] == "connected")
    await operator.client.send(Publish("$CONTROL/tidegate/uplink", b"pause", 1, packet_id=99))
    await operator.client.receive()
    await until(lambda: gateway.counters.values["tidegate/uplink/state"] == "paused")
    await operator.client.send(Publish("orders/1", b"x", 1, packet_id=98))
    await operator.client.receive()
    answer = await operator.ask("status")
    assert (answer["verdict"], answer["uplinks"][0]["state"]) == ("attention", "paused")
    assert answer["outbox"]["messages"] == 1
    assert answer["outbox"]["oldest_seconds"] >= 0


async def test_a_channel_that_nobody_serves_is_stuck(
    gateway: Gateway, operator: Operator, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = await clients.connect("p")
    await publish(publisher, "work/1", b"1", b"2")
    assert (await operator.ask("status"))["channels_stuck"] == []
    monkeypatch.setattr("gateway.app.query.queries.STUCK_SECONDS", 0.0)
    (stuck,) = (await operator.ask("status"))["channels_stuck"]
    assert stuck == {
        "name": "jobs", "state": "open", "depth": 2, "inflight": 0, "consumers": 0,
        "oldest_seconds": stuck["oldest_seconds"],
    }  # fmt: skip
    consumer = await clients.connect("consumer")
    await consumer.subscribe("$share/jobs/work/#", 1)
    while not (found := await operator.ask("status"))["channels_stuck"][0]["inflight"]:
        pass
    (stuck,) = found["channels_stuck"]
    assert (stuck["depth"], stuck["inflight"], stuck["consumers"]) == (0, 2, 1)
    (row,) = (await operator.ask("queues", kind="channel"))["rows"]
    assert (row["depth"], row["inflight"]) == (0, 2)
    assert row["oldest_seconds"] is not None
