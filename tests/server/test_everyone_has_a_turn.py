"""One client that sends more than is handled at once."""

import pytest

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_5, Disconnect, PingReq, PingResp, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server import transport as transport_module
from tests.support.disk.storage import until
from tests.support.places import Place
from tests.support.processes.server import Server

PINGS = 20_000
"""Many more than are handled at once, in fewer bytes than are read at once."""

FLOOD = encode(PingReq(), MQTT_5) * PINGS


@pytest.fixture(autouse=True)
def _no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let others have their turn as soon as they may."""
    monkeypatch.setattr(transport_module, "HANDLING", 0.0)


@pytest.mark.uncovered
async def test_others_are_answered_meanwhile(held: Server) -> None:
    client = await held.clients.connect("c")
    other = await held.clients.connect("other")
    connection = held.broker.clients["c"].connection
    await client.send_bytes(FLOOD)
    await until(lambda: connection.packets_received > 1)
    assert not await other.waiting()
    assert connection.packets_received < PINGS
    for _ in range(PINGS):
        assert await client.receive() == PingResp()
    assert not await client.waiting()


@pytest.mark.uncovered
async def test_what_is_behind_comes_in_order(place: Place) -> None:
    subscriber = await place.connect("s")
    await subscriber.subscribe("#")
    client = await place.connect("c")
    messages = [Publish("ab"[number % 2], b"%d" % number) for number in range(600)]
    for _ in range(3):
        await client.send_bytes(b"".join(encode(each, MQTT_5) for each in messages))
    for message in messages * 3:
        assert await subscriber.receive() == message
    await client.subscribe("b", 2)  # it is read again


@pytest.mark.uncovered
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_what_came_before_the_connection_was_lost_is_handled(held: Server, how: str) -> None:
    watcher = await held.clients.connect("watcher")
    await watcher.subscribe("a")
    client = await held.clients.connect("c")
    connection = held.broker.clients["c"].connection
    await client.send_bytes(FLOOD + encode(Publish("a", b"last"), MQTT_5))
    await until(lambda: connection.packets_received > 1)
    if how == "reset":
        client.reset()
    else:
        await client.close()
    assert await watcher.receive() == Publish("a", b"last")
    await until(lambda: list(held.broker.clients) == ["watcher"])
    assert len(held.broker.connections) == 1


@pytest.mark.uncovered
async def test_a_mistake_in_the_midst_ends_the_connection_in_order(held: Server) -> None:
    client = await held.clients.connect("c")
    await client.send_bytes(FLOOD + b"\xf0\x00" + FLOOD)
    packets = await client.until_closed()
    assert packets[:-1] == [PingResp()] * PINGS
    assert isinstance(packets[-1], Disconnect)
    await client.close()
    await until(lambda: not held.broker.connections)
    assert held.broker.counters.count("tidegate/connections/aborted") == 0


async def test_a_client_that_is_ended_meanwhile_is_heard_no_more(held: Server) -> None:
    watcher = await held.clients.connect("watcher")
    await watcher.subscribe("a")
    client = await held.clients.connect("c")
    connection = held.broker.clients["c"].connection
    await client.send_bytes(FLOOD + encode(Publish("a", b"last"), MQTT_5))
    await until(lambda: connection.packets_received > 1)
    held.broker.clients["c"].disconnect(ReasonCode.ADMINISTRATIVE_ACTION)
    await client.until_closed()
    await client.close()
    await until(lambda: list(held.broker.clients) == ["watcher"])
    assert not await watcher.waiting()
