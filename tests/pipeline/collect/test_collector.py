"""The collector at a real Mosquitto: nothing that it acknowledged may be missing on the disk."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from pipeline.landing.listing import list_landing
from pipeline.landing.reports import collected
from pipeline.place import Place, place_of
from tests.support.disk.small_disk import SmallDisk
from tests.support.object_store import S3Server
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.waiting import SECONDS, until

pytestmark = pytest.mark.mosquitto

EPOCH = "00a1b2c3d4"
ROOT = Path(__file__).parents[3]
EXAMPLE = [
    line
    for line in (ROOT / "examples" / "pipeline" / "mosquitto.conf").read_text().splitlines()
    if not line.startswith("persistence")
]


class Publisher:
    """A gateway's uplink, as far as the collector sees it."""

    def __init__(self, port: int) -> None:
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def send(self, topic: str, payload: bytes, *pairs: tuple[str, str], qos: int = 1) -> None:
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # not annotated
        properties.UserProperty = list(pairs)
        sent = self._client.publish(topic, payload, qos, properties=properties)
        sent.wait_for_publish(SECONDS)
        assert sent.is_published()

    def number(self, seq: int, *pairs: tuple[str, str], qos: int = 1) -> None:
        topic, payload = "tidegate/barn/data/sensors/n1/a", b'{"value":1}'
        name = ("seq", f"{EPOCH}.main.{seq}")
        self.send(topic, payload, name, ("time", "17637400"), *pairs, qos=qos)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def start(
    port: int, landing: Path | Place, name: str = "one", *options: str
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pipeline.cli", "collect"]
    command += ["--broker", f"mqtt://127.0.0.1:{port}", "--landing", str(landing), "--name", name]
    command += ["--seconds", "0.2", "--ledger-seconds", "0.2", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def stop(process: subprocess.Popen[bytes]) -> str:
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    return out.decode()


def rows(landing: Path) -> list[dict[str, Any]]:
    return [
        row
        for file in sorted(landing.glob("*/[!.]*.parquet"))
        for row in pq.read_table(file).to_pylist()
    ]


def seqs(landing: Path) -> Counter[int]:
    return Counter(row["seq"] for row in rows(landing))


def forget_probes(landing: Path) -> None:
    for file in landing.glob("2*/[cl]*/*.jsonl"):
        file.unlink()


def reported(landing: Path, kind: str, gateway: str = "") -> list[bytes]:
    """Return the lines of a kind that a collector wrote, of a gateway if it is named."""
    files = sorted(landing.glob(f"2*/{kind}/collected.*.jsonl"))
    wanted = b'{"gateway_id":"%s' % gateway.encode()
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    return [line for line in lines if line.startswith(wanted)]


class Scene:
    """A broker, a publisher, and collectors that write into `landing`."""

    def __init__(self, folder: Path, configuration: str = "") -> None:
        self.broker = Mosquitto(folder, configuration)
        self.broker.start()
        self.publisher = Publisher(self.broker.port)
        self.landing = folder / "landing"
        self._collectors: list[subprocess.Popen[bytes]] = []

    def start(self, name: str = "one", *options: str) -> subprocess.Popen[bytes]:
        self._collectors.append(start(self.broker.port, self.landing, name, *options))
        return self._collectors[-1]

    def started(self) -> subprocess.Popen[bytes]:
        """Start a collector and return it once its session is there."""
        collector = self.start()
        self.wait()
        return collector

    def wait(self) -> None:
        """Return once a collector's session is there: what is sent then is kept for it."""
        until(self._landed, "the collector collects")

    def _landed(self) -> bool:
        self.publisher.send("tidegate/probe/clock", b"{}")
        self.publisher.send("tidegate/probe/ledger", b"{}")
        return all(reported(self.landing, kind, "probe") for kind in ("clock", "ledger"))

    def restart_broker(self) -> None:
        self.broker.save()
        self.publisher.close()
        self.broker.kill()
        self.broker.start()
        self.publisher = Publisher(self.broker.port)

    def close(self) -> None:
        self.publisher.close()
        for collector in self._collectors:
            end(collector)
        self.broker.kill()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "disk", 1)
    disk.mount()
    yield disk
    disk.unmount()


@pytest.fixture
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(tmp_path, getattr(request, "param", ""))
    yield made
    made.close()


def test_each_kind_of_message_lands(scene: Scene) -> None:
    collector, publisher, landing = scene.started(), scene.publisher, scene.landing
    publisher.number(1, ("was", "21"), ("site", "A"), ("site", "B"), ("seq", "x"), ("resent", "1"))
    lines = [
        {"epoch": EPOCH, "stream": "main", "seq": 2, "time": 5, "topic": "a/b", "text": "ä"},
        {"epoch": EPOCH, "stream": "main", "seq": 0, "time": 5, "topic": "a/b", "text": ""},
    ]
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    publisher.send("tidegate/barn/batch", b"\x01" + zlib.compress(text))
    publisher.send("tidegate/barn/batch", b"\x01damaged")
    publisher.send("tidegate/barn/data/without/number", b"1")
    publisher.send("tidegate/ba rn/data/x", b"1")
    publisher.send("tidegate/barn/ledger", b'{"epoch":\n1}')
    publisher.send("tidegate/barn/clock", b"{}")
    until(lambda: reported(landing, "clock", "barn"), "the last record lands")
    until(lambda: reported(landing, "ledger", "barn"), "the ledger lands")
    said = stop(collector)
    assert "the broker is mosquitto version" in said
    assert "stores 1,000 messages for it, or as many as its max_queued_messages says" in said
    assert "collected" in said
    first, second = sorted(rows(landing), key=lambda row: row["seq"])
    assert (first["gateway_id"], first["topic"], first["payload"]) == (
        "barn",
        "sensors/n1/a",
        b'{"value":1}',
    )
    assert (first["qos"], first["retain"], first["resent"], first["time"]) == (
        2,
        True,
        True,
        17637400,
    )
    assert [(pair["name"], pair["value"]) for pair in first["properties"]] == [
        ("site", "A"), ("site", "B"), ("seq", "x"),
    ]  # fmt: skip
    assert (second["seq"], second["payload"], second["qos"]) == (2, "ä".encode(), 1)
    faults = [
        json.loads(line)
        for file in landing.glob("2*/*.jsonl")
        for line in file.read_bytes().splitlines()
    ]
    assert sorted(fault.get("topic", "") for fault in faults) == [
        "a/b", "tidegate/ba rn/data/x", "tidegate/barn/batch", "without/number",
    ]  # fmt: skip
    assert reported(landing, "clock", "barn") == [collected("barn", b"{}")]
    assert reported(landing, "ledger", "barn") == [collected("barn", b'{"epoch": 1}')]


@pytest.mark.uncovered
@pytest.mark.parametrize(
    "scene", ["\n".join(["max_queued_messages 1000", *EXAMPLE])], indirect=True, ids=[""]
)
def test_the_example_for_mosquitto_keeps_all_for_a_collector_that_is_away(scene: Scene) -> None:
    stop(scene.started())
    for seq in range(1, 3_001):
        scene.publisher.number(seq)
    collector = scene.start()
    until(lambda: len(seqs(scene.landing)) == 3_000, "everything lands")
    stop(collector)


@pytest.mark.uncovered
def test_each_quality_of_service_lands_and_none_ends_the_connection(scene: Scene) -> None:
    """Mosquitto ends the connection of a client that acknowledges a message at QoS 0."""
    collector, publisher, landing = scene.started(), scene.publisher, scene.landing
    for seq in range(1, 31):
        publisher.number(seq, qos=seq % 3)
    until(lambda: set(seqs(landing)) == set(range(1, 31)), "everything lands")
    assert "collected" in stop(collector)
    assert sum(seqs(landing).values()) == 30
    assert collector.returncode == 0


def test_of_two_collectors_of_one_name_one_ends_with_the_reason(scene: Scene) -> None:
    collectors = [scene.start(), scene.start()]
    until(lambda: any(each.poll() is not None for each in collectors), "one of them ends")
    collectors.sort(key=lambda each: each.poll() is None)
    ended, other = collectors
    _, errors = ended.communicate(timeout=SECONDS)
    assert ended.returncode == 2
    *once, why = errors.decode().splitlines()
    assert set(once) == {"tidegate-pipeline: the connection to the broker ended; trying again"}
    assert len(once) <= 2, "each of its two sessions says it once"
    assert "has taken over the session of 'one': give each collector a --name" in why
    scene.wait()
    scene.publisher.number(1)
    until(lambda: seqs(scene.landing)[1], "the other collects")
    stop(other)


def test_ledgers_are_gathered_for_longer_than_records(scene: Scene) -> None:
    collector, publisher, landing = scene.started(), scene.publisher, scene.landing
    stop(collector)
    collector = scene.start("one", "--ledger-seconds", "600")
    for turn in range(1, 41):
        publisher.send(f"tidegate/g{turn % 2}/ledger", b'{"turn":%d}' % turn)
        publisher.number(turn)
    until(lambda: len(seqs(landing)) == 40, "the records land")
    assert not reported(landing, "ledger", "g")
    files = len(list(landing.glob("2*/ledger/*.jsonl")))
    stop(collector)
    assert [len(reported(landing, "ledger", gateway)) for gateway in ("g0", "g1")] == [20, 20]
    assert len(list(landing.glob("2*/ledger/*.jsonl"))) == files + 1


def refused(port: int, landing: Path) -> str:
    """Return the only line of a collector that the broker refuses."""
    collector = start(port, landing)
    try:
        _, errors = collector.communicate(timeout=SECONDS)
    finally:
        end(collector)
    assert collector.returncode == 2
    (line,) = errors.decode().splitlines()
    return line


def test_a_broker_that_does_not_answer_is_told_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        collector = start(server.getsockname()[1], tmp_path / "landing")
        for _ in range(6):  # of two sessions
            server.accept()[0].close()
        collector.send_signal(signal.SIGTERM)
        _, errors = collector.communicate(timeout=SECONDS)
    assert collector.returncode == 0
    assert errors.decode().splitlines() == [
        "tidegate-pipeline: the connection to the broker ended; trying again"
    ]


def test_a_broker_that_asks_for_a_password_is_told_once(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.touch()
    broker = Mosquitto(tmp_path, f"password_file {users}\nallow_anonymous false\n")
    broker.start()
    try:
        line = refused(broker.port, tmp_path / "landing")
        assert line == "tidegate-pipeline: the broker refused the connection: Not authorized"
    finally:
        broker.kill()


@pytest.mark.uncovered
def test_a_refused_subscription_is_told_once(tmp_path: Path) -> None:
    """Of what Mosquitto 2.0 would grant and then not send; a gateway is a fleet's broker, too."""
    rules = tmp_path / "acl"
    rules.write_text("topic read tidegate/+/ledger\n")
    gateway = GatewayProcess(tmp_path, f'[[listener]]\nacl_file = "{rules}"\n').start()
    try:
        line = refused(gateway.port, tmp_path / "landing")
        assert "the broker refused the subscription tidegate/+/clock: Not authorized" in line
    finally:
        gateway.kill()


@pytest.mark.uncovered
@pytest.mark.slow
def test_kills_of_collectors_and_broker_lose_nothing(scene: Scene) -> None:
    """Two collectors share the load; one of them, or the broker, is killed again and again."""
    collectors, landing, sent = [scene.start("one"), scene.start("two")], scene.landing, 0
    scene.wait()
    for turn in range(4):
        for _ in range(200):
            sent += 1
            scene.publisher.number(sent)
        if turn == 2:
            scene.restart_broker()
            forget_probes(landing)  # Mosquitto 2.0 forgets shared subscriptions at its end
            scene.wait()
        else:
            end(collectors[turn % 2])
            collectors[turn % 2] = scene.start(("one", "two")[turn % 2])
    until(lambda: len(seqs(landing)) == sent, "everything lands")
    for collector in collectors:
        stop(collector)
    assert set(seqs(landing)) == set(range(1, sent + 1))
    assert not list(landing.glob("*/.*.tmp"))
    again = sum(seqs(landing).values()) - sent
    assert again < sent


@pytest.mark.uncovered
@pytest.mark.slow
def test_a_store_has_everything_after_kills_and_throttling(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, sent = S3Server(), 0
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    store.files.create_dir("fleet")
    landing = place_of("s3://fleet/landing")

    def probed() -> bool:
        scene.publisher.send("tidegate/probe/clock", b"{}")
        return any("/clock/" in name for name in list_landing(landing).files)

    def seqs_there() -> set[int]:
        files = [name for name in list_landing(landing).files if name.endswith(".parquet")]
        tables = [pq.read_table(landing.path(name), filesystem=landing.files) for name in files]
        return {seq for table in tables for seq in table["seq"].to_pylist()}

    collector = start(scene.broker.port, landing)
    try:
        until(probed, "the collector collects")
        for _ in range(3):
            for _ in range(100):
                sent += 1
                scene.publisher.number(sent)
            store.throttle(2)
            end(collector)
            collector = start(scene.broker.port, landing)
        until(lambda: seqs_there() == set(range(1, sent + 1)), "everything lands")
        store.throttle(100_000)
        scene.publisher.number(sent + 1)
        assert collector.stderr is not None
        said = collector.stderr.readline().decode()
        assert said.startswith(f"tidegate-pipeline: cannot write to {landing}: "), said
        assert said.endswith("Reduce your request rate.; trying again\n"), said
        store.throttle(0)
        until(lambda: sent + 1 in seqs_there(), "what was not acknowledged lands")
        stop(collector)
    finally:
        end(collector)
        store.stop()


@pytest.mark.mount
def test_what_a_full_disk_refuses_is_not_acknowledged(scene: Scene, small_disk: SmallDisk) -> None:
    """Once there is room, the collector goes on by itself; one that ended before leaves no gap."""
    scene.landing = landing = small_disk.folder / "landing"
    full = f"cannot write to {landing}: No space left on device; trying again\n".encode()
    collector, publisher = scene.started(), scene.publisher
    small_disk.fill()
    for seq in range(1, 50):
        publisher.number(seq)
    assert collector.stderr is not None
    assert collector.stderr.readline() == b"tidegate-pipeline: " + full
    assert seqs(landing) == Counter()
    small_disk.empty()
    until(lambda: set(seqs(landing)) == set(range(1, 50)), "everything lands")
    small_disk.fill()
    publisher.number(50)
    assert collector.stderr.readline() == b"tidegate-pipeline: " + full
    stop(collector)
    small_disk.empty()
    assert 50 not in seqs(landing)
    collector = scene.start()
    until(lambda: set(seqs(landing)) == set(range(1, 51)), "what was not acknowledged lands")
    stop(collector)


@pytest.mark.uncovered
def test_what_cannot_be_written_is_not_acknowledged(scene: Scene) -> None:
    """A disk that refuses is a folder that is a file; once it is one, everything lands."""
    collector, publisher, landing = scene.started(), scene.publisher, scene.landing
    day = time.strftime("%Y%m%d", time.gmtime())
    shutil.rmtree(landing / day)
    (landing / day).write_text("")
    os.set_blocking(collector.stderr.fileno(), False)  # type: ignore[union-attr]  # it is a pipe
    for seq in range(1, 50):
        publisher.number(seq)

    def reported() -> bool:
        said = collector.stderr.read()  # type: ignore[union-attr]  # it is a pipe
        return b"cannot write to" in (said or b"")

    until(reported, "the collector says that it cannot write")
    end(collector)
    (landing / day).unlink()
    collector = scene.start()
    until(lambda: set(seqs(landing)) == set(range(1, 50)), "everything lands")
    stop(collector)


WRONG = [
    (["--broker", "http://x"], "is not mqtt://HOST"),
    (["--broker", "mqtt://x", "--name", "../a"], "is not letters"),
    (["--broker", "mqtt://x", "--rows", "0"], "must be more than 0"),
    (["--broker", "mqtt://x", "--ledger-seconds", "0"], "must be more than 0"),
]


@pytest.mark.parametrize(("options", "said"), WRONG, ids=range(len(WRONG)))
def test_wrong_options_are_told(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from pipeline.cli import main

    assert main(["collect", *options]) == 2
    assert said in capsys.readouterr().err
