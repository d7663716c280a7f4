"""The fleet destination against a broker whose answers each test decides."""

from dataclasses import replace
from pathlib import Path

import pytest

import gateway.uplink.fleet.fleet as fleet_module
import gateway.uplink.fleet.inflight as inflight_module
from gateway.mqtt.packets import ConnAck, Disconnect
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.uplink.link.pacing import START_MESSAGES
from tests.support.disk.storage import Store, crash_image, open_store, outbox_row, until
from tests.support.fleet.fleet_broker import FleetBroker, numbers_of
from tests.support.fleet.uplinks import EPOCH, add_rows, connected, running, uplink_settings


async def test_a_message_goes_up_whole_and_its_row_ends_with_the_puback(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        store.outbox.add(
            outbox_row(
                17,
                qos=2,
                retain=True,
                payload=b"\x00\xff",
                content_type="text/plain",
                response_topic="answer/here",
                correlation_data=b"\x01\x02",
                payload_format=1,
                user_properties=(("site", "A"), ("seq", "mine"), ("site", "B")),
                client_id="sensor",
                username="ann",
            )
        )
        store.outbox.end_turn()
        await until(lambda: store.outbox.rows == 0 and not store.outbox.writes.delivering.get(1))
    [publish] = fleet_broker.data
    assert (publish.topic, publish.payload) == (
        "tidegate/barn/data/sensors/n1/temperature",
        b"\x00\xff",
    )
    assert (publish.qos, publish.retain) == (1, False)
    assert publish.properties == Properties(
        payload_format_indicator=1,
        content_type="text/plain",
        response_topic="answer/here",
        correlation_data=b"\x01\x02",
        user_properties=(
            ("seq", f"{EPOCH}.main.17"),
            ("time", "1763740000017"),
            ("was", "21"),
            ("site", "A"),
            ("seq", "mine"),
            ("site", "B"),
        ),
    )
    counters = store.counters
    assert counters.count("tidegate/uplink/sent") == 1
    assert counters.count("tidegate/uplink/acknowledged") == 1
    assert counters.count("tidegate/uplink/resent") == 0


async def test_the_connection_names_itself_and_leaves_its_status(
    store: Store, fleet_broker: FleetBroker, tmp_path: Path
) -> None:
    password_file = tmp_path / "password"
    password_file.write_text("secret\n")
    settings = uplink_settings(
        fleet_broker.port, username="barn", password_file=password_file, prefix="fleet"
    )
    async with running(store, settings) as uplink:
        await connected(uplink)
        await until(lambda: len(fleet_broker.publishes) == 1)
        destination = store.counters.values["tidegate/uplink/destination"]
    [connect] = fleet_broker.connects
    assert (connect.client_id, connect.keep_alive, connect.clean_start) == (
        "tidegate-barn",
        30,
        True,
    )
    assert (connect.username, connect.password) == ("barn", b"secret")
    assert connect.will is not None
    assert (connect.will.topic, connect.will.qos, connect.will.retain) == (
        "fleet/barn/status",
        1,
        True,
    )
    assert connect.will.payload == (
        b'{"state":"offline","epoch":"%s","version":"0.1.0"}' % EPOCH.encode()
    )
    [status] = fleet_broker.publishes
    assert (status.topic, status.qos, status.retain) == ("fleet/barn/status", 1, True)
    assert status.payload == connect.will.payload.replace(b"offline", b"online")
    assert destination == f"mqtt://127.0.0.1:{fleet_broker.port}"
    await until(lambda: len(fleet_broker.disconnects) == 1)
    assert fleet_broker.disconnects[0].reason_code == ReasonCode.DISCONNECT_WITH_WILL_MESSAGE


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("window", "receive_maximum", "most"), [(5, None, 5), (50, 3, 3), (2, 10, 2), (1, None, 1)]
)
async def test_the_window_is_ours_or_the_servers(
    store: Store, fleet_broker: FleetBroker, window: int, receive_maximum: int | None, most: int
) -> None:
    fleet_broker.connack = ConnAck(properties=Properties(receive_maximum=receive_maximum))
    fleet_broker.puback = lambda _publish: None
    settings = uplink_settings(fleet_broker.port, window=window)
    async with running(store, settings) as uplink:
        add_rows(store, 1, 60)
        await until(lambda: fleet_broker.unacknowledged == most)
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        fleet_broker.drop()
        await until(lambda: store.outbox.rows == 0)
        assert uplink.state == "connected"
    assert fleet_broker.most_unacknowledged == most


async def test_bytes_in_flight_are_bounded_too(
    store: Store, fleet_broker: FleetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflight_module, "MAX_INFLIGHT_BYTES", 2_500)
    monkeypatch.setattr(fleet_module, "DISCONNECT_SECONDS", 0.05)
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        inflight = "tidegate/uplink/inflight"
        await until(lambda: bool(fleet_broker.publishes) and not store.counters.values[inflight])
        fleet_broker.puback = lambda _publish: None
        add_rows(store, 1, 20, payload=bytes(1_000))
        await until(lambda: len(fleet_broker.data) == 3)
        assert store.counters.values[inflight] == 3


async def test_rows_whose_removal_is_not_on_disk_fill_the_window(
    store: Store, fleet_broker: FleetBroker, tmp_path: Path
) -> None:
    """Else a crash would repeat more than a window."""
    async with running(store, uplink_settings(fleet_broker.port, window=4)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 20)
        await until(lambda: store.outbox.writes.committed_id == 20)
        await store.database.writer.query("PRAGMA max_page_count = 1", (), list)
        store.writer.add("INSERT INTO node_frames VALUES ('x', 0, 0, 0, ?)", (bytes(100_000),))
        await until(lambda: store.writer.attempts.failing)
        await until(lambda: store.outbox.writes.delivering.get(1, 0) == 4)
        arrived = max(numbers_of(fleet_broker))
        again = await open_store(crash_image(tmp_path / "data", tmp_path / "crashed"))
        first, *_ = await again.outbox.fetch(0, 100)
        await again.close()
        assert arrived - first.seq + 1 <= 4
        await store.database.writer.query("PRAGMA max_page_count = 100000", (), list)
        await until(lambda: store.outbox.rows == 0)


async def test_live_rows_pass_the_backlog_and_each_lane_keeps_its_order(
    store: Store, fleet_broker: FleetBroker
) -> None:
    add_rows(store, 1, 30)
    await store.settle()
    fleet_broker.puback = lambda _publish: None
    async with running(store, uplink_settings(fleet_broker.port, window=10)) as uplink:
        await until(lambda: len(fleet_broker.publishes) == 10)
        add_rows(store, 31, 40)
        await until(lambda: store.outbox.writes.committed_id == 40)
        fleet_broker.puback = lambda _publish: ReasonCode.SUCCESS
        for publish in list(fleet_broker.publishes):
            fleet_broker.acknowledge(publish, ReasonCode.SUCCESS)
        await until(lambda: store.outbox.rows == 0)
        assert uplink.state == "connected"
    assert numbers_of(fleet_broker) == [*range(1, 10), *range(31, 41), *range(10, 31)]
    resent = [
        int(dict(publish.properties.user_properties)["seq"].rpartition(".")[2])
        for publish in fleet_broker.data
        if ("resent", "1") in publish.properties.user_properties
    ]
    assert resent == list(range(1, 31))
    assert store.counters.count("tidegate/uplink/resent") == 0  # each went up once


async def test_a_rule_can_put_rows_behind_live_ones(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(store, uplink_settings(fleet_broker.port, window=1)) as uplink:
        await connected(uplink)
        for seq in range(1, 11):
            store.outbox.add(outbox_row(seq, lane="live" if seq > 5 else "backlog"))
        store.outbox.end_turn()
        await until(lambda: store.outbox.rows == 0)
    assert numbers_of(fleet_broker) == [6, 7, 8, 9, 10, 1, 2, 3, 4, 5]
    assert store.counters.count("tidegate/uplink/resent") == 0


async def test_without_retain_at_the_server_the_status_is_not_retained(
    store: Store, fleet_broker: FleetBroker
) -> None:
    fleet_broker.connack = replace(fleet_broker.connack, properties=Properties(retain_available=0))
    async with running(store, uplink_settings(fleet_broker.port)):
        await until(lambda: len(fleet_broker.publishes) == 1)
    assert not fleet_broker.publishes[0].retain


async def test_identity_goes_up_only_when_it_is_wanted(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(store, uplink_settings(fleet_broker.port, identity=True)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 1, client_id="sensor", username="ann")
        await until(lambda: store.outbox.rows == 0)
    assert fleet_broker.data[0].properties.user_properties[2:] == (
        ("clientid", "sensor"),
        ("username", "ann"),
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "aliases"), [(128, 2, 2), (1, 9, 1), (0, 9, 0), (9, 0, 0)]
)
async def test_topics_get_as_many_aliases_as_both_ends_take(
    store: Store, fleet_broker: FleetBroker, ours: int, theirs: int, aliases: int
) -> None:
    fleet_broker.connack = ConnAck(properties=Properties(topic_alias_maximum=theirs or None))
    async with running(
        store, uplink_settings(fleet_broker.port, topic_alias_maximum=ours)
    ) as uplink:
        await connected(uplink)
        for seq in range(1, 31):
            add_rows(store, seq, seq, topic=f"sensors/n{seq % 3}/temperature")
        await until(lambda: store.outbox.rows == 0)
    used = {publish.properties.topic_alias for publish in fleet_broker.data} - {None}
    assert used == set(range(1, aliases + 1))
    assert [publish.topic for publish in fleet_broker.data] == [
        f"tidegate/barn/data/sensors/n{seq % 3}/temperature" for seq in range(1, 31)
    ]


async def test_live_rows_are_not_paced(store: Store, fleet_broker: FleetBroker) -> None:
    add_rows(store, 1, 50)
    await store.settle()
    settings = uplink_settings(fleet_broker.port, backlog_messages_per_second=1)
    async with running(store, settings) as uplink:
        await connected(uplink)
        add_rows(store, 51, 90)
        await until(lambda: set(range(51, 91)) <= set(numbers_of(fleet_broker)))
        assert len(fleet_broker.data) < 40 + 20  # a backlog message a second
        assert store.counters.values["tidegate/uplink/backlog_messages_per_second"] == 1


@pytest.mark.parametrize("trouble", [0x83, 0x97, "a DISCONNECT"])
async def test_the_backlog_goes_more_slowly_after_trouble(
    store: Store, fleet_broker: FleetBroker, trouble: int | str
) -> None:
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        if isinstance(trouble, int):
            fleet_broker.puback = lambda _publish: ReasonCode(trouble)
            add_rows(store, 1, 5)
        else:
            fleet_broker.send(Disconnect(ReasonCode.MESSAGE_RATE_TOO_HIGH))
            await until(lambda: fleet_broker.connections == 2 and uplink.state == "connected")
        await until(lambda: store.counters.values["tidegate/uplink/slowdowns"] == 1)
        pace = int(store.counters.values["tidegate/uplink/backlog_messages_per_second"])
        assert pace == START_MESSAGES / 2
