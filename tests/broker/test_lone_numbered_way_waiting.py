"""What goes the lone way at QoS 1 and cannot leave at once leaves at the turn's end."""

from collections.abc import Callable

import pytest

from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PingResp, PubAck, Publish
from tests.support.broker_harness import Harness
from tests.support.lone_pair import TOPIC, Pair


def served_with_others(pair: Pair) -> bool:
    return False


def blocked(pair: Pair) -> bool:
    pair.subscriber.client.connection.output.transport = None
    return True


def queued(pair: Pair) -> bool:
    pair.subscriber.client.send(PingResp())
    return True


def answers_blocked(pair: Pair) -> bool:
    pair.publisher.client.connection.output.transport = None
    return True


def answers_queued(pair: Pair) -> bool:
    pair.publisher.client.send(PingResp())
    return True


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize(
    "behind", [served_with_others, blocked, queued, answers_blocked, answers_queued]
)
def test_what_cannot_leave_at_once_waits_for_the_turn_s_end(
    version: int, behind: Callable[[Pair], bool]
) -> None:
    pair = Pair(version)
    at_once = behind(pair)
    broker = pair.harness.broker
    packets, sent = broker.packets(), broker.traffic.network_sent
    connection = pair.publisher.client.connection
    assert pair.way.pass_on(pair.encoded(), at_once, pair.harness.now, pair.harness.wall)
    assert connection.unacknowledged == (1 if connection.output.size else 0)
    assert broker.packets() == (packets[0] + 1, packets[1] + 2)
    assert broker.traffic.network_sent - sent == sum(
        len(each) for wire in pair.wires for each in wire.written
    )
    pair.harness.settle()
    for client, wire in zip((pair.subscriber, pair.publisher), pair.wires, strict=True):
        client._read(b"".join(wire.written))
    received, answered = pair.subscriber.take(), pair.publisher.take()
    assert received[-1] == Publish(TOPIC, b"21.5", 1, packet_id=3)
    assert answered[-1] == PubAck(7)
    assert received[:-1] == ([PingResp()] if behind is queued else [])
    assert answered[:-1] == ([PingResp()] if behind is answers_queued else [])
    assert connection.unacknowledged == 0


def test_who_sends_to_itself_gets_its_message_first() -> None:
    harness = Harness()
    client = harness.connect("c")
    client.subscribe(TOPIC, 1)
    for number in (1, 2, 3):
        client.send(Publish(TOPIC, b"x", 1, packet_id=number))
        assert client.take() == [
            Publish(TOPIC, b"x", 1, packet_id=number),
            PubAck(number),
        ]
        client.send(PubAck(number))
    assert client.client.numbered_way is not None
