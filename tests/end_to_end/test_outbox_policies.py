"""A small outbox, the fleet away: each policy keeps, refuses and counts what it says."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from gateway.mqtt.packets import PubAck, Publish, PubRec
from tests.support.fleet.fleet_collector import FleetCollector
from tests.support.nodes.sensor_client import SensorClient
from tests.support.processes.gateway_process import GatewayProcess
from tests.support.processes.mosquitto import Mosquitto
from tests.support.raw_client import RawClient
from tests.support.waiting import until

pytestmark = pytest.mark.mosquitto

QUOTA = 10
MESSAGES = 25
QUOTA_EXCEEDED = 0x97

CONFIG = """
[gateway]
id = "barn"
[broker]
sys_interval = 0.1
[outbox]
maximum_messages = {quota}
when_full = "{when_full}"
[uplink]
url = "mqtt://127.0.0.1:{port}"
[[uplink.rule]]
topic = "sensors/#"
[[uplink.rule]]
topic = "alarms/#"
stream = "alarms"
[[uplink.rule]]
topic = "state/#"
stream = "state"
[[uplink.stream]]
name = "alarms"
priority = 9
[[uplink.stream]]
name = "state"
mode = "latest"
"""


class Scene:
    """A gateway whose fleet is away until `bring_up`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.fleet = Mosquitto(folder)
        self.gateway: GatewayProcess | None = None
        self.collector: FleetCollector | None = None
        self._clients: list[SensorClient] = []

    def start(self, when_full: str, quota: int = QUOTA) -> GatewayProcess:
        config = CONFIG.format(port=self.fleet.port, when_full=when_full, quota=quota)
        folder = self._folder / "gateway"
        folder.mkdir()
        self.gateway = GatewayProcess(folder, config)
        return self.gateway.start()

    def sensor(self, topic: str) -> SensorClient:
        assert self.gateway is not None, "not started"
        sensor = SensorClient(self.gateway.port, topic)
        self._clients.append(sensor)
        return sensor

    def publish(self, topic: str, count: int) -> None:
        """Publish so many messages and wait until all are acknowledged."""
        sensor = self.sensor(topic)
        sensor.publish(count)
        sensor.wait(count)

    def figure(self, name: str) -> int:
        """Return a counter of the gateway."""
        assert self.gateway is not None, "not started"
        return int(figures(self.gateway.port).get(name, 0))

    def arrivals(self, count: int) -> list[tuple[str, int, int]]:
        """Bring the fleet up; return (stream, number, value) of the messages that come."""
        assert self.gateway is not None, "not started"
        self.fleet.start()
        collector = self.collector = FleetCollector(self.fleet.port)
        until(lambda: len(collector.data) >= count, f"{count} arrive", self.gateway.log)
        until(lambda: not waiting(self.gateway), "the outbox is empty", self.gateway.log)
        return [
            (*message.name[1:], json.loads(message.payload)["value"]) for message in collector.data
        ]

    def start_again(self) -> None:
        """Stop the gateway and start it: it tells what its ledger has at once, not in 30 s."""
        assert self.gateway is not None, "not started"
        assert self.gateway.stop() == 0
        self.gateway.start()

    def ledger(self) -> list[list[object]]:
        """Return the ranges that came up so far: first, last, outcome, cause."""
        assert self.collector is not None, "the fleet is away"
        messages = [m for m in self.collector.received if m.topic.endswith("/ledger")]
        return [each for m in messages for each in json.loads(m.payload)["ranges"]]

    def close(self) -> None:
        if self.collector is not None:
            self.collector.close()
        for sensor in self._clients:
            sensor.close()
        if self.gateway is not None:
            self.gateway.kill()
        self.fleet.kill()


def waiting(gateway: GatewayProcess | None) -> int:
    """How many rows are in the outbox on disk."""
    assert gateway is not None, "not started"
    with sqlite3.connect(gateway.data / "tidegate.db") as database:
        (count,) = database.execute("SELECT count(*) FROM outbox").fetchone()
    database.close()
    return int(count)


def figures(port: int) -> dict[str, str]:
    """Return what the gateway says of itself below $SYS/broker/tidegate/outbox."""
    found: dict[str, str] = {}
    done: list[int] = []
    prefix = "$SYS/broker/tidegate/outbox/"
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.on_message = lambda _client, _data, message: found.update(
        {message.topic.removeprefix(prefix): message.payload.decode()}
    )
    client.on_subscribe = lambda *_: done.append(1)
    client.connect("127.0.0.1", port)
    client.subscribe(f"{prefix}#", qos=1)
    client.loop_start()
    until(lambda: done and found, "the figures come")
    client.loop_stop()
    client.disconnect()
    return found


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("when_full", "kept", "evicted"),
    [
        ("drop-oldest", (MESSAGES - QUOTA + 1, MESSAGES), (1, MESSAGES - QUOTA)),
        ("drop-newest", (1, QUOTA), (QUOTA + 1, MESSAGES)),
    ],
)
def test_the_oldest_or_the_newest_are_dropped_and_use_up_numbers(
    scene: Scene, when_full: str, kept: tuple[int, int], evicted: tuple[int, int]
) -> None:
    scene.start(when_full)
    scene.publish("sensors/a", MESSAGES)
    figure = f"evicted/{when_full}"
    until(lambda: scene.figure(figure) == MESSAGES - QUOTA, "evictions are counted")
    numbers = range(kept[0], kept[1] + 1)
    assert scene.arrivals(QUOTA) == [("main", number, number) for number in numbers]
    scene.start_again()
    said = [*evicted, "evicted", when_full]
    until(lambda: said in scene.ledger(), "the ledger says so", lambda: str(scene.ledger()))


def test_drop_lowest_priority_keeps_alarms(scene: Scene) -> None:
    scene.start("drop-lowest-priority")
    scene.publish("alarms/a", 4)
    scene.publish("sensors/a", MESSAGES)
    scene.publish("alarms/a", 3)
    until(lambda: scene.figure("evicted/drop-lowest-priority") == 22, "evictions are counted")
    found = sorted(scene.arrivals(QUOTA))
    assert [each[:2] for each in found if each[0] == "alarms"] == [
        ("alarms", number) for number in range(1, 8)
    ]
    assert [each[1] for each in found if each[0] == "main"] == [23, 24, 25]


def test_latest_keeps_one_of_each_topic_across_a_kill(scene: Scene) -> None:
    gateway = scene.start("reject", quota=1_000)
    for topic in ("state/a", "state/b"):
        scene.publish(topic, MESSAGES)
    gateway.kill()
    gateway.start()
    scene.publish("state/a", 2)
    found = scene.arrivals(2)
    assert sorted(value for _, _, value in found) == [2, MESSAGES]
    assert [stream for stream, *_ in found] == ["state", "state"]


def test_reject_tells_an_mqtt_5_publisher_and_uses_up_no_number(scene: Scene) -> None:
    gateway = scene.start("reject")
    codes = asyncio.run(answers(gateway.port, QUOTA + 1))
    assert codes == [0] * QUOTA + [QUOTA_EXCEEDED] * 3
    until(lambda: scene.figure("rejected") == 4, "QoS 0 is counted too")
    found = scene.arrivals(QUOTA)
    assert [number for _, number, _ in found] == list(range(1, QUOTA + 1))


async def answers(port: int, count: int) -> list[int]:
    """Publish at QoS 1, twice at QoS 2, once at QoS 0; return the reason codes that came."""
    client = await RawClient.open(port)
    await client.connect_as("publisher")
    codes: list[int] = []
    for place in range(1, count + 4):
        qos = 1 if place <= count else 2 if place <= count + 2 else 0
        payload = b'{"value":%d}' % place
        packet_id = place if qos else 0
        await client.send(Publish("sensors/a", payload, qos, packet_id=packet_id))
        if qos:
            answer = await client.receive()
            assert isinstance(answer, PubAck if qos == 1 else PubRec)
            codes.append(answer.reason_code)
    assert await client.waiting() == []
    await client.close()
    return codes
