"""Refusals, lost connections and what the fleet's broker never answers."""

from pathlib import Path
from typing import Any

import pytest

import gateway.uplink.fleet.fleet as fleet_module
from gateway.mqtt.packets import ConnAck, Disconnect, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import OLD_CONNACK, FleetBroker, numbers_of
from tests.support.fleet.uplinks import EPOCH, add_rows, connected, running, uplink_settings


@pytest.mark.parametrize("code", [0x83, 0x97])
async def test_a_passing_refusal_is_tried_again_after_a_while(
    store: Store, fleet_broker: FleetBroker, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(fleet_module, "TICK_SECONDS", 0.05)
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        fleet_broker.puback = lambda _publish: ReasonCode(code)
        add_rows(store, 1, 3)
        await until(lambda: store.counters.count("tidegate/uplink/refused") == 3)
        error = store.counters.values["tidegate/uplink/error"]
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        add_rows(store, 4, 5)
        await until(lambda: store.outbox.writes.committed_id == 5)
        before = len(fleet_broker.data)  # live rows wait as well while it asks to be left alone
        await until(lambda: store.outbox.rows == 0)
        assert store.counters.values["tidegate/uplink/error"] == ""
    assert error == f"the fleet's broker accepts no more for now (0x{code:02X})"
    assert before == 3
    assert numbers_of(fleet_broker) == [1, 2, 3, 1, 2, 3, 4, 5]
    resent = ["resent" in dict(publish.properties.user_properties) for publish in fleet_broker.data]
    assert resent == [False] * 3 + [True] * 3 + [False] * 2
    assert store.rejected.rows == 0


@pytest.mark.parametrize("code", [0x87, 0x90, 0x99])
async def test_any_other_refusal_takes_the_row_out_of_the_way(
    store: Store, fleet_broker: FleetBroker, code: int
) -> None:
    fleet_broker.puback = lambda publish: ReasonCode(
        code if publish.payload == b'{"value":2}' else 0x10
    )
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 3)
        await until(lambda: store.outbox.rows == 0 and not store.outbox.writes.delivering.get(1))
    rows = await store.database.reader.query(
        "SELECT seq, code FROM rejected", (), lambda cursor: cursor.fetchall()
    )
    assert rows == [(2, code)]
    assert store.counters.count("tidegate/uplink/acknowledged") == 2
    assert store.counters.count("tidegate/uplink/refused") == 1


async def test_what_is_too_large_for_the_server_is_rejected_unsent(
    store: Store, fleet_broker: FleetBroker
) -> None:
    fleet_broker.connack = ConnAck(properties=Properties(maximum_packet_size=400))
    settings = uplink_settings(fleet_broker.port, retry_refused_for=0)
    async with running(store, settings) as uplink:
        await connected(uplink)
        add_rows(store, 1, 1)
        await until(lambda: len(fleet_broker.data) == 1)
        # The fixed header has a byte more for a length of 128 and above.
        [small] = fleet_broker.data
        overhead = len(small.topic) + len(f"seq{EPOCH}.main.1time1763740000001") + 10 + 2 + 2 + 1
        exact = 400 - overhead - 1 - 2
        add_rows(store, 2, 2, payload=bytes(exact))
        add_rows(store, 3, 3, payload=bytes(exact + 1))
        add_rows(store, 4, 4, topic="t" * 65_530)
        await until(lambda: store.outbox.rows == 0)
        await store.settle()
    assert numbers_of(fleet_broker) == [1, 2]
    rows = await store.database.reader.query(
        "SELECT seq, code FROM rejected", (), lambda cursor: cursor.fetchall()
    )
    assert rows == [(3, 0x95), (4, 0x90)]


async def test_what_is_too_large_for_now_is_said_while_it_waits(
    store: Store, fleet_broker: FleetBroker
) -> None:
    fleet_broker.connack = ConnAck(properties=Properties(maximum_packet_size=400))

    def error() -> object:
        return store.counters.values["tidegate/uplink/error"]

    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 1)
        add_rows(store, 2, 3, payload=bytes(400))
        await until(lambda: error() == "refused for now and tried again: 2 messages (0x95)")
        assert (uplink.state, numbers_of(fleet_broker)) == ("connected", [1])
        fleet_broker.connack = ConnAck()
        fleet_broker.drop()
        await until(lambda: store.outbox.rows == 0)
        await until(lambda: error() == "")


async def test_a_topic_that_the_prefix_makes_too_long_is_rejected(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 1, topic="t" * 65_530)
        add_rows(store, 2, 2)
        await until(lambda: store.outbox.rows == 0)
    assert numbers_of(fleet_broker) == [2]
    assert store.rejected.rows == 1


async def test_a_lost_connection_sends_again_what_had_no_puback(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        fleet_broker.puback = lambda publish: (
            ReasonCode.SUCCESS if publish.payload == b'{"value":1}' else None
        )
        add_rows(store, 1, 3)
        await until(lambda: len(fleet_broker.data) == 3 and store.outbox.rows == 2)
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        fleet_broker.drop()
        await until(lambda: uplink.state == "disconnected")
        error = str(store.counters.values["tidegate/uplink/error"])
        await until(lambda: store.outbox.rows == 0)
    assert "is lost" in error
    assert numbers_of(fleet_broker) == [1, 2, 3, 2, 3]
    assert store.counters.count("tidegate/uplink/reconnects") == 1
    assert store.counters.count("tidegate/uplink/resent") == 2


async def test_a_puback_that_does_not_come_ends_the_connection(
    store: Store, fleet_broker: FleetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "TICK_SECONDS", 0.05)
    settings = uplink_settings(fleet_broker.port, puback_timeout=0.2)
    async with running(store, settings) as uplink:
        await connected(uplink)
        fleet_broker.puback = lambda _publish: None
        add_rows(store, 1, 1)
        await until(lambda: uplink.state == "disconnected")
        assert store.counters.values["tidegate/uplink/error"] == (
            "a PUBACK of the fleet's broker is overdue"
        )
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        await until(lambda: store.outbox.rows == 0)


@pytest.mark.parametrize(
    ("connack", "raw", "error", "lasting"),
    [
        (ConnAck(), OLD_CONNACK, "does not speak MQTT 5", True),
        (ConnAck(reason_code=ReasonCode.UNSUPPORTED_PROTOCOL_VERSION), None, "MQTT 5", True),
        (ConnAck(reason_code=ReasonCode.NOT_AUTHORIZED), None, "Not authorized (0x87)", False),
        (ConnAck(properties=Properties(maximum_qos=0)), None, "supports QoS 0 only", True),
        (ConnAck(), b"\x20\x7f", "speak MQTT 5?", False),
    ],
    ids=["3.1.1", "0x84", "0x87", "QoS 0", "cut"],
)
async def test_a_refused_connection_says_why(
    store: Store,
    fleet_broker: FleetBroker,
    connack: ConnAck,
    raw: bytes | None,
    error: str,
    lasting: bool,
) -> None:
    fleet_broker.connack = connack
    fleet_broker.raw_connack = raw
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        if raw is not None and raw != OLD_CONNACK:
            await until(lambda: len(fleet_broker.connects) == 1)
            fleet_broker.drop()
        await until(lambda: uplink.state == "disconnected")
        assert error in str(store.counters.values["tidegate/uplink/error"])
        fleet_broker.connack, fleet_broker.raw_connack = ConnAck(), None
        if not lasting:
            await until(lambda: uplink.state == "connected")
    assert (fleet_broker.connections == 1) == lasting


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (ReasonCode.SERVER_BUSY, "Server busy (0x89)"),
        (ReasonCode.MESSAGE_RATE_TOO_HIGH, "Message rate too high (0x96)"),
    ],
)
async def test_a_server_that_ends_the_connection_is_quoted(
    store: Store, fleet_broker: FleetBroker, code: ReasonCode, name: str
) -> None:
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        fleet_broker.puback = lambda _publish: None
        add_rows(store, 1, 2)
        await until(lambda: len(fleet_broker.data) == 2)
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        fleet_broker.send(Disconnect(code))
        await until(lambda: uplink.state == "disconnected")
        assert store.counters.values["tidegate/uplink/error"] == (
            f"the fleet's broker ended the connection: {name}"
        )
        await until(lambda: store.outbox.rows == 0)
    assert numbers_of(fleet_broker) == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"url": "mqtt://127.0.0.1:1"}, "127.0.0.1:1: [Errno 111]"),
        ({"username": "u", "password_file": Path("/nowhere/password")}, "/nowhere/password"),
        ({"url": "mqtts://127.0.0.1:1", "ca_file": Path("/nowhere/ca")}, "No such file"),
        ({"url": "mqtt://no..such..host.invalid"}, "no..such..host.invalid:1883"),
    ],
)
async def test_what_stands_in_the_way_of_a_connection_is_said(
    store: Store, fleet_broker: FleetBroker, fields: dict[str, Any], error: str
) -> None:
    async with running(store, uplink_settings(fleet_broker.port, **fields)) as uplink:
        await until(lambda: uplink.state == "disconnected")
        assert error in str(store.counters.values["tidegate/uplink/error"])


async def test_some_pubacks_that_never_come_hold_nothing_up(
    store: Store, fleet_broker: FleetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third of the messages is swallowed, on one connection after the other."""
    monkeypatch.setattr(fleet_module, "TICK_SECONDS", 0.02)
    taken: list[int] = []

    def answer(publish: Publish) -> ReasonCode | None:
        if "/data/" not in publish.topic:
            return ReasonCode.SUCCESS
        number = int(dict(publish.properties.user_properties)["seq"].rpartition(".")[2])
        if (number + fleet_broker.connections) % 3 == 0:
            return None
        taken.append(number)
        return ReasonCode.SUCCESS

    fleet_broker.puback = answer
    add_rows(store, 1, 60)
    await store.settle()
    settings = uplink_settings(fleet_broker.port, puback_timeout=0.5, window=20)
    async with running(store, settings) as uplink:
        await until(lambda: store.outbox.rows == 0)
        add_rows(store, 61, 61)
        await until(lambda: store.outbox.rows == 0)
        assert uplink.state == "connected"
    assert sorted(set(taken)) == [*range(1, 62)]
    assert len(taken) < 61 + 20  # only what was answered while the connection ended comes twice
