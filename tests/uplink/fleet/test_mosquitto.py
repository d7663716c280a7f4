"""The uplink against a real Mosquitto that dies and comes back."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gateway.uplink.fleet.fleet as fleet_module
from gateway.settings.uplink import ReconnectSettings
from gateway.storage.outbox.row import OutboxRow, Outcome
from gateway.uplink.uplink import Uplink
from tests.support.disk.storage import Store, open_store, until
from tests.support.fleet.fleet_collector import FleetCollector, Received
from tests.support.fleet.uplinks import (
    EPOCH,
    add_rows,
    connected,
    make_uplink,
    running,
    uplink_settings,
)
from tests.support.processes.mosquitto import Mosquitto

pytestmark = pytest.mark.mosquitto


@pytest.fixture
async def collector(mosquitto: Mosquitto) -> AsyncIterator[FleetCollector]:
    subscriber = FleetCollector(mosquitto.port)
    mosquitto.save()
    yield subscriber
    subscriber.close()


def _add_in_two_streams(store: Store, first: int, last: int) -> None:
    """Accept a message in each stream for each number, in turns of 50."""
    for start in range(first, last + 1, 50):
        for stream in ("main", "slow"):
            add_rows(store, start, min(start + 49, last), stream)


def _names(messages: list[Received]) -> set[tuple[str, str, int]]:
    return {message.name for message in messages}


def _states(collector: FleetCollector) -> list[bytes]:
    """Return the word of each status message so far."""
    return [m.payload.split(b'"')[3] for m in collector.received if m.topic.endswith("status")]


def _note_text(said: list[str], _name: str, text: str) -> None:
    said.append(text)


def _expected(last: int) -> set[tuple[str, str, int]]:
    return {(EPOCH, stream, seq) for stream in ("main", "slow") for seq in range(1, last + 1)}


@pytest.mark.uncovered
async def test_a_broker_killed_during_a_drain_loses_nothing(
    store: Store, mosquitto: Mosquitto, collector: FleetCollector
) -> None:
    ended: list[tuple[str, str, int]] = []

    def note(rows: Sequence[OutboxRow], outcome: Outcome, reason: str) -> None:
        ended.extend((EPOCH, row.stream, row.seq) for row in rows)

    store.outbox.on_outcome.append(note)
    _add_in_two_streams(store, 1, 1_000)
    await store.settle()
    async with running(store, uplink_settings(mosquitto.port)) as uplink:
        await until(lambda: store.outbox.rows < 1_500, 60)
        mosquitto.save()
        saved = len(ended)
        mosquitto.freeze()
        mosquitto.kill()
        before = store.outbox.rows
        await until(lambda: uplink.state != "connected")
        # what it acknowledged between its save and its end may be lost with it
        unsaved = set(ended[saved:])
        mosquitto.start()
        await until(lambda: store.outbox.rows == 0, 60)
        await until(lambda: _expected(1_000) - _names(collector.data) <= unsaved, 60)
    assert 0 < before < 2_000
    assert len(unsaved) < 500, "most of it is held to be there"
    assert _names(collector.data) <= _expected(1_000)


async def test_a_frozen_broker_is_left_and_found_again(
    store: Store, mosquitto: Mosquitto, collector: FleetCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "TICK_SECONDS", 0.05)
    async with running(store, uplink_settings(mosquitto.port, puback_timeout=0.3)) as uplink:
        await connected(uplink)
        mosquitto.freeze()
        add_rows(store, 1, 10)
        await until(lambda: "overdue" in str(store.counters.values["tidegate/uplink/error"]))
        mosquitto.thaw()
        await until(lambda: store.outbox.rows == 0)
        await until(lambda: len(_names(collector.data)) == 10)


async def test_the_status_is_retained_and_turns_offline(
    store: Store, mosquitto: Mosquitto, collector: FleetCollector
) -> None:
    async with running(store, uplink_settings(mosquitto.port)) as uplink:
        await connected(uplink)
        await until(lambda: _states(collector) == [b"online"])
    await until(lambda: _states(collector) == [b"online", b"offline"])
    late = FleetCollector(mosquitto.port, "tidegate/barn/status", "late")
    await until(lambda: len(late.received) == 1)
    late.close()
    assert late.received[0].retain
    assert late.received[0].payload == (
        b'{"state":"offline","epoch":"%s","version":"0.1.0"}' % EPOCH.encode()
    )


async def test_the_properties_arrive_as_they_were_sent(
    store: Store, mosquitto: Mosquitto, collector: FleetCollector
) -> None:
    async with running(store, uplink_settings(mosquitto.port)) as uplink:
        await connected(uplink)
        add_rows(
            store,
            1,
            1,
            qos=0,
            content_type="application/json",
            response_topic="answer",
            correlation_data=b"\x00\xff",
            payload_format=1,
            message_expiry=4_000_000_000,
            user_properties=(("site", "Ä"), ("", "")),
        )
        await until(lambda: len(collector.data) == 1)
    [message] = collector.data
    assert message.topic == "tidegate/barn/data/sensors/n1/temperature"
    assert message.properties == [
        ("seq", f"{EPOCH}.main.1"),
        ("time", "1763740000001"),
        ("was", "00"),
        ("site", "Ä"),
        ("", ""),
    ]
    raw = message.raw
    assert (raw.ContentType, raw.ResponseTopic) == ("application/json", "answer")
    assert (raw.CorrelationData, raw.PayloadFormatIndicator) == (b"\x00\xff", 1)
    assert 0 < raw.MessageExpiryInterval <= 4_000_000_000


async def test_a_request_of_the_fleet_waits_in_the_session(
    store: Store, mosquitto: Mosquitto, collector: FleetCollector
) -> None:
    requests: list[bytes] = []
    uplink = make_uplink(store, uplink_settings(mosquitto.port))
    uplink.requests.recall = requests.append
    await uplink.start()
    await until(lambda: _states(collector) == [b"online"])  # whoever reads it may ask
    collector.publish("tidegate/barn/control/recall", b"1")
    await until(lambda: requests == [b"1"])
    uplink.pause()
    await until(lambda: uplink.state == "paused")
    collector.publish("tidegate/barn/control/recall", b"2")
    uplink.resume()
    await until(lambda: requests == [b"1", b"2"])
    await uplink.close()
    assert uplink.session.resumable
    collector.publish("tidegate/barn/control/recall", b"3")
    again = make_uplink(store, uplink_settings(mosquitto.port), resume=True)
    again.requests.recall = requests.append
    await again.start()
    await until(lambda: requests == [b"1", b"2", b"3"])
    await again.close()


@pytest.mark.parametrize(("mqtt", "extra"), [("3.1.1", {"plain": True}), ("5", {})])
async def test_one_of_two_gateways_with_one_identity_pauses(
    mqtt: str, extra: dict[str, Any], mosquitto: Mosquitto, tmp_path: Path
) -> None:
    """Mosquitto closes one connection for the other, without a reason before MQTT 5."""
    uplinks, stores = [], []
    for epoch in ("a" * 10, "b" * 10):
        (tmp_path / epoch).mkdir()
        stores.append(await open_store(tmp_path / epoch))
        settings = uplink_settings(
            mosquitto.port, epoch=epoch, mqtt=mqtt, reconnect=ReconnectSettings(0.05, 1.0), **extra
        )
        uplinks.append(make_uplink(stores[-1], settings))
    alarms: dict[Uplink, list[str]] = {uplink: [] for uplink in uplinks}
    for uplink, said in alarms.items():
        uplink.take_overs.alarm = partial(_note_text, said)
        await uplink.start()
    await until(lambda: "paused" in [uplink.state for uplink in uplinks])
    (paused,) = (each for each in uplinks if each.state == "paused")
    (other,) = (each for each in uplinks if each is not paused)
    await connected(other)
    assert "paused after 3 times" in alarms[paused][-1]
    for uplink, store in zip(uplinks, stores, strict=True):
        await uplink.close()
        await store.close()


async def test_a_connection_that_mosquitto_closes_for_another_is_not_said_to_be_more(
    store: Store, mosquitto: Mosquitto
) -> None:
    """Mosquitto 2.0 says nothing; 2.1 says 0x8E."""
    alarms: list[str] = []
    uplink = make_uplink(store, uplink_settings(mosquitto.port))
    uplink.take_overs.alarm = lambda name, _text: alarms.append(name)
    await uplink.start()
    await connected(uplink)
    other = FleetCollector(mosquitto.port, "x", "tidegate-barn")  # which comes back when it is cut
    await until(lambda: store.counters.values.get("tidegate/uplink/reconnects", 0) == 2)
    other.close()
    end = store.counters.values["tidegate/uplink/last_end"]
    assert end in ("closed", "taken_over")
    assert bool(alarms) == (store.counters.count("tidegate/uplink/ended_taken_over") > 0)
    await uplink.close()
