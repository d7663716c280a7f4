"""An uplink connects again and again, pauses, and tells when another client takes it over."""

import asyncio
import logging
import socket
import time

import pytest

import gateway.uplink.uplink as uplink_module
from gateway.mqtt.reason_codes import ReasonCode
from gateway.uplink.destination import Link
from gateway.uplink.errors import End, LinkError, TakenOverError
from gateway.uplink.fleet.stream import CONNECT_SECONDS
from gateway.uplink.uplink import ALARM, UNDISTURBED_SECONDS, TakeOvers, Uplink
from tests.support.disk.storage import Store, until
from tests.support.fleet.fleet_broker import FleetBroker
from tests.support.fleet.reconnecting import reconnect_after
from tests.support.fleet.uplinks import add_rows, connected, make_uplink, running, uplink_settings
from tests.support.table import table


def test_one_that_is_named_raises_the_alarm_once_and_ends_it() -> None:
    alarms: list[tuple[str, str]] = []
    looking = TakeOvers()
    looking.alarm = lambda name, text: alarms.append((name, text))
    error = TakenOverError("tidegate-barn")
    looking.ended(error, 0.0)
    looking.ended(error, 1.0)
    assert alarms == [(ALARM, str(error))]
    looking.check(UNDISTURBED_SECONDS - 1)
    assert len(alarms) == 1
    looking.check(UNDISTURBED_SECONDS)
    looking.check(UNDISTURBED_SECONDS + 1)
    assert alarms[1:] == [(ALARM, "")]


@table("end", [end for end in End if end is not End.TAKEN_OVER])
def test_no_other_end_is_one_however_often_it_comes(end: End) -> None:
    alarms: list[str] = []
    looking = TakeOvers("cloud")
    looking.alarm = lambda name, _text: alarms.append(name)
    for _ in range(3):
        looking.ended(LinkError("it ended", end), 0.0)
    assert not alarms
    looking.ended(TakenOverError("tidegate-barn"), 0.0)
    assert alarms == [f"{ALARM}_cloud"]


@table(
    "times, stops",
    [
        ([0, 60, 120], 1),
        ([0, 60, 121], 0),
        ([0, 60, 121, 179], 1),
        ([0, 1, 2, 3, 4], 1),
        ([0, 1, 2, 3, 4, 5], 2),
    ],
)
def test_an_identity_that_two_have_stops_one_of_them(times: list[float], stops: int) -> None:
    alarms: list[str] = []
    stopped: list[None] = []
    looking = TakeOvers("cloud")
    looking.alarm = lambda _name, text: alarms.append(text)
    looking.stop = lambda: stopped.append(None)
    for now in times:
        looking.ended(TakenOverError("tidegate-barn"), now)
    assert len(stopped) == stops
    assert len(alarms) == 1 + stops
    if stops:
        assert alarms[-1].endswith(
            "another [gateway] id, or stop it, then `tidegate uplink resume cloud` here"
        )


def test_after_two_an_end_without_a_reason_is_the_third() -> None:
    alarms: list[str] = []
    stopped: list[None] = []
    looking = TakeOvers()
    looking.alarm = lambda _name, text: alarms.append(text)
    looking.stop = lambda: stopped.append(None)
    closed = LinkError("closed", End.CLOSED)
    for error, now in ((TakenOverError("x"), 0.0), (closed, 1.0), (TakenOverError("x"), 121.0)):
        looking.ended(error, now)
    looking.ended(closed, 122.0)  # the first is too long ago
    looking.ended(TakenOverError("x", "ffffffffff"), 123.0)
    looking.ended(LinkError("lost", End.LOST), 124.0)
    assert not stopped
    looking.ended(closed, 125.0)
    assert len(stopped) == 1
    assert alarms[-1].startswith("another gateway (epoch ffffffffff) took over")
    assert "paused after 3 times" in alarms[-1]


class _Script:
    """A destination that plays one step a run: an error, or "up" until it is stopped."""

    name = "script"

    def __init__(self, *steps: Exception | str) -> None:
        self.steps = list(steps)
        self.runs: list[float] = []

    async def run(self, link: Link) -> None:
        self.runs.append(time.monotonic())
        step = self.steps.pop(0) if self.steps else "up"
        if isinstance(step, Exception):
            raise step
        link.connected()
        while not link.stopping:
            await link.wait()


def _scripted(store: Store, *steps: Exception | str) -> tuple[Uplink, _Script]:
    uplink = make_uplink(store, uplink_settings(1))
    script = _Script(*steps)
    uplink.destination = script
    return uplink, script


async def test_states_are_told_as_they_change(store: Store) -> None:
    uplink, _ = _scripted(store)
    states = [uplink.state]
    uplink.on_state.append(lambda: states.append(uplink.state))
    await uplink.start()
    await connected(uplink)
    uplink.pause()
    await until(lambda: uplink.state == "paused")
    uplink.resume()
    await connected(uplink)
    await uplink.close()
    assert states == [
        *("off", "connecting", "connected", "paused", "connecting", "connected", "off")
    ]
    assert store.counters.count("tidegate/uplink/reconnects") == 1


async def test_each_failed_attempt_waits_longer(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reconnect_after(monkeypatch, 0.1)
    uplink, script = _scripted(store, *[LinkError("no route")] * 4)
    await uplink.start()
    await connected(uplink)
    await uplink.close()
    waits = [after - before for before, after in zip(script.runs, script.runs[1:], strict=False)]
    assert all(wait >= least for wait, least in zip(waits, (0.05, 0.1, 0.2, 0.4), strict=True))
    lines = [record for record in caplog.records if "no route" in record.message]
    assert len(lines) == 1  # once for the outage, not for each attempt


async def test_a_link_that_was_stable_is_missed_for_the_shortest_wait(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconnect_after(monkeypatch, 0.05)
    monkeypatch.setattr(uplink_module, "STABLE_SECONDS", 0.0)
    uplink, script = _scripted(store, *[LinkError("x")] * 3)
    waits: list[float] = []
    pause_for = uplink._pause_for

    async def noting_pause_for(seconds: float) -> None:
        waits.append(seconds)
        await pause_for(seconds)

    async def up_and_down(link: Link) -> None:
        link.connected()
        raise LinkError("lost")

    monkeypatch.setattr(uplink, "_pause_for", noting_pause_for)
    await uplink.start()
    await connected(uplink)
    assert waits == [0.025, 0.05, 0.1]
    script.run = up_and_down  # type: ignore[method-assign]  # from the next run on
    uplink.pause()
    uplink.resume()
    await until(lambda: len(waits) >= 5)
    await uplink.close()
    assert waits[3:5] == [0.025, 0.025]


async def test_what_only_the_other_end_can_change_is_tried_slowly(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconnect_after(monkeypatch, 0.01)
    monkeypatch.setattr(uplink_module, "LASTING_RECONNECT", 0.6)
    uplink, script = _scripted(store, LinkError("old broker", lasting=True))
    await uplink.start()
    await connected(uplink)
    await uplink.close()
    assert script.runs[1] - script.runs[0] >= 0.3


async def test_an_error_that_nobody_foresaw_is_logged_and_the_link_tried_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reconnect_after(monkeypatch, 0.3)
    uplink, _ = _scripted(store, KeyError("surprise"))
    texts: list[tuple[str, object]] = []
    values = store.counters.values
    uplink.on_state.append(
        lambda: texts.append((uplink.state, values.get("tidegate/uplink/error")))
    )
    await uplink.start()
    await connected(uplink)
    assert ("disconnected", "KeyError: 'surprise'") in texts
    await uplink.close()
    assert "Traceback" in caplog.text


async def test_a_pause_ends_the_wait_for_the_next_attempt(store: Store) -> None:
    uplink, script = _scripted(store, LinkError("x", lasting=True))
    await uplink.start()
    await until(lambda: uplink.state == "disconnected")
    uplink.pause()
    await until(lambda: uplink.state == "paused")
    uplink.resume()
    await connected(uplink)
    await uplink.close()
    assert len(script.runs) == 2


async def test_a_paused_uplink_leaves_the_broker_and_keeps_its_rows(
    store: Store, fleet_broker: FleetBroker
) -> None:
    async with running(store, uplink_settings(fleet_broker.port)) as uplink:
        await connected(uplink)
        uplink.pause()
        await until(lambda: uplink.state == "paused")
        await until(lambda: len(fleet_broker.disconnects) == 1)
        add_rows(store, 1, 3)
        await store.settle()
        assert (fleet_broker.data, store.outbox.rows) == ([], 3)
        uplink.resume()
        await until(lambda: store.outbox.rows == 0)
    assert len(fleet_broker.data) == 3


async def test_a_stop_waits_for_pubacks_that_are_out(
    store: Store, fleet_broker: FleetBroker
) -> None:
    fleet_broker.puback = lambda _publish: None
    uplink = make_uplink(store, uplink_settings(fleet_broker.port))
    await uplink.start()
    await connected(uplink)
    add_rows(store, 1, 3)
    await until(lambda: len(fleet_broker.data) == 3)
    closing = asyncio.create_task(uplink.close())
    await asyncio.sleep(0.05)
    for publish in fleet_broker.publishes:
        fleet_broker.acknowledge(publish, ReasonCode.SUCCESS)
    await closing
    assert store.outbox.rows == 0


async def test_a_stop_while_connecting_does_not_wait_for_the_network(store: Store) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        uplink = make_uplink(store, uplink_settings(silent.getsockname()[1]))
        await uplink.start()
        await until(lambda: uplink.state == "connecting")
        await asyncio.sleep(0.1)  # CONNECT is out, and no CONNACK will come
        began = time.monotonic()
        await uplink.close()
        assert time.monotonic() - began < CONNECT_SECONDS / 2


async def test_a_link_lost_while_it_leaves_is_no_failure(
    store: Store, fleet_broker: FleetBroker, caplog: pytest.LogCaptureFixture
) -> None:
    fleet_broker.puback = lambda _publish: None
    uplink = make_uplink(store, uplink_settings(fleet_broker.port))
    await uplink.start()
    await connected(uplink)
    uplink.pause()
    await asyncio.sleep(0.05)
    with caplog.at_level(logging.INFO):
        fleet_broker.drop()
        await until(lambda: uplink.state == "paused")
    await uplink.close()
    assert "stopped without DISCONNECT" in caplog.text
    assert store.counters.values["tidegate/uplink/error"] == ""
