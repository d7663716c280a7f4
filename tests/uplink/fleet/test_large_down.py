"""What comes down and is larger than this side takes: left out, said, and in nobody's way."""

import asyncio
from dataclasses import dataclass, field

import pytest

import gateway.uplink.down as down_module
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_3_1_1, ConnAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.state.uplink_state import DownSeen
from gateway.uplink.down import Down, DownRule
from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.reconnecting import reconnect_after
from tests.support.fleet.uplinks import add_rows, connected, running, uplink_settings
from tests.support.ports import free_port

SMALL = 300_000


@dataclass
class Here:
    """The local broker: it takes messages, or says why not."""

    code: ReasonCode = ReasonCode.SUCCESS
    taken: list[Message] = field(default_factory=list)

    def publish(self, message: Message, _forced: bool) -> ReasonCode:
        if self.code is ReasonCode.SUCCESS:
            self.taken.append(message)
        return self.code

    async def down(self, store: Store) -> Down:
        """Return the way down to here."""
        seen = DownSeen(store.database, store.writer)
        await seen.load()
        return Down(
            "barn",
            [DownRule("all/#", "{2+}")],
            seen,
            store.counters,
            publish=self.publish,
            when_on_disk=lambda call: call(),
            later=asyncio.get_running_loop().call_later,
        )


async def test_a_message_that_comes_with_each_connection_does_not_end_the_link(
    store: Store,
    fleet_broker: FleetBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker that does not heed the Maximum Packet Size sends it whenever we connect."""
    reconnect_after(monkeypatch, 0.05)
    here = Here()
    async with running(store, uplink_settings(fleet_broker.port, maximum_packet_size=SMALL)) as up:
        up.requests.down = await here.down(store)
        for connection in (1, 2):
            await until(lambda: len(fleet_broker.connects) == connection)  # noqa: B023 - awaited
            await connected(up)
            fleet_broker.send(Publish("all/large", bytes(SMALL), 1, retain=True, packet_id=1))
            fleet_broker.send(Publish("all/fits", bytes(270_000), 1, packet_id=2))
            await until(lambda: len(here.taken) == connection)  # noqa: B023 - awaited
            add_rows(store, connection, connection)
            await until(lambda: len(fleet_broker.data) == connection)  # noqa: B023 - awaited
            fleet_broker.drop()
    said = fleet_broker.connects[0].properties.maximum_packet_size
    assert (said, store.counters.count("tidegate/uplink/down_too_large")) == (SMALL, 2)
    assert [message.topic for message in here.taken] == ["fits", "fits"]
    assert "'all/large' was not received from mqtt://127.0.0.1" in caplog.text
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

    port, here = free_port(), Here()
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    settings = uplink_settings(port, maximum_packet_size=SMALL, plain=True, down=True)
    async with running(store, settings) as up:
        up.requests.down = await here.down(store)
        await until(lambda: b"\x40\x02\x00\x08" in acknowledged)
    assert b"\x40\x02\x00\x07" in acknowledged
    assert [message.topic for message in here.taken] == ["fits"]
    assert store.counters.count("tidegate/uplink/down_too_large") == 1
    server.close()


async def test_its_own_status_is_no_message_for_it(
    store: Store,
    fleet_broker: FleetBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After a connection that ended without a reason it subscribes to the status for a moment."""
    reconnect_after(monkeypatch, 0.05)
    here = Here()
    async with running(store, uplink_settings(fleet_broker.port)) as up:
        up.requests.down = await here.down(store)
        await connected(up)
        status = fleet_broker.publishes[0].payload
        fleet_broker.drop()
        await until(lambda: len(fleet_broker.connects) == 2)
        await connected(up)
        for _ in range(2):  # what was retained, and what the gateway publishes now
            fleet_broker.send(Publish("tidegate/barn/status", status))
        fleet_broker.send(Publish("all/fits", b"1", 1, packet_id=1))
        await until(lambda: len(here.taken) == 1)
    assert store.counters.count("tidegate/uplink/down_dropped") == 0
    assert "no [[uplink.down]] matches" not in caplog.text


async def test_what_was_left_with_the_fleet_is_fetched_by_a_new_connection(
    store: Store,
    fleet_broker: FleetBroker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reconnect_after(monkeypatch, 0.05)
    monkeypatch.setattr(down_module, "MAXIMUM_WAITING", 1)
    monkeypatch.setattr(down_module, "RETRY_SECONDS", 0.05)
    here = Here()
    async with running(store, uplink_settings(fleet_broker.port, session_expiry=60)) as up:
        up.requests.down = await here.down(store)
        here.code = ReasonCode.QUOTA_EXCEEDED
        await connected(up)
        for packet_id in (1, 2):
            fleet_broker.send(Publish("all/x", b"%d" % packet_id, 1, packet_id=packet_id))
        await until(lambda: store.counters.count("tidegate/uplink/down_deferred") == 1)
        pace = store.counters.values["tidegate/uplink/backlog_messages_per_second"]
        here.code = ReasonCode.SUCCESS
        await until(lambda: len(fleet_broker.connects) == 2)
        await connected(up)
        fleet_broker.send(Publish("all/x", b"2", 1, packet_id=2, dup=True))
        await until(lambda: len(here.taken) == 2)
        assert store.counters.values["tidegate/uplink/backlog_messages_per_second"] == pace
    assert [message.payload for message in here.taken] == [b"1", b"2"]
