"""Fleets that close, refuse, lie and delay: nothing acknowledged is lost, nothing stops."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import gateway.uplink.fleet.fleet as fleet_module
import gateway.uplink.fleet.inflight as inflight_module
import gateway.uplink.fleet.sender as sender_module
import gateway.uplink.refusals as refusals_module
import gateway.uplink.suspects as suspects_module
import gateway.uplink.uplink as uplink_module
from gateway.mqtt.packets import ConnAck, Publish
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.storage.outbox.row import Outcome
from gateway.uplink import uplink as take_overs
from gateway.uplink.reports.control_messages import ControlMessage
from tests.support.disk.storage import Store, bounded, open_store, until
from tests.support.fleet.reconnecting import backoff
from tests.support.fleet.scripted_fleet import (
    Begin,
    Script,
    ScriptedFleet,
    Talk,
    accept,
    number_of,
    numbers_of,
    take,
)
from tests.support.fleet.uplinks import add_rows, connected, make_uplink, running, uplink_settings

MESSAGES = 12
HURRY = (
    (uplink_module, "_backoff", partial(backoff, 0.01, 0.05)),
    (uplink_module, "LASTING_RECONNECT", 0.05),
    (suspects_module, "RETRY_FIRST", 0.02),
    (suspects_module, "RETRY_LONGEST", 0.05),
    (refusals_module, "RETRY_FIRST", 0.05),
    (inflight_module, "RETRY_FIRST", 0.05),
    (sender_module, "RETRY_FIRST", 0.05),
    (fleet_module, "TICK_SECONDS", 0.02),
    (fleet_module, "HOLD_FIRST", 0.02),
    (fleet_module, "DISCONNECT_SECONDS", 0.05),
)
"""What makes hours of waiting a moment."""


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, seconds in HURRY:
        monkeypatch.setattr(module, name, seconds)


@pytest.fixture
async def fleet() -> AsyncIterator[ScriptedFleet]:
    made = ScriptedFleet()
    await made.start()
    yield made
    await made.stop()


async def _rejected(store: Store) -> list[tuple[int, str]]:
    await store.settle()
    return [(each.row.seq, each.cause) for each in await store.rejected.read(0, 1000)]


def ends(end: Callable[[Talk], None], *bad: int) -> Script:
    """Return a script that ends the connection on these numbers."""

    def script(talk: Talk, publish: Publish) -> None:
        if not set(bad).isdisjoint(numbers_of(publish)):
            end(talk)
        else:
            talk.take(publish)

    return script


def large(talk: Talk, publish: Publish) -> None:
    """Close as a proxy does that takes no more than 64 KiB."""
    if len(publish.payload) > 65_536:
        talk.close()
    else:
        talk.take(publish)


def slow_before(*bad: int) -> Script:
    """Return a script that answers nothing until the next read, so that much is in flight."""

    def script(talk: Talk, publish: Publish) -> None:
        if number_of(publish) in bad:
            talk.close()
            return
        talk.unanswered.append(publish)
        while len(talk.unanswered) > 2 or (talk.unanswered and talk.fleet.connections > 2):
            talk.take(talk.unanswered.pop(0))

    return script


CULPRITS: dict[str, tuple[Script, tuple[int, ...], str]] = {
    "closed": (ends(Talk.close, 5), (5,), "closed"),
    "reset": (ends(Talk.reset, 5), (5,), "reset"),
    "too large": (ends(lambda talk: talk.disconnect(0x95), 5), (5,), "too_large"),
    "not authorized": (ends(lambda talk: talk.disconnect(0x87), 5), (5,), "refused"),
    "malformed": (ends(lambda talk: talk.say(b"\xff\xff\xff\xff\xff"), 5), (5,), "malformed"),
    "the first": (ends(Talk.close, 1), (1,), "closed"),
    "two in a window": (ends(Talk.close, 5, 6), (5, 6), "closed"),
    "many": (ends(Talk.close, 2, 4, 7, 8), (2, 4, 7, 8), "closed"),
    "with much in flight": (slow_before(5), (5,), "closed"),
}


@pytest.mark.uncovered
@pytest.mark.parametrize("keeps_session", [True, False], ids=["session", "clean"])
@pytest.mark.parametrize(("script", "bad", "cause"), CULPRITS.values(), ids=list(CULPRITS))
async def test_a_message_that_ends_connections_is_rejected_and_all_others_go_up(
    store: Store,
    fleet: ScriptedFleet,
    caplog: pytest.LogCaptureFixture,
    script: Script,
    bad: tuple[int, ...],
    cause: str,
    keeps_session: bool,
) -> None:
    fleet.script, fleet.keeps_session = script, keeps_session
    add_rows(store, 1, MESSAGES)
    await store.settle()
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await until(lambda: store.outbox.rows == 0)
        await until(lambda: uplink.state == "connected")
        add_rows(store, 100, 120)
        await until(lambda: store.outbox.rows == 0)
    good = [number for number in (*range(1, MESSAGES + 1), *range(100, 121)) if number not in bad]
    assert list(dict.fromkeys(fleet.taken)) == good
    assert sorted(await _rejected(store)) == [(number, cause) for number in bad]
    for number in bad:
        assert f"message 00a1b2c3d4.main.{number} (sensors/n1/temperature, 1" in caplog.text
    assert store.counters.count(f"tidegate/uplink/ended_{cause}") >= 3
    assert "another client" not in caplog.text


async def test_what_a_proxy_does_not_pass_is_named_with_its_size(
    store: Store, fleet: ScriptedFleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.script = large
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 3)
        add_rows(store, 4, 4, payload=bytes(70_000))
        add_rows(store, 5, 9)
        await until(lambda: store.outbox.rows == 0)
    assert list(dict.fromkeys(fleet.taken)) == [1, 2, 3, 5, 6, 7, 8, 9]
    assert await _rejected(store) == [(4, "closed")]
    assert "message 00a1b2c3d4.main.4 (sensors/n1/temperature, 70,000 bytes) was rejected" in (
        caplog.text
    )


async def test_after_the_second_end_one_message_is_in_flight(
    store: Store, fleet: ScriptedFleet
) -> None:
    fleet.script = ends(Talk.close, MESSAGES)
    add_rows(store, 1, MESSAGES - 1)
    await store.settle()
    silent = [True]

    def script(talk: Talk, publish: Publish) -> None:
        if number_of(publish) == 7:
            talk.close()
        elif not silent:
            talk.take(publish)

    fleet.script = script
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await until(lambda: fleet.connections == 2)
        silent.clear()
        await until(lambda: store.outbox.rows == 0 and uplink.state == "connected")
        searching = fleet.most_unanswered[2:]
        add_rows(store, 100, 200)
        await until(lambda: store.outbox.rows == 0)
    assert max(searching[:2]) == 1
    assert fleet.most_unanswered[-1] > 1  # the window is as before
    assert await _rejected(store) == [(7, "closed")]


BATCHES: dict[str, Any] = {"batch": "zlib", "batch_messages": 4, "batch_delay": 0.01}
WAYS: dict[str, tuple[dict[str, Any], bool]] = {
    "plain": ({"plain": True}, True),
    "plain, 3.1.1": ({"plain": True}, False),
    "batches": (BATCHES, True),
    "batches, 3.1.1": (BATCHES, False),
    "small window": ({"window": 2}, True),
    "clean": ({"session_expiry": 0}, True),
    "without reports": ({"reports": False}, True),
}


@pytest.mark.parametrize(("fields", "speaks_5"), WAYS.values(), ids=list(WAYS))
async def test_it_is_found_on_every_way_up(
    store: Store, fleet: ScriptedFleet, fields: dict[str, Any], speaks_5: bool
) -> None:
    fleet.script, fleet.speaks = ends(Talk.close, 5, 9), 5 if speaks_5 else 4
    add_rows(store, 1, MESSAGES)
    await store.settle()
    async with running(store, uplink_settings(fleet.port, **fields)) as uplink:
        await until(lambda: store.outbox.rows <= 1)
        await connected(uplink)
        add_rows(store, 100, 110)
        await until(lambda: store.outbox.rows == 0)
    assert set(fleet.taken) == {*range(1, MESSAGES + 1), *range(100, 111)} - {5, 9}
    assert sorted(await _rejected(store)) == [(5, "closed"), (9, "closed")]


@pytest.mark.uncovered
@pytest.mark.parametrize("lane", ["live", "backlog", "recall"])
async def test_it_is_found_in_every_lane(store: Store, fleet: ScriptedFleet, lane: str) -> None:
    fleet.script = ends(Talk.close, 5)
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await connected(uplink)
        for number in range(1, MESSAGES + 1):
            add_rows(store, number, number, lane=lane)
            await store.end_turn()
        await until(lambda: store.outbox.rows == 0)
    others = [each for each in range(1, MESSAGES + 1) if each != 5]
    assert list(dict.fromkeys(fleet.taken)) == others
    assert await _rejected(store) == [(5, "closed")]


async def test_it_is_found_again_after_a_restart(store: Store, fleet: ScriptedFleet) -> None:
    fleet.script = ends(Talk.close, 5)
    add_rows(store, 1, MESSAGES)
    await store.settle()
    for count in (1, 3, 6):
        async with running(store, uplink_settings(fleet.port)):
            await until(partial(fleet.has_seen, count))
    async with running(store, uplink_settings(fleet.port)):
        add_rows(store, 100, 103)
        await until(lambda: store.outbox.rows == 0)
    assert set(fleet.taken) == {*range(1, MESSAGES + 1), *range(100, 104)} - {5}
    assert await _rejected(store) == [(5, "closed")]


@pytest.mark.uncovered
async def test_one_of_every_hundred_is_no_crawl(store: Store, fleet: ScriptedFleet) -> None:
    bad = range(50, 600, 100)
    fleet.script = ends(Talk.close, *bad)
    add_rows(store, 1, 600)
    await store.settle()
    async with running(store, uplink_settings(fleet.port)):
        await until(lambda: store.outbox.rows == 0)
    assert list(dict.fromkeys(fleet.taken)) == [each for each in range(1, 601) if each not in bad]
    assert fleet.connections <= 6 * len(bad)
    assert sorted(number for number, _ in await _rejected(store)) == [*bad]


async def test_one_fleet_s_culprit_goes_up_to_the_other(
    tmp_path: Path, fleet: ScriptedFleet
) -> None:
    (tmp_path / "two").mkdir()
    store = await open_store(tmp_path / "two", uplinks=("cloud", "plant"))
    other = ScriptedFleet()
    await other.start()
    fleet.script, other.script = ends(Talk.close, 3), ends(Talk.reset, 7)
    uplinks = [
        make_uplink(store, uplink_settings(each.port, name=name), uplink=bit)
        for each, name, bit in ((fleet, "cloud", 1), (other, "plant", 2))
    ]
    for uplink in uplinks:
        await uplink.start()
    add_rows(store, 1, MESSAGES, uplinks=3)
    await until(lambda: store.outbox.rows == 0)
    await store.settle()
    rejected = await store.rejected.read(0, 10)
    for uplink in uplinks:
        await uplink.close()
    await other.stop()
    await store.close()
    assert sorted((each.uplink, each.row.seq, each.cause) for each in rejected) == [
        ("cloud", 3, "closed"),
        ("plant", 7, "reset"),
    ]
    assert set(fleet.taken) == {*range(1, MESSAGES + 1)} - {3}
    assert set(other.taken) == {*range(1, MESSAGES + 1)} - {7}


async def test_a_status_message_that_ends_connections_stops_nothing(
    store: Store, fleet: ScriptedFleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.own = lambda talk, _publish: talk.close()
    add_rows(store, 1, MESSAGES)
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await until(lambda: store.outbox.rows == 0)
        add_rows(store, 100, 101)
        await until(lambda: store.outbox.rows == 0)
        await until(lambda: "the status message is not sent any more" in caplog.text)
        await connected(uplink)
    assert list(dict.fromkeys(fleet.taken)) == [*range(1, MESSAGES + 1), 100, 101]
    assert await _rejected(store) == []


async def test_a_message_of_the_gateway_s_own_that_ends_connections_is_answered_as_refused(
    store: Store, fleet: ScriptedFleet
) -> None:
    codes: list[int] = []

    def own(talk: Talk, publish: Publish) -> None:
        if publish.topic.endswith("/ledger"):
            talk.disconnect(0x87)
        else:
            talk.take(publish)

    fleet.own = own
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await connected(uplink)
        uplink.control_messages.send(ControlMessage("ledger", b"{}", codes.append))
        number = 0
        while not codes:
            number += 1
            add_rows(store, number, number)
            await until(lambda: store.outbox.rows == 0)
    assert codes == [0x80]
    assert fleet.taken == [*range(1, number + 1)]


async def test_what_a_bounded_outbox_drops_meanwhile_is_counted(
    tmp_path: Path, fleet: ScriptedFleet
) -> None:
    (tmp_path / "bounded").mkdir()
    settings = bounded("drop-oldest", maximum_messages=19)
    store = await open_store(tmp_path / "bounded", settings=settings)
    ended: list[tuple[int, str]] = []
    store.outbox.on_outcome.append(
        lambda rows, outcome, _: ended.extend((row.seq, str(outcome)) for row in rows)
    )
    fleet.script = ends(Talk.close, 2)
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await connected(uplink)
        for number in range(1, 61):
            add_rows(store, number, number)
            await store.settle()
        await until(lambda: store.outbox.rows == 0)
    await store.close()
    assert sorted(number for number, _ in ended) == [*range(1, 61)]
    assert (2, "rejected") in ended
    evicted = {number for number, outcome in ended if outcome == "evicted"}
    assert set(fleet.taken) == {*range(1, 61)} - evicted - {2}
    assert store.counters.count("tidegate/outbox/evicted/drop-oldest") == len(evicted)


async def test_the_uplink_pauses_where_another_gateway_has_its_identity(
    store: Store, fleet: ScriptedFleet
) -> None:
    alarms: list[str] = []
    fleet.script = for_connections(3, lambda talk, _publish: talk.disconnect(0x8E))
    uplink = make_uplink(store, uplink_settings(fleet.port))
    uplink.take_overs.alarm = lambda _name, text: alarms.append(text)
    await uplink.start()
    add_rows(store, 1, 3)
    await until(lambda: uplink.state == "paused")
    assert "paused after 3 times" in alarms[-1]
    assert store.outbox.rows == 3
    uplink.resume()
    await until(lambda: store.outbox.rows == 0)
    await uplink.close()


async def test_a_take_over_is_named_and_ends(
    store: Store, fleet: ScriptedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(take_overs, "UNDISTURBED_SECONDS", 0.0)
    monkeypatch.setattr(uplink_module, "CHECK_SECONDS", 0.02)
    alarms: list[tuple[str, str]] = []
    fleet.script = for_connections(2, lambda talk, _publish: talk.disconnect(0x8E))
    uplink = make_uplink(store, uplink_settings(fleet.port))
    uplink.take_overs.alarm = lambda name, text: alarms.append((name, text))
    await uplink.start()
    add_rows(store, 1, 3)
    await until(lambda: store.outbox.rows == 0)
    await until(lambda: bool(alarms) and alarms[-1] == ("uplink_taken_over", ""))
    await uplink.close()
    assert "with this gateway's client identifier 'tidegate-barn'" in alarms[0][1]
    assert store.counters.count("tidegate/uplink/ended_taken_over") == 2
    assert await _rejected(store) == []


def for_connections(count: int, bad: Script, good: Script = take) -> Script:
    """Return a script that is bad for so many connections, and good from then on."""

    def script(talk: Talk, publish: Publish) -> None:
        (bad if talk.fleet.connections <= count else good)(talk, publish)

    return script


def closes_on_each(talk: Talk, _publish: Publish) -> None:
    talk.close()


def closes_after(count: int) -> Script:
    """Return a script that ends each connection with its message of this number."""

    def script(talk: Talk, publish: Publish) -> None:
        if talk.count >= count:
            talk.close()
        else:
            talk.take(publish)

    return script


def closes_at_random(seed: int, share: float) -> Script:
    """Return a script of a fleet that restarts now and then."""
    random = Random(seed)

    def script(talk: Talk, publish: Publish) -> None:
        if random.random() < share:
            talk.close()
        else:
            talk.take(publish)

    return script


def says_too_fast(talk: Talk, _publish: Publish) -> None:
    talk.disconnect(0x96)


def shuts_down(talk: Talk, _publish: Publish) -> None:
    talk.disconnect(0x8B)


INNOCENT: dict[str, Script] = {
    "two crashes": for_connections(2, closes_on_each),
    "crashes on everything": for_connections(12, closes_on_each),
    "resets everything": for_connections(6, lambda talk, _publish: talk.reset()),
    "too fast": for_connections(6, says_too_fast),
    "shuts down": for_connections(6, shuts_down),
    "takes one a connection": closes_after(2),
    "takes two a connection": closes_after(3),
    "takes three a connection": closes_after(4),
    "takes four a connection": closes_after(5),
    "restarts at random": for_connections(30, closes_at_random(1, 0.2)),
    "restarts often": for_connections(30, closes_at_random(2, 0.35)),
    "garbage in place of PUBACK": for_connections(
        5, lambda talk, _publish: talk.say(b"\x40\x7f\xff\xff\xff\xff")
    ),
}


@pytest.mark.uncovered
@pytest.mark.parametrize("keeps_session", [True, False], ids=["session", "clean"])
@pytest.mark.parametrize("script", INNOCENT.values(), ids=list(INNOCENT))
async def test_ends_that_no_message_is_to_blame_for_cost_no_message(
    store: Store, fleet: ScriptedFleet, script: Script, keeps_session: bool
) -> None:
    fleet.script, fleet.keeps_session = script, keeps_session
    add_rows(store, 1, MESSAGES)
    await store.settle()
    settings = uplink_settings(fleet.port, puback_timeout=0.3)
    async with running(store, settings):
        add_rows(store, 100, 110)
        await until(lambda: store.outbox.rows == 0)
    assert set(fleet.taken) == {*range(1, MESSAGES + 1), *range(100, 111)}
    assert await _rejected(store) == []


def answers(*data: bytes) -> Script:
    """Return a script that says something more with each message."""

    def script(talk: Talk, publish: Publish) -> None:
        for each in data:
            talk.say(each)
        talk.take(publish)

    return script


def twice(talk: Talk, publish: Publish) -> None:
    talk.take(publish)
    talk.puback(publish.packet_id)


def backwards(talk: Talk, publish: Publish) -> None:
    talk.unanswered.append(publish)
    if len(talk.unanswered) == 3:
        while talk.unanswered:
            talk.take(talk.unanswered.pop())


def in_pieces(talk: Talk, publish: Publish) -> None:
    """Send a PUBACK a byte at a time, the last one with the next message."""
    if number := number_of(publish):
        talk.fleet.taken.append(number)
    for byte in b"\x40\x02" + publish.packet_id.to_bytes(2, "big"):
        talk.say(bytes([byte]))


def wrong_identifier(talk: Talk, publish: Publish) -> None:
    """Acknowledge what was never sent, on the first connections, and nothing else."""
    if talk.fleet.connections <= 2:
        talk.puback((publish.packet_id + 3_000) % 65_535 + 1)
    else:
        talk.take(publish)


def half_an_answer(talk: Talk, publish: Publish) -> None:
    if talk.fleet.connections <= 2:
        talk.say(b"\x40\x02\x00")
    else:
        talk.take(publish)


FLOOD = b"\x30\x05\x00\x01a\x001" * 200

STRANGE: dict[str, Script] = {
    "each PUBACK twice": twice,
    "backwards": backwards,
    "in pieces": in_pieces,
    "PUBACKs of what was never sent": answers(b"\x40\x02\xff\xfe", b"\x40\x02\x00\x00"),
    "wrong packet identifiers": wrong_identifier,
    "half an answer": half_an_answer,
    "a flood of messages": answers(FLOOD),
    "PINGRESP, PUBREC and SUBACK of nobody": answers(
        b"\xd0\x00", b"\x50\x02\x00\x09", b"\x90\x04\x00\x09\x00\x00"
    ),
    "a second CONNACK": answers(b"\x20\x03\x00\x00\x00"),
}


@pytest.mark.uncovered
@pytest.mark.parametrize("script", STRANGE.values(), ids=list(STRANGE))
async def test_strange_answers_cost_nothing(
    store: Store, fleet: ScriptedFleet, script: Script
) -> None:
    fleet.script = script
    settings = uplink_settings(fleet.port, puback_timeout=0.3)
    add_rows(store, 1, MESSAGES)
    async with running(store, settings):
        await until(lambda: store.outbox.rows == 0)
    assert set(fleet.taken) == {*range(1, MESSAGES + 1)}
    assert await _rejected(store) == []


def refuses(code: int, *bad: int, times: int = 1_000_000) -> Script:
    """Return a script that refuses these numbers so many times."""
    refused: dict[int, int] = {}

    def script(talk: Talk, publish: Publish) -> None:
        number = number_of(publish)
        if number in bad and refused.get(number, 0) < times:
            refused[number] = refused.get(number, 0) + 1
            talk.refuse(publish, code)
        else:
            talk.take(publish)

    return script


@pytest.mark.uncovered
@pytest.mark.parametrize("code", [0x80, 0x83, 0x91, 0x96, 0x97, 0xEE])
async def test_what_is_refused_for_now_goes_up_later_and_holds_nothing_up(
    store: Store, fleet: ScriptedFleet, code: int
) -> None:
    fleet.script = refuses(code, 3, times=3)
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await connected(uplink)
        add_rows(store, 1, MESSAGES)
        await until(lambda: store.outbox.rows == 0)
    assert fleet.taken == [number for number in range(1, MESSAGES + 1) if number != 3] + [3]
    assert await _rejected(store) == []
    assert store.counters.count("tidegate/uplink/refused") == 3


async def test_a_full_disk_of_the_fleet_costs_no_message(
    store: Store, fleet: ScriptedFleet
) -> None:
    everything = range(1, 36)
    fleet.script = refuses(0x80, *everything, times=4)
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 35)
        await until(lambda: store.outbox.rows == 0)
    assert sorted(fleet.taken) == [*everything]
    assert await _rejected(store) == []


async def test_what_is_refused_for_too_long_is_given_up(
    store: Store, fleet: ScriptedFleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.script = refuses(0x83, 3)
    settings = uplink_settings(fleet.port, retry_refused_for=0.4)
    async with running(store, settings) as uplink:
        await connected(uplink)
        add_rows(store, 1, MESSAGES)
        await until(lambda: store.outbox.rows == 0)
    assert await _rejected(store) == [(3, "0x83")]
    assert fleet.came.count(3) >= 3
    assert "message 00a1b2c3d4.main.3 (sensors/n1/temperature, 11 bytes) was refused" in caplog.text
    assert "repeatedly" in caplog.text


def connack(**properties: Any) -> Begin:
    """Return what answers the first CONNECT with these properties."""

    def begin(talk: Talk) -> None:
        if talk.fleet.connections == 1:
            talk.send(ConnAck(properties=Properties(**properties)))
        else:
            accept(talk)

    return begin


def refuses_first(code: int) -> Begin:
    def begin(talk: Talk) -> None:
        if talk.fleet.connections == 1:
            talk.send(ConnAck(reason_code=ReasonCode(code)))
            talk.close()
        else:
            accept(talk)

    return begin


def says_first(data: bytes, *, closes: bool = True) -> Begin:
    def begin(talk: Talk) -> None:
        if talk.fleet.connections == 1:
            talk.say(data)
            if closes:
                talk.close()
        else:
            accept(talk)

    return begin


BEGINS: dict[str, tuple[Begin, bool]] = {
    "Maximum Packet Size 20": (connack(maximum_packet_size=20), True),
    "Receive Maximum 1": (connack(receive_maximum=1), False),
    "Maximum QoS 0": (connack(maximum_qos=0), False),
    "Maximum QoS 1": (connack(maximum_qos=1), False),
    "Retain Available 0": (connack(retain_available=0), False),
    "Server Keep Alive 0": (connack(server_keep_alive=0), False),
    "Topic Alias Maximum 1": (connack(topic_alias_maximum=1), False),
    "busy": (refuses_first(0x89), False),
    "quota": (refuses_first(0x97), False),
    "too many connections": (refuses_first(0x9F), False),
    "not authorized": (refuses_first(0x87), False),
    "half a CONNACK": (says_first(b"\x20\x03\x00"), False),
    "garbage": (says_first(b"HTTP/1.1 400 Bad Request\r\n\r\n"), False),
    "a packet of 256 MB": (says_first(b"\x20\xff\xff\xff\x7f"), False),
    "nothing, and closed": (says_first(b""), False),
}


@pytest.mark.uncovered
@pytest.mark.parametrize(("begin", "again"), BEGINS.values(), ids=list(BEGINS))
async def test_a_strange_beginning_costs_nothing(
    store: Store, fleet: ScriptedFleet, begin: Begin, again: bool
) -> None:
    fleet.begin = begin
    add_rows(store, 1, 50)
    await store.settle()
    async with running(store, uplink_settings(fleet.port)) as uplink:
        if again:
            await connected(uplink)
            await until(lambda: "waits in the outbox" in _states(store))
            fleet.drop()
        await until(lambda: store.outbox.rows == 0)
    assert sorted(set(fleet.taken)) == [*range(1, 51)]
    assert await _rejected(store) == []


def _states(store: Store) -> str:
    return "waits in the outbox" if store.outbox.rows == 50 else ""


async def test_a_refused_connection_gives_no_identifier_twice(
    store: Store, fleet: ScriptedFleet
) -> None:
    """What is repeated has identifiers of its own, also behind a connection that never was."""

    def begin(talk: Talk) -> None:
        if fleet.connections == 2:
            talk.send(ConnAck(reason_code=ReasonCode.SERVER_BUSY))
            talk.close()
        else:
            accept(talk)

    fleet.begin = begin
    silent = [True]

    def own(talk: Talk, publish: Publish) -> None:
        if not silent:
            talk.take(publish)

    fleet.own = own
    fleet.script = lambda talk, publish: None if silent else talk.take(publish)
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await connected(uplink)
        add_rows(store, 1, MESSAGES)
        await until(lambda: len(fleet.came) == MESSAGES)
        silent.clear()
        fleet.drop()
        await until(lambda: store.outbox.rows == 0)
    identifiers = fleet.talks[-1].identifiers
    assert len(identifiers) == len(set(identifiers))
    assert fleet.taken == [*range(1, MESSAGES + 1)]


async def test_one_message_refused_in_its_batch_goes_alone(
    store: Store, fleet: ScriptedFleet
) -> None:
    def script(talk: Talk, publish: Publish) -> None:
        if 3 in numbers_of(publish):
            talk.refuse(publish, 0x80)
        else:
            talk.take(publish)

    fleet.script = script
    settings = uplink_settings(fleet.port, **BATCHES, retry_refused_for=1.5)
    async with running(store, settings) as uplink:
        await connected(uplink)
        add_rows(store, 1, MESSAGES)
        await until(lambda: store.outbox.rows == 0)
    assert sorted(fleet.taken) == [each for each in range(1, MESSAGES + 1) if each != 3]
    assert await _rejected(store) == [(3, "0x80")]


async def test_the_gateway_s_own_message_is_sent_again_after_a_while(
    store: Store, fleet: ScriptedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflight_module, "OWN_SECONDS", 0.05)
    codes: list[int] = []
    refused: list[Publish] = []

    def own(talk: Talk, publish: Publish) -> None:
        if publish.topic.endswith("/ledger") and len(refused) < 2:
            refused.append(publish)
            talk.refuse(publish, 0x97)
        else:
            talk.take(publish)

    fleet.own = own
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await connected(uplink)
        uplink.control_messages.send(ControlMessage("ledger", b"{}", codes.append))
        add_rows(store, 1, 3)
        await until(lambda: codes == [0])
    assert fleet.taken == [1, 2, 3]


async def test_what_expires_while_it_is_refused_is_not_sent_again(
    store: Store, fleet: ScriptedFleet
) -> None:
    fleet.script = refuses(0x83, 2, 3)
    async with running(store, uplink_settings(fleet.port)) as uplink:
        await connected(uplink)
        add_rows(store, 1, 1)
        add_rows(store, 2, 2)
        add_rows(store, 3, 3)
        await until(lambda: store.counters.count("tidegate/uplink/refused") >= 3)
        rows = await store.outbox.fetch(0, 10)
        store.outbox.remove(rows, Outcome.EXPIRED)
        await store.settle()
        add_rows(store, 4, 4)
        await until(lambda: store.outbox.rows == 0 and fleet.taken == [1, 4])
        await until(lambda: not uplink.session.refusals.by_id)
    assert await _rejected(store) == []
