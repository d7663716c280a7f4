import pytest

from gateway.broker.acknowledgement_runs import finish_alone
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import MQTT_5, PubAck, Publish
from tests.support.broker_harness import Harness
from tests.support.lone_pair import TOPIC, Pair
from tests.support.wire import Wire


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_an_acknowledgement_does_not_end_the_way(pair: Pair) -> None:
    pair.publisher.subscribe("b", 1)
    pair.publisher.send(Publish(TOPIC, b"x", 1, packet_id=1))
    pair.subscriber.send(PubAck(3))
    pair.harness.publish("b", qos=1)
    pair.publisher.send(PubAck(1))
    assert pair.goes()


@pytest.mark.parametrize(
    "data",
    [
        encode(PubAck(9), MQTT_5),
        encode(PubAck(3), MQTT_5) * 2,
        encode(PubAck(3), MQTT_5)[:3],
        b"\x40\x03\x00\x03\x00",
        b"\x50\x02\x00\x03",
        b"\x41\x02\x00\x03",
    ],
    ids=["unknown", "two", "cut", "with a reason code", "PUBREC", "flags"],
)
def test_another_acknowledgement_is_left_to_others(pair: Pair, data: bytes) -> None:
    assert pair.goes()
    traffic = pair.harness.broker.traffic
    received = traffic.network_received
    assert not finish_alone(pair.subscriber.client, data, traffic)
    assert traffic.network_received == received
    assert len(pair.harness.session("subscriber").inflight) == 1


def test_what_waits_for_the_window_follows_the_acknowledgement(pair: Pair) -> None:
    session = pair.harness.session("subscriber")
    assert pair.goes()
    session.inflight.limit = 1
    pair.publisher.send(Publish(TOPIC, b"2", 1, packet_id=2))
    assert len(session.queue) == 1
    assert not finish_alone(pair.subscriber.client, encode(PubAck(3), MQTT_5), session.traffic)
    pair.subscriber.send(PubAck(3))
    assert pair.subscriber.take() == [Publish(TOPIC, b"2", 1, packet_id=4)]


def test_what_completes_another_packet_is_no_acknowledgement(pair: Pair) -> None:
    assert pair.goes()
    packet = encode(Publish("a", b"\x40\x02\x00\x03"), MQTT_5)
    pair.subscriber.send_bytes(packet[:-4])
    pair.subscriber.send_bytes(packet[-4:])
    assert len(pair.harness.session("subscriber").inflight) == 1


def test_what_comes_before_connect_is_no_acknowledgement() -> None:
    harness = Harness()
    client = harness.open()
    client.send(PubAck(1))
    assert client.closed()


def test_a_session_that_came_back_is_sent_again_what_went_alone() -> None:
    pair = Pair(persistent=True)
    way = pair.way
    for number in (1, 2):
        pair.publisher.send(Publish(TOPIC, b"%d" % number, 1, packet_id=number))
    pair.subscriber.drop()
    again = pair.harness.persistent("subscriber", receive_maximum=1)
    again.client.connection.output.transport = wire = Wire()
    inflight = pair.harness.session("subscriber").inflight
    assert inflight.to_send_again
    assert not way.pass_on(pair.encoded(), True, pair.harness.now, pair.harness.wall)
    assert not inflight.finish_alone(3)
    again.send(PubAck(3), PubAck(4))
    assert again.take() == [
        Publish(TOPIC, b"%d" % number, 1, dup=True, packet_id=2 + number) for number in (1, 2)
    ]
    assert not len(inflight)
    assert not way.pass_on(pair.encoded(), True, pair.harness.now, pair.harness.wall)
    assert wire.written == []
