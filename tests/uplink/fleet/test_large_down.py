"""What comes down and is larger than this side takes: left out, said, and in nobody's way."""

import asyncio
from collections.abc import Callable

import pytest

import gateway.uplink.uplink as uplink_module
from gateway.mqtt.codec.encode import encode
from gateway.mqtt.packets import MQTT_3_1_1, ConnAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.where.evaluation.message import Message
from gateway.storage.state.down_seen import DownSeen
from gateway.uplink.down import Down, DownRule
from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.uplinks import add_rows, connected, running, uplink_settings
from tests.support.ports import free_port

SMALL = 300_000


async def _down(store: Store, taken: list[Message]) -> Down:
    seen = DownSeen(store.database, store.writer)
    await seen.load()

    def publish(message: Message) -> ReasonCode:
        taken.append(message)
        return ReasonCode.SUCCESS

    def at_once(call: Callable[[], None]) -> None:
        call()

    return Down(
        "barn",
        [DownRule("all/#", "{2+}")],
        seen,
        store.counters,
        publish=publish,
        when_on_disk=at_once,
        later=lambda _seconds, _call: None,
    )


async def test_a_message_that_comes_with_each_connection_does_not_end_the_link(
    store: Store,
    fleet_broker: FleetBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker that does not heed the Maximum Packet Size sends it whenever we connect."""
    monkeypatch.setattr(uplink_module, "RECONNECT_FIRST", 0.05)
    taken: list[Message] = []
    async with running(store, uplink_settings(fleet_broker.port, maximum_packet_size=SMALL)) as up:
        up.requests.down = await _down(store, taken)
        for connection in (1, 2):
            await until(lambda: len(fleet_broker.connects) == connection)  # noqa: B023 - awaited
            await connected(up)
            fleet_broker.send(Publish("all/large", bytes(SMALL), 1, retain=True, packet_id=1))
            fleet_broker.send(Publish("all/fits", bytes(270_000), 1, packet_id=2))
            await until(lambda: len(taken) == connection)  # noqa: B023 - awaited
            add_rows(store, connection, connection)
            await until(lambda: len(fleet_broker.data) == connection)  # noqa: B023 - awaited
            fleet_broker.drop()
    said = fleet_broker.connects[0].properties.maximum_packet_size
    assert (said, store.counters.count("tidegate/uplink/down_too_large")) == (SMALL, 2)
    assert [message.topic for message in taken] == ["fits", "fits"]
    assert "'all/large' did not come down from mqtt://127.0.0.1" in caplog.text
    assert f"it has {SMALL + 18} bytes; at most {SMALL}" in caplog.text


async def test_a_broker_of_mqtt_3_1_1_is_told_nothing_and_sends_it(store: Store) -> None:
    acknowledged = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if (await reader.read(65_536))[8] == MQTT_3_1_1:
                writer.write(encode(ConnAck(), MQTT_3_1_1))
                large = Publish("all/large", bytes(SMALL), 1, packet_id=7)
                writer.write(encode(large, MQTT_3_1_1))
                fits = Publish("all/fits", b"1", 1, packet_id=8)
                writer.write(encode(fits, MQTT_3_1_1))
                while data := await reader.read(65_536):
                    acknowledged.extend(data)
            else:
                writer.write(b"\x20\x02\x00\x01")
        finally:
            writer.close()

    port, taken = free_port(), list[Message]()
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    settings = uplink_settings(port, maximum_packet_size=SMALL, plain=True, down=True)
    async with running(store, settings) as up:
        up.requests.down = await _down(store, taken)
        await until(lambda: b"\x40\x02\x00\x08" in acknowledged)
    assert b"\x40\x02\x00\x07" in acknowledged
    assert [message.topic for message in taken] == ["fits"]
    assert store.counters.count("tidegate/uplink/down_too_large") == 1
    server.close()
