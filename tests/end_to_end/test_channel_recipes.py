"""Each recipe of the page of channels does what it says."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.broker.channels.channel import Channel
from gateway.config.load import load
from gateway.mqtt.packets import PubAck
from gateway.settings.broker import BrokerSettings
from tests.support.broker.channel_harness import channel_of, messages
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient
from tests.support.processes.gateway_process import GatewayProcess, tidegate
from tests.support.waiting import SECONDS

PAGE = Path(__file__).parents[2] / "docs/use/channels.md"
CHANNEL = '[[channel]]\nname = "{}"\nfilter = "{}"\n{}\n'


def recipes() -> dict[str, str]:
    """Return the text of each recipe by its title."""
    _, _, text = PAGE.read_text(encoding="utf-8").partition("\n## Recipes\n")
    parts = re.split(r"^\*\*(.+?)\.\*\*", text.partition("\n## ")[0], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


class Bench:
    """A broker with channels as a recipe has them."""

    def __init__(self, folder: Path, text: str) -> None:
        file = folder / "gateway.toml"
        file.write_text(text, encoding="utf-8")
        self.harness = DurableHarness(BrokerSettings(channels=load(file).channels))
        self.channel: Callable[[str], Channel] = lambda name: channel_of(self.harness, name)

    def worker(self, name: str, topic_filter: str, window: int | None = None) -> MemoryClient:
        client = self.harness.connect(name, receive_maximum=window)
        assert client.subscribe(topic_filter, 1) == 1
        return client

    def publish(self, topic: str, payload: bytes = b"x", **properties: object) -> None:
        self.harness.publish(topic, payload, 1, **properties)


def payloads(client: MemoryClient, *, acknowledge: bool = True) -> list[bytes]:
    found = list(messages(client))
    if acknowledge:
        client.send(*(PubAck(each.packet_id) for each in found))
    return [each.payload for each in found]


def in_block(title: str) -> str:
    (text,) = re.findall(r"```toml\n(.*?)```", recipes()[title], re.DOTALL)
    return str(text)


def in_line(title: str, key: str) -> list[str]:
    return re.findall(rf"`({key} = [^`]+)`", " ".join(recipes()[title].split())) or re.findall(
        r'`("[^`]+")`', recipes()[title]
    )


def hour_long_jobs(folder: Path, title: str) -> None:
    bench = Bench(folder, in_block(title) + CHANNEL.format("dead", "dead/#", ""))
    first, second = (bench.worker(name, "$queue/renders", 1) for name in "ab")
    for payload in (b"1", b"2", b"3"):
        bench.publish("render/x", payload)
    assert (payloads(first, acknowledge=False), payloads(second)) == ([b"1"], [b"2"])
    bench.harness.pass_time(3600)
    assert payloads(second, acknowledge=False) == [b"3"]
    first.drop()
    bench.harness.pass_time(0)
    assert bench.channel("renders").depth == 1
    for name in "cdefgh":  # each of the two is lost with three workers
        second.drop()
        second = bench.worker(name, "$queue/renders", 1)
        bench.harness.pass_time(0)
    assert (bench.channel("renders").depth, bench.channel("dead").depth) == (0, 2)


def at_most_once(folder: Path, title: str) -> None:
    (line,) = in_line(title, "max_attempts")
    keys = f'{line}\ndead_letter_topic = "dead"'
    bench = Bench(folder, CHANNEL.format("jobs", "jobs/#", keys))
    watcher = bench.worker("watcher", "dead")
    for _ in range(2):
        worker = bench.worker("worker", "$queue/jobs", 1)
        bench.publish("jobs/x")
        assert payloads(worker, acknowledge=False) == [b"x"]
        worker.drop()
        bench.harness.pass_time(0)
        assert payloads(watcher) == [b"x"]
    worker = bench.worker("worker", "$queue/jobs", 1)
    assert payloads(worker) == []


def fan_out(folder: Path, title: str) -> None:
    bench = Bench(folder, in_block(title))
    workers = [
        bench.worker(f"{name}{n}", f"$queue/{name}")
        for name in ("billing", "shipping")
        for n in (1, 2)
    ]
    bench.publish("orders/1")
    assert sorted(len(payloads(each)) for each in workers) == [0, 0, 1, 1]
    assert all(len(payloads(each)) == 0 for each in workers)


def order_by_key(folder: Path, title: str) -> None:
    (line,) = in_line(title, "choice")
    bench = Bench(folder, CHANNEL.format("orders", "orders/#", line))
    workers = [bench.worker(name, "$queue/orders", 1) for name in "abc"]
    for number in range(40):
        bench.publish(f"orders/{number % 4}/x", b"%d" % number)
    came: list[tuple[int, int]] = []
    while round_of := [(index, each) for index, w in enumerate(workers) for each in payloads(w)]:
        came += [(index, int(each)) for index, each in round_of]
    assert len(came) == 40
    for key in range(4):
        mine = [(who, number) for who, number in came if number % 4 == key]
        assert len({who for who, _ in mine}) == 1
        assert [number for _, number in mine] == [*range(key, 40, 4)]


def alarms_first(folder: Path, title: str) -> None:
    first, rule = (
        in_line(title, "priority")[0],
        re.findall(r'`("CASE[^`]+")`', " ".join(recipes()[title].split()))[0],
    )
    for line, high in (
        (first, {"user_properties": (("priority", "high"),)}),
        (f"priority = {rule}", {}),
    ):
        bench = Bench(folder, CHANNEL.format("all", "#", line))
        bench.publish("log/1", b"low")
        bench.publish("alarms/1", b"high", **high)
        worker = bench.worker("w", "$queue/all", 1)
        assert [payloads(worker), payloads(worker)] == [[b"high"], [b"low"]]


def last_state(folder: Path, title: str) -> None:
    (line,) = in_line(title, "last_value")
    bench = Bench(folder, CHANNEL.format("twin", "state/#", line))
    for number in range(6):
        bench.publish("state/x", b'{"device": %d, "n": %d}' % (number % 2, number))
    came = payloads(bench.worker("w", "$queue/twin"))
    assert [b'"n": 4' in came[0], b'"n": 5' in came[1], len(came)] == [True, True, 2]


RUN: dict[str, Callable[[Path, str], None]] = {
    "Jobs that take an hour": hour_long_jobs,
    "Work at most once": at_most_once,
    "Fan-out with copies": fan_out,
    "Order by key": order_by_key,
    "Alarms before everything else": alarms_first,
    "A database of the last state": last_state,
}


@pytest.mark.parametrize("title", recipes())
def test_a_recipe_does_what_it_says(title: str, tmp_path: Path) -> None:
    if title == "A queue for one device":
        assert len(commands(title)) == 2  # the test below runs them
    else:
        RUN[title](tmp_path, title)


def commands(title: str) -> list[str]:
    """Return the shell's commands of a recipe."""
    text = " ".join(recipes()[title].split())
    return re.findall(r"`((?:mosquitto_sub|tidegate) [^`]+)`", text) + re.findall(
        r"^ {4}(mosquitto_sub .+)$", recipes()[title], re.MULTILINE
    )


@pytest.mark.uncovered
@pytest.mark.mosquitto_clients
def test_its_commands_are_run(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path, in_block("Jobs that take an hour")).start()
    port = ["-p", str(gateway.port)]

    def publish(topic: str) -> None:
        words = ["mosquitto_pub", *port, "-q", "1", "-t", topic, "-m", "come"]
        subprocess.run(words, check=True, timeout=SECONDS)

    def consume(command: str, *more: str) -> subprocess.CompletedProcess[str]:
        words = [*shlex.split(command), *port, *more]
        return subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)

    try:
        session, create = commands("A queue for one device")
        assert consume(session, "-E").returncode == 0  # subscribes and goes
        url = ("--url", f"mqtt://127.0.0.1:{gateway.port}")
        assert tidegate(*shlex.split(create)[1:], *url).returncode == 0
        publish("commands/pump7/on")
        assert consume(session, "-C", "1").stdout == "come\n"
        assert consume("mosquitto_sub -q 1 -t $queue/pump7", "-C", "1").stdout == "come\n"
        (render,) = commands("Jobs that take an hour")
        publish("render/1")
        assert consume(render, "-C", "1").stdout == "come\n"
    finally:
        gateway.kill()
