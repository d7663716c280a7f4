"""A QoS 1 or 2 subscriber that stops acknowledging, and what that means for everyone else."""

import pytest

from gateway.mqtt.connection import MAXIMUM_UNSENT
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.broker import BrokerSettings
from gateway.settings.when_full import WhenFull
from tests.support.broker.broker_harness import Harness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.payloads import payloads

WINDOW, QUEUE = 2, 3
SUCCESS = ReasonCode.SUCCESS


@pytest.fixture
def harness() -> Harness:
    return Harness(
        BrokerSettings(
            maximum_inflight=WINDOW, maximum_queued_messages=QUEUE, queue_when_full=WhenFull.REJECT
        )
    )


def publish(client: MemoryClient, count: int, topic: str = "a") -> list[ReasonCode]:
    """Publish at QoS 1 and return the answers."""
    for number in range(count):
        client.send(Publish(topic, b"%d" % number, 1, packet_id=number + 1))
    return [packet.reason_code for packet in client.take() if isinstance(packet, PubAck)]


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("qos", [1, 2])
def test_of_a_session_that_ends_with_its_connection_the_newest_is_dropped(
    harness: Harness, version: int, qos: int
) -> None:
    stuck = harness.connect("stuck", version)
    stuck.subscribe("a", qos)
    other, publisher = harness.connect("other"), harness.connect("p")
    other.subscribe("a")
    assert publish(publisher, 10) == [SUCCESS] * 10
    assert payloads(other.take()) == [b"%d" % number for number in range(10)]
    assert payloads(stuck.take()) == [b"0", b"1"]
    assert harness.counters.count("publish/messages/dropped") == 10 - WINDOW - QUEUE
    stuck.send(PubAck(1), PubAck(2))
    assert payloads(stuck.take()) == [b"2", b"3"]
    stuck.send(PubAck(3))
    assert payloads(stuck.take()) == [b"4"]


def test_what_a_lasting_session_is_owed_is_refused_once_it_is_full(harness: Harness) -> None:
    stuck = harness.persistent("stuck")
    stuck.subscribe("a", 1)
    other, publisher = harness.connect("other"), harness.connect("p")
    other.subscribe("#")
    room = WINDOW + QUEUE
    codes = publish(publisher, room + 2)
    assert codes == [SUCCESS] * room + [ReasonCode.QUOTA_EXCEEDED] * 2
    assert len(payloads(other.take())) == room
    publisher.send(Publish("a", b"QoS 0"), Publish("b", b"other topic", 1, packet_id=99))
    assert publisher.take() == [PubAck(99)]
    assert payloads(other.take()) == [b"QoS 0", b"other topic"]
    stuck.send(PubAck(1), PubAck(2))
    assert payloads(stuck.take()) == [b"0", b"1", b"2", b"3"]
    assert publish(publisher, 1) == [SUCCESS]


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_it_may_be_its_own_publisher(harness: Harness, version: int, qos: int) -> None:
    client = harness.connect("c", version)
    client.subscribe("a")
    client.reads = False
    for number in range(1, 41):
        client.send(Publish("a", bytes(100_000), qos, packet_id=number * (qos > 0)))
    assert client.client.connection.output.size < MAXIMUM_UNSENT + 2 * 100_000
    assert len(harness.session("c").queue) == QUEUE
    client.reads = True
    harness.settle()
    assert len(payloads(client.take())) == MAXIMUM_UNSENT // 100_000 + 1 + QUEUE
