"""Batches on their way to a fleet's broker, of MQTT 5 and of MQTT 3.1.1."""

import json
import zlib
from typing import Any

import pytest

import gateway.uplink.fleet.fleet as fleet_module
from gateway.mqtt.packets import ConnAck, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from pipeline.records.batch import read_batch
from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.uplinks import add_rows, connected, running, uplink_settings

BATCH = "tidegate/barn/batch"
SOON: dict[str, Any] = {"batch": "zlib", "batch_messages": 10, "batch_delay": 0.05}


def _numbers(publish: Publish) -> list[int]:
    return [int(str(record["seq"])) for record in read_batch(publish.payload, "barn", 0)]


def _batches(fleet_broker: FleetBroker) -> list[list[int]]:
    return [_numbers(each) for each in fleet_broker.publishes if each.topic == BATCH]


async def test_rows_go_up_together_in_order_and_leave_together(
    store: Store, fleet_broker: FleetBroker
) -> None:
    add_rows(store, 1, 25)
    await store.settle()
    async with running(store, uplink_settings(fleet_broker.port, **SOON)) as uplink:
        await connected(uplink)
        await until(lambda: store.outbox.rows == 0)
        add_rows(store, 26, 27)
        await until(lambda: store.outbox.rows == 0)
    assert _batches(fleet_broker) == [
        [*range(1, 11)], [*range(11, 21)], [*range(21, 26)], [26, 27],
    ]  # fmt: skip
    resent = [
        record["resent"]
        for publish in fleet_broker.publishes[1:]
        for record in read_batch(publish.payload, "barn", 0)
    ]
    assert resent == [True] * 25 + [False] * 2
    counts = {name: store.counters.count(f"tidegate/uplink/{name}") for name in (
        "sent", "resent", "acknowledged", "batches",
    )}  # fmt: skip
    assert counts == {"sent": 27, "resent": 0, "acknowledged": 27, "batches": 4}


async def test_bytes_bound_a_batch_and_large_messages_go_alone_in_their_place(
    store: Store, fleet_broker: FleetBroker
) -> None:
    limits: dict[str, Any] = {"batch_messages": 100, "batch_bytes": 2_000, "batch_delay": 0.05}
    add_rows(store, 1, 20)
    add_rows(store, 21, 21, payload=bytes(2_000))
    add_rows(store, 22, 24)
    await store.settle()
    async with running(store, uplink_settings(fleet_broker.port, batch="zlib", **limits)):
        await until(lambda: store.outbox.rows == 0)
    order: list[int] = []
    for publish in fleet_broker.publishes[1:]:
        if publish.topic == BATCH:
            assert len(zlib.decompress(publish.payload[1:])) <= 2_000
            order += _numbers(publish)
        else:
            order.append(int(dict(publish.properties.user_properties)["seq"].split(".")[2]))
    assert order == [*range(1, 25)]
    assert len(fleet_broker.data) == 1


async def test_a_batch_waits_for_more_no_longer_than_its_delay(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(
        store, uplink_settings(fleet_broker.port, batch="zlib", batch_delay=0.3)
    ) as uplink:
        await connected(uplink)
        add_rows(store, 1, 1)
        await store.settle()
        add_rows(store, 2, 2)
        await until(lambda: store.outbox.rows == 0)
    assert _batches(fleet_broker) == [[1, 2]]


@pytest.mark.parametrize("receive_maximum", [1, 2])
async def test_a_batch_is_one_message_to_the_servers_window(
    store: Store, fleet_broker: FleetBroker, receive_maximum: int
) -> None:
    fleet_broker.connack = ConnAck(properties=Properties(receive_maximum=receive_maximum))
    fleet_broker.puback = lambda _publish: None
    add_rows(store, 1, 100)
    await store.settle()
    async with running(store, uplink_settings(fleet_broker.port, window=5, **SOON)) as uplink:
        await until(lambda: fleet_broker.unacknowledged == receive_maximum)
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        for publish in list(fleet_broker.publishes):
            fleet_broker.acknowledge(publish, ReasonCode.SUCCESS)
        await until(lambda: store.outbox.rows == 0)
        assert uplink.state == "connected"
    assert fleet_broker.most_unacknowledged == receive_maximum


async def test_a_batch_that_is_refused_for_good_is_taken_apart(
    store: Store, fleet_broker: FleetBroker
) -> None:
    def answer(publish: Publish) -> ReasonCode:
        bad = publish.topic == BATCH or publish.payload == b'{"value":2}'
        return ReasonCode.NOT_AUTHORIZED if bad else ReasonCode.SUCCESS

    fleet_broker.puback = answer
    async with running(store, uplink_settings(fleet_broker.port, **SOON)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 3)
        await until(lambda: store.outbox.rows == 0)
    assert _batches(fleet_broker) == [[1, 2, 3]]
    assert [publish.payload for publish in fleet_broker.data] == [
        b'{"value":%d}' % number for number in (1, 2, 3)
    ]
    assert store.rejected.rows == 1


async def test_a_batch_that_is_refused_for_now_goes_again(
    store: Store, fleet_broker: FleetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "TICK_SECONDS", 0.05)
    async with running(store, uplink_settings(fleet_broker.port, **SOON)) as uplink:
        await connected(uplink)
        fleet_broker.puback = lambda _publish: ReasonCode.QUOTA_EXCEEDED
        add_rows(store, 1, 3)
        await until(lambda: store.counters.count("tidegate/uplink/refused") == 1)
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        await until(lambda: store.outbox.rows == 0)
    assert _batches(fleet_broker) == [[1, 2, 3]] * 2
    again = read_batch(fleet_broker.publishes[-1].payload, "barn", 0)
    assert all(record["resent"] for record in again)


async def test_a_batch_is_no_larger_than_the_server_takes(
    store: Store, fleet_broker: FleetBroker
) -> None:
    fleet_broker.connack = ConnAck(properties=Properties(maximum_packet_size=2_048))
    add_rows(store, 1, 200)
    await store.settle()
    async with running(store, uplink_settings(fleet_broker.port, batch="zlib")):
        await until(lambda: store.outbox.rows == 0)
    batches = _batches(fleet_broker)
    assert [number for batch in batches for number in batch] == [*range(1, 201)]
    assert all(
        len(zlib.decompress(publish.payload[1:])) < 2_048
        for publish in fleet_broker.publishes
        if publish.topic == BATCH
    )


@pytest.mark.parametrize("fields", [{}, {"payload": bytes(70_000)}, {"qos": 0, "retain": True}])
async def test_mqtt_3_1_1_will_do_with_batches(
    store: Store, fleet_broker: FleetBroker, fields: dict[str, Any]
) -> None:
    fleet_broker.speaks_5 = False
    add_rows(store, 1, 3, **fields)
    await store.settle()
    async with running(store, uplink_settings(fleet_broker.port, **SOON)) as uplink:
        await connected(uplink)
        await until(lambda: store.outbox.rows == 0)
    assert [connect.protocol_version for connect in fleet_broker.connects] == [5, 4]
    status, *others = fleet_broker.publishes
    assert (status.topic, status.retain) == ("tidegate/barn/status", True)
    assert json.loads(status.payload)["state"] == "online"
    assert {publish.topic for publish in others} == {BATCH}
    assert [number for batch in _batches(fleet_broker) for number in batch] == [1, 2, 3]
    assert fleet_broker.disconnects == []  # one would discard the will


async def test_a_broker_that_speaks_neither_is_asked_for_both_in_turn(
    store: Store, fleet_broker: FleetBroker
) -> None:
    fleet_broker.raw_connack = b"\x20\x02\x00\x01"
    async with running(store, uplink_settings(fleet_broker.port, **SOON)) as uplink:
        await until(lambda: len(fleet_broker.connects) == 3)
        assert uplink.state in ("connecting", "disconnected")
    assert [connect.protocol_version for connect in fleet_broker.connects] == [5, 4, 5]
