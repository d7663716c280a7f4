"""Rules, links and limits change while messages pass, and no acknowledged one is lost."""

import json
import os
import signal
import socket
import sqlite3
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.nodes.sensor_client import SensorClient
from tests.support.ports import free_port
from tests.support.processes.gateway_process import GatewayProcess, tidegate
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import until

pytestmark = pytest.mark.mosquitto

CONFIG = """
[gateway]
id = "barn"
[uplink]
url = "mqtt://127.0.0.1:{port}"
{more}
[[uplink.rule]]
topic = "sensors/#"
{where}
"""

TWO = """
[gateway]
id = "barn"
{storage}
[[uplink]]
name = "old"
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "sensors/#"
uplink = ["old"{both}]
{other}
"""

EVEN = 'where = "payload.value % 2 = 0"'

MESSAGES = 400
"""Messages between two reloads."""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Mosquitto]:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    broker = Mosquitto(folder)
    broker.start()
    yield broker
    broker.kill()


class Fleet:
    """What two brokers of the fleet were told, together."""

    def __init__(self, *brokers: Mosquitto) -> None:
        self.collectors = [FleetCollector(each.port) for each in brokers]

    def values(self, number: int | None = None) -> set[int]:
        """Return the values that came, to one of the brokers or to any."""
        chosen = self.collectors if number is None else [self.collectors[number]]
        return {json.loads(each.payload)["value"] for one in chosen for each in one.data}

    def numbers(self) -> set[int]:
        """Return the numbers of which the fleet knows the end."""
        found = {each.name[2] for one in self.collectors for each in one.data}
        for one in self.collectors:
            for each in list(one.received):
                if each.topic.endswith("/ledger"):
                    for first, last, *_ in json.loads(each.payload)["ranges"]:
                        found |= set(range(first, last + 1))
        return found

    def close(self) -> None:
        for each in self.collectors:
            each.close()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    folder = tmp_path / "gateway"
    folder.mkdir()
    process = GatewayProcess(folder, "")
    yield process
    process.kill()


def reload(gateway: GatewayProcess, text: str, status: int = 0) -> str:
    """Change the file and reload; return what the command says."""
    gateway.configure(text)
    done = tidegate("reload", "--url", f"mqtt://127.0.0.1:{gateway.port}")
    assert done.returncode == status, done.stdout + done.stderr + gateway.log()
    return done.stdout


def test_rules_and_the_fleet_s_address_change_while_messages_pass(
    gateway: GatewayProcess, fleet: Mosquitto, elsewhere: Mosquitto
) -> None:
    def config(port: int, where: str = "", more: str = "") -> str:
        return CONFIG.format(port=port, where=where, more=more)

    reported = Fleet(fleet, elsewhere)
    gateway.configure(config(fleet.port))
    gateway.start()
    sensor = SensorClient(gateway.port, "sensors/n1/count")
    for text in (
        config(fleet.port, EVEN),
        config(elsewhere.port, EVEN),
        config(elsewhere.port, "", 'client_id = "other"\nwindow = 50\nprefix = "tidegate"'),
        config(fleet.port, 'stream = "main"\ncommit_within = 0.2'),
    ):
        sensor.publish(MESSAGES)
        said = reload(gateway, text)
        assert "changed" in said
    sensor.publish(MESSAGES)
    sent = 5 * MESSAGES
    sensor.wait(sent)
    assert sensor.acknowledged == set(range(1, sent + 1))
    even = {value for value in range(1, sent + 1) if value % 2 == 0}
    last = set(range(sent - MESSAGES + 1, sent + 1))
    until(lambda: reported.values() >= even | last, "all that the rules took is there", gateway.log)
    assert reported.values(0) & last
    assert reported.values(1)
    assert gateway.stop() == 0
    gateway.start()  # which tells what its ledger has at once, not in 30 s
    numbers = set(range(1, sent + 1))
    until(lambda: reported.numbers() >= numbers, "every number is explained", gateway.log)
    log = gateway.log()
    assert "unexpected error" not in log
    sensor.close()
    reported.close()


def test_signals_amid_traffic_change_and_lose_nothing(
    gateway: GatewayProcess, fleet: Mosquitto
) -> None:
    reported = Fleet(fleet)
    text = CONFIG.format(port=fleet.port, where="", more="")
    gateway.configure(text)
    gateway.start()
    assert gateway.process is not None
    sensor = SensorClient(gateway.port, "sensors/n1/count")
    for number in range(40):
        gateway.configure(f"[broker]\nmaximum_inflight = {100 + number}\n{text}")
        sensor.publish(25)
        gateway.process.send_signal(signal.SIGHUP)
    gateway.configure(text + "[brok")
    gateway.process.send_signal(signal.SIGHUP)
    until(lambda: "end of a table declaration" in gateway.log(), "it is refused", gateway.log)
    sensor.wait(1000)
    until(lambda: reported.values() >= set(range(1, 1001)), "all of it is there", gateway.log)
    assert gateway.stop() == 0
    sensor.close()
    reported.close()


ROUNDS = int(os.environ.get("TIDEGATE_CRASH_ROUNDS", "6"))


def test_a_kill_amid_reloads_leaves_all_in_order(
    gateway: GatewayProcess, fleet: Mosquitto, elsewhere: Mosquitto
) -> None:
    """At any moment of a reload that lets an uplink and the history come or go."""
    random, reported = Random(36), Fleet(fleet, elsewhere)
    other = f'[[uplink]]\nname = "new"\nurl = "mqtt://127.0.0.1:{elsewhere.port}"\n'
    parts = {"port": fleet.port, "storage": ""}
    one = TWO.format(**parts, both="", other="")
    texts = [
        one,
        TWO.format(**parts, both=', "new"', other=other),
        one.replace("[[uplink]]", '[history]\nkeep = "1h"\n[[uplink]]', 1),
    ]
    gateway.configure(texts[0])
    gateway.start()
    expected: set[tuple[str, int]] = set()
    for round_ in range(ROUNDS):
        assert gateway.process is not None
        sensor = SensorClient(gateway.port, f"sensors/n1/{round_}")
        sensor.publish(200)
        sensor.wait(20)
        gateway.configure(
            random.choice(texts) + '[[channel]]\nname = "a"\nfilter = "b"\n' * (round_ % 2)
        )
        gateway.process.send_signal(signal.SIGHUP)
        time.sleep(random.uniform(0, 0.15))  # somewhere in the reload
        gateway.kill()
        expected |= {(f"tidegate/barn/data/{sensor.topic}", value) for value in sensor.acknowledged}
        sensor.close()
        gateway.start()
    assert len(expected) >= 20 * ROUNDS
    collector = reported.collectors[0]

    def came() -> set[tuple[str, int]]:
        return {(each.topic, json.loads(each.payload)["value"]) for each in list(collector.data)}

    until(lambda: came() >= expected, "what was acknowledged is there", gateway.log)
    assert "salvage" not in gateway.log()
    assert gateway.stop() == 0
    reported.close()


def test_tls_comes_to_a_gateway_that_was_started_without(
    tmp_path: Path, gateway: GatewayProcess
) -> None:
    files = Path(__file__).parents[1] / "support/tls"
    names = {"certfile": files / "server.pem", "keyfile": files / "server.key"}
    tls = "".join(f"{name} {file}\n" for name, file in names.items())
    fleet = Mosquitto(tmp_path, f"listener {(port := free_port())} 127.0.0.1\n{tls}")
    fleet.start()
    reported = Fleet(fleet)
    gateway.configure("")
    gateway.start(anew=True)
    here = free_port()
    certificate = f'tls_certificate = "{names["certfile"]}"\ntls_key = "{names["keyfile"]}"\n'
    uplink = f'[uplink]\nurl = "mqtts://localhost:{port}"\nca_file = "{names["certfile"]}"\n'
    listener = f"[[listener]]\n[[listener]]\nport = {here}\n{certificate}"
    assert "uplink[0] is new" in reload(gateway, uplink + listener)
    sensor = SensorClient(gateway.port, "sensors/n1/count")
    sensor.publish(10)
    until(lambda: reported.values() == set(range(1, 11)), "it arrives by TLS", gateway.log)
    context = ssl.create_default_context(cafile=str(names["certfile"]))
    with socket.create_connection(("127.0.0.1", here), 10) as connection:
        context.wrap_socket(connection, server_hostname="localhost").close()
    sensor.close()
    assert gateway.stop() == 0
    reported.close()
    fleet.kill()


def test_another_fleet_comes_beside_the_first_and_takes_its_place(
    gateway: GatewayProcess, fleet: Mosquitto, elsewhere: Mosquitto
) -> None:
    """As when a fleet moves house: both, and then the new one alone."""
    reported = Fleet(fleet, elsewhere)
    storage = "[storage]\ncommit_delay = {}\n"
    other = f'[[uplink]]\nname = "new"\nurl = "mqtt://127.0.0.1:{elsewhere.port}"\n'

    def config(both: str = "", other: str = "", delay: int = 1) -> str:
        parts = {"port": fleet.port, "both": both, "other": other}
        return TWO.format(**parts, storage=storage.format(delay))

    alone = f'[gateway]\nid = "barn"\n{other}[[uplink.rule]]\ntopic = "sensors/#"\n'
    gateway.configure(config())
    gateway.start()
    sensor = SensorClient(gateway.port, "sensors/n1/count")
    for text in (config(', "new"', other), config(', "new"', other, 5), alone):
        sensor.publish(MESSAGES)
        assert "changed" in reload(gateway, text)
    sensor.publish(MESSAGES)
    sensor.wait(4 * MESSAGES)
    every = set(range(1, 4 * MESSAGES + 1))
    until(lambda: reported.values() == every, "all of it is there", gateway.log)
    until(lambda: reported.numbers() >= every, "of each number the end is known", gateway.log)
    both = reported.values(0) & reported.values(1)
    assert len(both) >= MESSAGES  # while there were two
    assert every - reported.values(0) <= reported.values(1)
    assert gateway.stop() == 0
    sensor.close()
    reported.close()


RECALL = "tidegate/barn/control/recall"

DOWN = '[[uplink.down]]\ntopic = "{}/#"\nlocal = "{{1+}}"\n'


def test_topics_that_are_gone_are_given_up_at_the_fleet(
    gateway: GatewayProcess, fleet: Mosquitto
) -> None:
    """By a reload, and by a start with another file."""
    text = (
        CONFIG.format(port=fleet.port, where="", more="recall = true") + "{}[history]\nkeep = 60\n"
    )
    gateway.configure(text.format("".join(map(DOWN.format, "abc"))))
    gateway.start()
    here = FleetCollector(gateway.port, "#")
    there = SensorClient(fleet.port, "a/1")

    def comes(topic: str) -> bool:
        return any(each.topic == topic for each in here.received)

    def subscribed() -> set[str]:
        """Return what the gateway remembers; it forgets a topic with the UNSUBACK."""
        names = "SELECT name FROM meta WHERE name GLOB 'uplink_topics:*'"
        with closing(sqlite3.connect(gateway.data / "tidegate.db", timeout=30)) as database:
            return {name.partition("/")[2] for (name,) in database.execute(names)}

    def send(*topics: str) -> None:
        for each in topics:
            there.topic = each
            there.publish(1)

    send("c/1")
    until(lambda: comes("c/1"), "it came down", gateway.log)
    reload(gateway, text.format("".join(map(DOWN.format, "bc"))))
    until(lambda: subscribed() == {"b/#", "c/#", RECALL}, "the fleet has heard of it", gateway.log)
    send("a/2", "c/2")
    until(lambda: comes("c/2"), "what is left came down", gateway.log)
    gateway.stop()
    gateway.configure(text.format(DOWN.format("c")).replace("recall = true", ""))
    gateway.start()
    until(lambda: subscribed() == {"c/#"}, "the fleet has heard of it", gateway.log)
    send("b/3", "c/3")
    until(lambda: comes("c/3"), "what is left came down", gateway.log)
    assert "no [[uplink.down]] matches it" not in gateway.log()
    there.close()
    here.close()
    assert gateway.stop() == 0
