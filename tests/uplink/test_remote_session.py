"""The session at the fleet's broker: kept over connections, and repeated by the book."""

from dataclasses import replace
from pathlib import Path

import pytest

import gateway.uplink.remote_session as remote_session_module
from gateway.mqtt.packets import ConnAck, Publish
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.state.uplink_state import note_resumable, pop_resumable
from gateway.uplink.remote_session import RemoteSession
from gateway.uplink.reports.control_messages import ControlMessage, ControlMessages
from pipeline.records.batch import read_batch
from tests.support.disk.storage import Store, open_store, outbox_row, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.uplinks import add_rows, connected, make_uplink, running, uplink_settings


def _silent(_publish: Publish) -> None:
    return None


def _yes(_publish: Publish) -> ReasonCode:
    return ReasonCode.SUCCESS


def _properties(publish: Publish) -> dict[str, str]:
    return dict(publish.properties.user_properties)


async def _lose(
    fleet_broker: FleetBroker, *, present: bool, properties: Properties = NO_PROPERTIES
) -> list[Publish]:
    """Cut the connection; return what came on it. The next one is answered."""
    before = list(fleet_broker.publishes)
    fleet_broker.publishes.clear()
    fleet_broker.puback = _yes
    fleet_broker.connack = ConnAck(session_present=present, properties=properties)
    fleet_broker.drop()
    return before


async def test_what_had_no_puback_is_repeated_under_its_identifier(
    store: Store, fleet_broker: FleetBroker
) -> None:
    aliases = Properties(topic_alias_maximum=10)
    fleet_broker.connack = ConnAck(properties=aliases)
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        await until(lambda: store.counters.values["tidegate/uplink/inflight"] == 0)
        fleet_broker.puback = _silent
        add_rows(store, 1, 5)
        await until(lambda: len(fleet_broker.publishes) == 6)
        add_rows(store, 6, 8)
        await until(lambda: len(fleet_broker.publishes) == 9)
        before = await _lose(
            fleet_broker, present=True, properties=Properties(topic_alias_maximum=10)
        )
        await until(lambda: store.outbox.rows == 0)
    first, second = fleet_broker.connects
    assert (first.clean_start, second.clean_start) == (True, False)
    assert first.properties.session_expiry_interval == 86_400
    repeated = [publish for publish in fleet_broker.publishes if publish.dup]
    sent = before[1:]
    assert [(each.packet_id, each.payload) for each in repeated] == [
        (each.packet_id, each.payload) for each in sent
    ]
    assert [_properties(each)["seq"] for each in repeated] == [
        _properties(each)["seq"] for each in sent
    ]
    assert all(_properties(each)["resent"] == "1" for each in repeated)
    assert all(each.properties.topic_alias is None and each.topic for each in repeated)
    assert sent[-1].properties.topic_alias is not None
    others = [publish.packet_id for publish in fleet_broker.publishes if not publish.dup]
    assert not set(others) & {publish.packet_id for publish in repeated}
    assert len(fleet_broker.publishes) == len(repeated) + 1  # the status, and each row once


async def test_without_a_session_there_they_come_as_new_messages(
    store: Store, fleet_broker: FleetBroker
) -> None:
    codes: list[int] = []
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        await until(lambda: store.counters.values["tidegate/uplink/inflight"] == 0)
        fleet_broker.puback = _silent
        add_rows(store, 1, 3)
        uplink.control_messages.send(ControlMessage("ledger", b"{}", codes.append))
        await until(lambda: len(fleet_broker.publishes) == 5)
        await _lose(fleet_broker, present=False)
        await until(lambda: store.outbox.rows == 0 and codes == [0])
    assert not any(publish.dup for publish in fleet_broker.publishes)
    assert len(fleet_broker.publishes) == 5


async def test_own_messages_and_the_status_are_repeated_too(
    store: Store, fleet_broker: FleetBroker
) -> None:
    codes: list[int] = []
    fleet_broker.puback = _silent
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        uplink.control_messages.send(ControlMessage("ledger", b"{}", codes.append))
        await until(lambda: len(fleet_broker.publishes) == 2)
        before = await _lose(fleet_broker, present=True)
        await until(lambda: codes == [0])
    repeated = [publish for publish in fleet_broker.publishes if publish.dup]
    assert [(each.packet_id, each.topic, each.payload, each.retain) for each in repeated] == [
        (each.packet_id, each.topic, each.payload, each.retain) for each in before
    ]


async def test_batches_are_repeated_whole(store: Store, fleet_broker: FleetBroker) -> None:
    settings = uplink_settings(fleet_broker.port, batch="zlib", batch_messages=4, batch_delay=0.05)
    async with running(store, settings) as uplink:
        await connected(uplink)
        await until(lambda: store.counters.values["tidegate/uplink/inflight"] == 0)
        fleet_broker.puback = _silent
        add_rows(store, 1, 8)
        await until(lambda: len(fleet_broker.publishes) == 3)
        await _lose(fleet_broker, present=True)
        await until(lambda: store.outbox.rows == 0)
    repeated = [publish for publish in fleet_broker.publishes if publish.dup]
    records = [read_batch(publish.payload, "barn", 0) for publish in repeated]
    assert [[record["seq"] for record in batch] for batch in records] == [
        [1, 2, 3, 4],
        [5, 6, 7, 8],
    ]
    assert all(record["resent"] for batch in records for record in batch)
    assert len(fleet_broker.publishes) == 3


async def test_repetitions_keep_to_the_servers_window(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        await until(lambda: store.counters.values["tidegate/uplink/inflight"] == 0)
        fleet_broker.puback = _silent
        add_rows(store, 1, 10)
        await until(lambda: len(fleet_broker.publishes) == 11)
        await _lose(fleet_broker, present=True, properties=Properties(receive_maximum=3))
        fleet_broker.puback = _silent
        fleet_broker.most_unacknowledged = 0
        await until(lambda: len(fleet_broker.publishes) == 3)
        await _lose(fleet_broker, present=True)  # in the middle: the order stays
        await until(lambda: store.outbox.rows == 0)
    assert fleet_broker.most_unacknowledged <= 11
    repeated = [publish for publish in fleet_broker.publishes if publish.dup and publish.payload]
    numbers = [
        _properties(each)["seq"].rpartition(".")[2]
        for each in repeated
        if each.properties.user_properties
    ]
    assert numbers == [str(number) for number in range(1, 11)]


async def test_with_an_expiry_of_0_every_connection_starts_clean(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(store, uplink_settings(fleet_broker.port, session_expiry=0)) as uplink:
        await connected(uplink)
        fleet_broker.puback = _silent
        add_rows(store, 1, 2)
        await until(lambda: len(fleet_broker.publishes) == 3)
        await _lose(fleet_broker, present=False)
        await until(lambda: store.outbox.rows == 0)
    assert [connect.clean_start for connect in fleet_broker.connects] == [True, True]
    assert not any(publish.dup for publish in fleet_broker.publishes)


@pytest.mark.parametrize("resume", [True, False])
async def test_a_later_run_resumes_only_what_an_earlier_one_left_whole(
    store: Store, fleet_broker: FleetBroker, resume: bool
) -> None:
    uplink = make_uplink(store, uplink_settings(fleet_broker.port), resume=resume)
    await uplink.start()
    await connected(uplink)
    await uplink.close()
    assert fleet_broker.connects[0].clean_start is not resume
    assert uplink.session.resumable


async def test_the_note_for_the_next_run_is_taken_once(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    assert not await pop_resumable(store.database)
    note_resumable(store.writer)
    await store.close()
    store = await open_store(tmp_path)
    assert await pop_resumable(store.database)
    assert not await pop_resumable(store.database)
    await store.close()


def test_each_repetition_is_counted_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_session_module, "MAXIMUM_SENT", 3)
    session = RemoteSession(ControlMessages(), persistent=True)
    rows = [outbox_row(seq) for seq in range(5)]
    for row in rows:
        row.id = row.seq
    session.note_sent(rows[:3])
    assert [session.count_resent(rows[1:]), session.count_resent(rows[1:])] == [2, 0]
    session.note_sent(rows[2:])
    session.note_sent(rows[:1])
    assert session.count_resent(rows) == 1  # the others were too many to be known


async def test_another_broker_gets_what_the_last_one_did_not_acknowledge(
    store: Store, fleet_broker: FleetBroker
) -> None:
    other = FleetBroker()
    await other.start()
    fleet_broker.puback = _silent
    settings = uplink_settings(fleet_broker.port)
    async with running(store, settings) as uplink:
        await connected(uplink)
        heard: list[int] = []
        uplink.control_messages.send(ControlMessage("ledger", b"{}", heard.append))
        add_rows(store, 1, 3)
        await until(lambda: len(fleet_broker.data) == 3)
        uplink.change(replace(settings, urls=(f"mqtt://127.0.0.1:{other.port}",)))
        uplink.change(replace(uplink.settings, window=7, retry_refused_for=9))
        await until(lambda: len(other.data) == 3)
        await until(lambda: heard == [0])
        assert [each.payload for each in other.data] == [each.payload for each in fleet_broker.data]
        assert uplink.session.resumable
    await other.stop()
