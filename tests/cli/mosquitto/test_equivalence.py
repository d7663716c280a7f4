"""A Mosquitto and the gateway that its configuration became do the same with the same clients."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto, mosquitto_program
from tests.support.waiting import SECONDS, listens, until

pytestmark = pytest.mark.mosquitto

RIGHTS = """
listener {port} 127.0.0.1
password_file {folder}/users
acl_file {folder}/acl
allow_anonymous true
"""
ACL = """
topic read public/#
user anna
topic readwrite #
topic deny secret/#
pattern readwrite devices/%c/#
"""
BRIDGE = """
listener {port} 127.0.0.1
allow_anonymous true
connection mill
address 127.0.0.1:{fleet}
notifications false
topic out/# out 1 "" sites/mill/
topic in/# in 1 "" sites/mill/
topic # both 1 lamps/ sites/mill/lamps/
topic "" out 1 local/one remote/one
topic plain/# out 0
"""


@contextmanager
def _brokers(folder: Path, text: str, fleet: int = 0) -> Iterator[Iterator[int]]:
    """Give the ports of Mosquitto and then of the gateway, with the same configuration."""
    file = folder / "mosquitto.conf"
    (folder / "acl").write_text(ACL)
    program = ["mosquitto_passwd", "-b", "-c", str(folder / "users"), "anna", "secret"]
    subprocess.run(program, check=True)

    def each() -> Iterator[int]:
        port = free_port()
        file.write_text("user root\n" + text.format(port=port, folder=folder, fleet=fleet))
        process = subprocess.Popen([mosquitto_program(), "-c", str(file)])
        until(lambda: listens(port), "Mosquitto listens")
        yield port
        process.kill()
        process.wait(SECONDS)
        output = folder / "gateway.toml"
        assert main(["import", str(file), "-o", str(output)]) == 0
        gateway = GatewayProcess(folder, output.read_text()).start()
        yield gateway.port
        gateway.kill()

    yield each()


def _published(port: int, topic: str, *words: str) -> bool:
    """Return whether another client gets what a client publishes."""
    watcher = [  # -d says when it is subscribed; stdbuf, since it writes to a pipe
        *("stdbuf", "-oL", "mosquitto_sub", "-p", str(port), "-u", "anna", "-P", "secret"),
        *("-t", "#", "-C", "1", "-i", "watcher", "-F", "=%t", "-d"),
    ]
    program = ["mosquitto_pub", "-p", str(port), "-t", topic, "-m", "x", "-q", "1", *words]
    process = subprocess.Popen(watcher, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while not (line := process.stdout.readline()).startswith("Subscribed"):
        assert line, "the watcher has ended"
    subprocess.run(program, check=False, timeout=SECONDS, capture_output=True)
    end = ["mosquitto_pub", "-p", str(port), "-u", "anna", "-P", "secret", "-t", "end", "-m", "x"]
    subprocess.run(end, check=True, timeout=SECONDS)
    out, _ = process.communicate(timeout=SECONDS)
    return f"={topic}" in out.splitlines()


def test_users_and_rights_are_the_same(tmp_path: Path) -> None:
    cases = [
        ("public/x", ()),
        ("x", ("-u", "anna", "-P", "secret")),
        ("x", ("-u", "anna", "-P", "wrong")),
        ("secret/x", ("-u", "anna", "-P", "secret")),
        ("devices/d1/x", ("-i", "d1")),
        ("devices/d1/x", ("-i", "d2")),
    ]
    with _brokers(tmp_path, RIGHTS) as brokers:
        found = [[_published(port, topic, *words) for topic, words in cases] for port in brokers]
    assert found == [[False, True, False, False, True, False]] * 2


def test_a_bridge_is_the_same_in_both_directions(tmp_path: Path) -> None:
    fleet = Mosquitto(tmp_path)
    fleet.start()
    found: list[list[tuple[str, bytes, bool]]] = []
    with _brokers(tmp_path, BRIDGE, fleet.port) as brokers:
        for number, port in enumerate(brokers):
            up = FleetCollector(fleet.port, "#", f"up-{number}")
            down = FleetCollector(port, "#", f"down-{number}")
            _until_up(up, down)
            for topic, retain in (("out/a/b", False), ("out/kept", True), ("lamps/1/state", False)):
                down.publish(topic, b"from here", retain=retain)
            for topic in ("local/one", "plain/x", "else/x"):
                down.publish(topic, b"from here")
            for topic, retain in (("in/a", False), ("in/kept", True), ("lamps/2/set", False)):
                up.publish(f"sites/mill/{topic}", b"from there", retain=retain)
            up.publish("sites/mill/in/last", b"from there")
            down.publish("out/last", b"from here")
            until(lambda: _has(up, "sites/mill/out/last"), "all is up")  # noqa: B023 - called at once
            until(lambda: _has(down, "in/last"), "all is down")  # noqa: B023 - called at once
            messages = [*up.received, *down.received]
            found.append(
                sorted((m.topic, m.payload, m.retain) for m in messages if b"from" in m.payload)
            )
            for topic in ("sites/mill/out/kept", "sites/mill/in/kept"):
                up.publish(topic, b"", retain=True)
            for each in (up, down):
                each.close()
    assert found[0] == found[1]
    assert len(found[0]) == 21
    fleet.kill()


def _until_up(up: FleetCollector, down: FleetCollector) -> None:
    """Return when the bridge carries messages in both directions."""

    def carries(one: FleetCollector, other: FleetCollector, topic: str, far: str) -> bool:
        one.publish(topic, b"probe")
        return _has(other, far)

    until(lambda: carries(down, up, "out/probe", "sites/mill/out/probe"), "the bridge is up")
    until(lambda: carries(up, down, "sites/mill/in/probe", "in/probe"), "it is up both ways")


def _has(collector: FleetCollector, topic: str) -> bool:
    return any(each.topic == topic for each in list(collector.received))
