"""What one bridge trips over ends neither it nor its neighbours, and a change starts no other."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest

from gateway.bridges.kind import BridgeKind
from gateway.bridges.settings import BridgeSettings
from gateway.bridges.supervision import supervised
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import BridgeError
from gateway.bridges.supervision.supervised import Backoff
from gateway.bridges.supervision.supervisor import Supervisor
from gateway.config.bridges import BridgeConfig
from gateway.extras import how_to_install
from tests.support.clocks import ManualClock
from tests.support.disk.storage import until
from tests.support.nodes.bridges import Gateway


class Script:
    """What a bridge does in its runs; the last deed is repeated."""

    def __init__(self, *deeds: Callable[[Host], Any]) -> None:
        self.deeds = list(deeds)
        self.runs: list[float] = []
        self.made = 0
        self.closed = 0

    def kind(self, name: str = "test", **settings: Any) -> BridgeKind:
        def make(_settings: BridgeSettings, host: Host) -> "_Bridge":
            self.made += 1
            return _Bridge(self, host)

        return BridgeKind(name, "a test", BridgeSettings, make, **settings)


class _Bridge:
    def __init__(self, script: Script, host: Host) -> None:
        self.script, self.host = script, host

    async def run(self) -> None:
        script = self.script
        script.runs.append(asyncio.get_running_loop().time())
        deed = script.deeds[min(len(script.runs), len(script.deeds)) - 1]
        try:
            done = deed(self.host)
            if asyncio.iscoroutine(done):
                await done
        finally:
            script.closed += 1


def fault(_host: Host) -> None:
    raise RuntimeError("a bug")


def lost(_host: Host) -> None:
    raise BridgeError("no such device")


async def work(host: Host) -> None:
    host.working()
    host.received()
    await asyncio.Event().wait()


async def keep(hosts: list[Host], host: Host) -> None:
    hosts.append(host)
    host.working()
    await asyncio.Event().wait()


def config(kind: BridgeKind, name: str = "a", **settings: Any) -> BridgeConfig:
    return BridgeConfig(kind, name, BridgeSettings(**settings))


@contextlib.asynccontextmanager
async def supervising(gateway: Gateway, *bridges: BridgeConfig) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(gateway.services)
    await supervisor.apply(bridges)
    try:
        yield supervisor
    finally:
        await supervisor.close()


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "RESTART_FIRST", 0.01)


@pytest.fixture
def gateway() -> Gateway:
    return Gateway.make()


async def test_a_bridge_with_a_fault_is_made_anew_and_the_others_go_on(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    failing, healthy = Script(fault, lambda _: None, work), Script(work)
    async with supervising(gateway, config(failing.kind()), config(healthy.kind(), "b")):
        await until(lambda: gateway.figure("test/a/state") == "open")
        assert (failing.made, failing.closed) == (3, 2)
        assert (healthy.made, healthy.closed) == (1, 0)
        assert gateway.figure("test/a/restarts") == 2
        assert gateway.figure("test/b/restarts") == 0
    assert (failing.closed, healthy.closed) == (3, 1)
    assert gateway.figure("test/a/state") == "off"
    assert "RuntimeError: a bug" in caplog.text
    assert "fault: it ended by itself" in caplog.text


async def test_a_loss_is_told_once_without_a_traceback_and_the_bridge_is_kept(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(lost, lost, lost, work)
    async with supervising(gateway, config(script.kind(retry=(0.001, 1.0, 0.001)))):
        await until(lambda: gateway.figure("test/a/state") == "open")
    assert script.made == 1
    assert [record.getMessage() for record in caplog.records] == ["test a: waiting: no such device"]
    assert gateway.figure("test/a/restarts") == 0


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of every wait, in order."""
    asked: list[float] = []
    following = Backoff.next

    def noted(backoff: Backoff) -> float:
        asked.append(following(backoff))
        return asked[-1]

    monkeypatch.setattr(Backoff, "next", noted)
    return asked


async def test_waits_after_a_loss_are_bounded_and_short_again_once_something_came(
    gateway: Gateway, waits: list[float]
) -> None:
    def heard_and_lost(host: Host) -> None:
        host.received()
        raise BridgeError("lost")

    script = Script(lost, lost, lost, lost, heard_and_lost, lost, work)
    async with supervising(gateway, config(script.kind(retry=(0.01, 2.0, 0.03)))):
        await until(lambda: len(script.runs) == 7)
    assert waits == [0.01, 0.02, 0.03, 0.03, 0.01, 0.02]


async def test_waits_after_faults_are_bounded_and_short_again_after_a_long_run(
    gateway: Gateway, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "RESTART_MAX", 0.03)

    async def long_and_fault(_host: Host) -> None:
        await asyncio.sleep(0.04)
        raise RuntimeError("late")

    script = Script(fault, fault, fault, fault, long_and_fault, fault, work)
    async with supervising(gateway, config(script.kind())):
        await until(lambda: len(script.runs) == 7)
    assert waits[:4] == [0.01, 0.02, 0.03, 0.03]
    assert waits[4] == 0.01


async def test_a_silence_raises_the_alarm_starts_the_bridge_again_and_ends_with_a_reading() -> None:
    clock = ManualClock()
    gateway = Gateway.make(clock)
    hosts: list[Host] = []
    script = Script(partial(keep, hosts))
    async with supervising(gateway, config(script.kind(), silence=3.0)) as supervisor:
        await until(lambda: bool(hosts))
        for _ in range(6):
            clock.step(10)
            hosts[0].read("n1", "temperature", 21.0)
        clock.step(29)
        supervisor.check_silences()
        assert gateway.alarms.raised == {}
        clock.step(2)
        supervisor.check_silences()
        assert "nothing for 31 s" in gateway.alarms.raised["bridge-test-a"]
        assert gateway.figure("test/a/state") == "silent"
        await until(lambda: len(hosts) == 2)
        assert gateway.figure("test/a/restarts") == 1
        assert gateway.alarms.raised
        hosts[-1].read("n1", "temperature", 21.0)
        assert gateway.alarms.raised == {}
        assert gateway.figure("test/a/state") == "open"


async def test_a_bridge_that_does_not_end_is_left_behind(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervised, "STOP_TIMEOUT", 0.05)
    free = asyncio.Event()

    async def deaf(host: Host) -> None:
        host.working()
        while not free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await free.wait()

    async with supervising(gateway, config(Script(deaf).kind())):
        await until(lambda: gateway.figure("test/a/state") == "open")
    free.set()
    assert "test a: does not end; it is abandoned" in caplog.text


async def test_only_what_changed_is_started_again(gateway: Gateway) -> None:
    scripts = {name: Script(work) for name in "abcd"}
    kinds = {name: script.kind() for name, script in scripts.items()}
    first = [config(kinds[name], name) for name in "abc"]
    async with supervising(gateway, *first) as supervisor:
        await until(lambda: all(scripts[name].runs for name in "abc"))
        await supervisor.apply(
            [config(kinds["a"], "a"), config(kinds["b"], "b", retain=True), config(kinds["d"], "d")]
        )
        await until(lambda: bool(scripts["d"].runs) and scripts["b"].made == 2)
        assert {name: (script.made, script.closed) for name, script in scripts.items()} == {
            "a": (1, 0),
            "b": (2, 1),
            "c": (1, 1),
            "d": (1, 0),
        }
        assert gateway.figure("test/c/state") == "off"


async def test_what_is_not_installed_is_said_in_one_line(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    script = Script(work)
    kind = script.kind(needs=("no_such_module",), extra="serial", retry=(0.001, 1, 0.001))
    async with supervising(gateway, config(kind)):
        await until(lambda: bool(caplog.records))
        await asyncio.sleep(0.02)
    assert script.made == 0
    (record,) = caplog.records
    assert record.getMessage() == (
        f"test a: waiting: needs no_such_module, which is not installed: {how_to_install('serial')}"
    )


async def test_a_device_is_lent_and_taken_back_early(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "RELEASED_CHECK", 0.01)
    script = Script(work)
    async with supervising(gateway, config(script.kind())) as supervisor:
        await until(lambda: len(script.runs) == 1)
        assert not supervisor.release_port(lambda _: False, 60)
        assert supervisor.release_port(lambda _: True, 60)
        await until(lambda: gateway.counters.values.get("tidegate/test/a/state") == "waiting")
        assert gateway.counters.values.get("tidegate/test/a/error") == "released to another program"
        assert script.closed == 1
        assert supervisor.release_port(lambda _: True, 0)
        await until(lambda: len(script.runs) == 2)
        assert gateway.counters.values.get("tidegate/test/a/restarts") == 0
        assert script.made == 1


async def test_a_silence_while_the_device_is_lent_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An update of a node takes the gateway's own commands to it along where its bridge goes."""
    monkeypatch.setattr(supervised, "RELEASED_CHECK", 0.01)
    clock = ManualClock()
    gateway = Gateway.make(clock)
    hosts: list[Host] = []
    script = Script(partial(keep, hosts))
    async with supervising(gateway, config(script.kind())) as supervisor:
        await until(lambda: bool(hosts))
        for _ in range(6):
            clock.step(10)
            hosts[0].read("n1", "temperature", 21.0)
        assert supervisor.release_port(lambda _: True, 600)
        await until(lambda: script.closed == 1)
        clock.step(200)
        supervisor.check_silences()
        assert "nothing for 200 s" in gateway.alarms.raised["bridge-test-a"]
        assert supervisor.release_port(lambda _: True, 0)
        await until(lambda: len(hosts) == 2)
        assert (script.made, gateway.figure("test/a/restarts")) == (1, 0)
