"""What the keys of a link change: ALPN, Keep Alive, bounds, notifications, credentials."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from gateway.mqtt.packets import ConnAck
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.uplink import NotificationSettings, ReconnectSettings
from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.fleet.uplinks import add_rows, connected, make_uplink, running, uplink_settings
from tests.support.processes.certificates import Authority
from tests.support.processes.mosquitto import Mosquitto


@pytest.mark.parametrize("alpn", [(), ("x-amzn-mqtt-ca",), ("mqtt", "x-amzn-mqtt-ca")])
async def test_alpn_is_named_in_the_handshake(
    store: Store, tmp_path: Path, alpn: tuple[str, ...]
) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    context.set_alpn_protocols(["x-amzn-mqtt-ca"])
    broker = FleetBroker()
    await broker.start(context)
    chosen: list[str | None] = []
    serve = broker._take

    def take(packet: object, connection: object, writer: asyncio.StreamWriter) -> None:
        chosen.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        serve(packet, connection, writer)  # type: ignore[arg-type]  # as it came

    broker._take = take  # type: ignore[method-assign]  # to see what it chose
    settings = uplink_settings(
        url=f"mqtts://localhost:{broker.port}", ca_file=authority.ca_file, alpn=alpn
    )
    async with running(store, settings) as uplink:
        await connected(uplink)
    assert chosen[0] == ("x-amzn-mqtt-ca" if alpn else None)
    await broker.stop()


async def test_keep_alive_is_asked_for(store: Store, fleet_broker: FleetBroker) -> None:
    async with running(store, uplink_settings(fleet_broker.port, keep_alive=1_200)) as uplink:
        await connected(uplink)
    assert fleet_broker.connects[0].keep_alive == 1_200


async def test_the_wait_between_attempts_is_bounded(store: Store) -> None:
    uplink = make_uplink(
        store, uplink_settings(1, reconnect=ReconnectSettings(5.0, 20.0)), jitter=1.0
    )
    assert [uplink._backoff.delay() for _ in range(4)] == [5.0, 10.0, 20.0, 20.0]


async def test_a_bound_of_packets_holds_where_the_broker_says_none(
    store: Store, fleet_broker: FleetBroker
) -> None:
    settings = uplink_settings(
        fleet_broker.port, maximum_packet_size_out=2_000, retry_refused_for=0
    )
    add_rows(store, 1, 1, payload=bytes(3_000))
    add_rows(store, 2, 2)
    async with running(store, settings):
        await until(lambda: store.outbox.rows == 0)
    assert len(fleet_broker.data) == 1
    assert store.rejected.rows == 1


async def test_a_token_file_is_read_again_for_each_connection(
    store: Store, tmp_path: Path, fleet_broker: FleetBroker
) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    quick = ReconnectSettings(0.1, 0.1)
    settings = uplink_settings(fleet_broker.port, password_file=str(token), reconnect=quick)
    async with running(store, settings) as uplink:
        await connected(uplink)
        token.write_text("new\n")
        fleet_broker.connack = ConnAck(reason_code=ReasonCode.NOT_AUTHORIZED)
        fleet_broker.drop()
        await until(lambda: uplink.state == "disconnected")
        fleet_broker.connack = ConnAck()
        await connected(uplink)
    assert {each.password for each in fleet_broker.connects[1:]} == {b"new"}
    assert fleet_broker.connects[0].password == b"old"


@pytest.mark.mosquitto
@pytest.mark.parametrize("mqtt", ["5", "3.1.1"])
@pytest.mark.parametrize("retain", [True, False])
async def test_notifications_say_whether_the_link_is_up(
    store: Store, tmp_path: Path, mqtt: str, retain: bool
) -> None:
    fleet = Mosquitto(tmp_path)
    await asyncio.to_thread(fleet.start)
    watcher = await asyncio.to_thread(FleetCollector, fleet.port, "links/#", "watcher")
    settings = uplink_settings(
        fleet.port,
        reports=False,
        plain=True,
        mqtt=mqtt,
        notifications=NotificationSettings("links/{gateway}", "up", "down", retain=retain),
    )
    async with running(store, settings) as uplink:
        await connected(uplink)
        await until(lambda: len(watcher.received) == 1)
    await until(lambda: len(watcher.received) == 2)
    said = [(each.topic, each.payload, each.retain) for each in watcher.received]
    assert said == [("links/barn", b"up", retain), ("links/barn", b"down", retain)]
    watcher.close()
    fleet.kill()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "reports = false sends none"),
        ({"reports": False}, "(does the fleet's broker speak MQTT 5?)"),
        (
            {"reports": False, "notifications": NotificationSettings("a")},
            "[uplink.notifications] retain = false sends none",
        ),
    ],
)
async def test_what_a_broker_may_refuse_that_says_nothing_is_told(
    store: Store, fleet_broker: FleetBroker, keys: dict[str, Any], said: str
) -> None:
    fleet_broker.raw_connack = b""
    settings = uplink_settings(fleet_broker.port, **keys)
    async with running(store, settings) as uplink:
        await until(lambda: fleet_broker.connections > 0)
        fleet_broker.drop()
        await until(lambda: said in uplink.error)
