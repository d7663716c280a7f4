import pytest

from gateway.broker.lone_way import LoneWay
from gateway.broker.settings import BrokerSettings
from gateway.mqtt.connection import MAXIMUM_UNSENT
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    Packet,
    PingReq,
    PubAck,
    Publish,
    Unsubscribe,
)
from tests.support.broker_harness import Harness
from tests.support.lone_pair import SHORT
from tests.support.memory_client import MemoryClient
from tests.support.wire import Wire

TOPIC = "plant/line-1/device-7/telemetry"


class Pair:
    """A publisher that has a way to a subscriber."""

    def __init__(self, version: int = MQTT_5, settings: BrokerSettings | None = None) -> None:
        self.version = version
        self.harness = Harness(settings)
        self.subscriber = self.connect("subscriber")
        self.subscriber.subscribe(TOPIC)
        self.publisher = self.harness.connect("publisher", version)
        self.open_way()

    def connect(self, client_id: str, receive_maximum: int | None = None) -> MemoryClient:
        return self.harness.persistent(
            client_id, self.version, maximum_packet_size=1_000, receive_maximum=receive_maximum
        )

    def open_way(self) -> None:
        for payload in (b"first", b"second"):
            self.publisher.send(Publish(TOPIC, payload))
        self.subscriber.take()

    @property
    def way(self) -> LoneWay:
        way = self.publisher.client.way
        assert way is not None
        return way

    def wire(self) -> Wire:
        wire = self.subscriber.client.connection.output.transport = Wire()
        return wire

    def encoded(self, payload: bytes = b"21.5") -> bytes:
        return encode(Publish(TOPIC, payload), self.version)


@pytest.fixture
def pair() -> Pair:
    return Pair()


def payloads(client: MemoryClient) -> list[bytes]:
    return [packet.payload for packet in client.take() if isinstance(packet, Publish)]


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
@pytest.mark.parametrize("size", [0, 4, SHORT, 900])
def test_a_message_leaves_at_once_as_it_came(version: int, size: int) -> None:
    pair = Pair(version)
    wire, broker = pair.wire(), pair.harness.broker
    traffic, hits = broker.traffic, broker.router.routes.hits
    before = [getattr(traffic, name) for name in traffic.__slots__]
    packets = broker.packets()
    data = pair.encoded(b"x" * size)
    assert pair.way.pass_on(data, True)
    assert wire.written == [data]
    assert not pair.subscriber.client.connection.output.size
    counted = [getattr(traffic, name) for name in traffic.__slots__]
    assert dict(
        zip(
            traffic.__slots__,
            [after - then for after, then in zip(counted, before, strict=True)],
            strict=True,
        )
    ) == {
        "bytes_received": size,
        "bytes_sent": size,
        "full_at": 0,
        "messages_received": 1,
        "messages_sent": 1,
        "network_received": len(data),
        "network_sent": len(data),
        "turns": 0,
    }
    assert broker.packets() == (packets[0] + 1, packets[1] + 1)
    assert broker.router.routes.hits == hits + 1


def test_messages_of_any_size_go_one_behind_the_other(pair: Pair) -> None:
    wire = pair.wire()
    sent = [pair.encoded(b"x" * size) for size in (1, 1, 2, 300, 1)]
    assert all(pair.way.pass_on(data, True) for data in sent)
    assert wire.written == sent


def test_a_message_waits_for_the_turn_s_end_where_others_are_served_too(pair: Pair) -> None:
    wire = pair.wire()
    assert pair.way.pass_on(pair.encoded(), False)
    assert not wire.written
    pair.harness.settle()
    assert payloads(pair.subscriber) == [b"21.5"]


def test_a_message_goes_behind_what_waits(pair: Pair) -> None:
    wire = pair.wire()
    pair.subscriber.reads = False
    pair.harness.publish(TOPIC, b"before")
    assert pair.way.pass_on(pair.encoded(), True)
    assert not wire.written
    pair.subscriber.reads = True
    pair.harness.settle()
    assert payloads(pair.subscriber) == [b"before", b"21.5"]


def test_a_message_waits_while_the_transport_takes_nothing(pair: Pair) -> None:
    assert pair.subscriber.client.connection.output.transport is None
    assert pair.way.pass_on(pair.encoded(), True)
    pair.harness.settle()
    assert payloads(pair.subscriber) == [b"21.5"]


def test_a_turn_that_has_enough_to_write_takes_no_more(pair: Pair) -> None:
    wire, traffic = pair.wire(), pair.harness.broker.traffic
    traffic.end_turn()
    assert not pair.way.pass_on(pair.encoded(), False)
    assert not pair.subscriber.client.connection.output.size
    assert pair.way.pass_on(pair.encoded(), True)
    assert wire.written == [pair.encoded()]


WHOLE = encode(Publish(TOPIC, b"21.5"), MQTT_5)


@pytest.mark.parametrize(
    "data",
    [
        encode(Publish(TOPIC, b"21.5", retain=True), MQTT_5),
        encode(Publish(TOPIC, b"21.5", 1, packet_id=1), MQTT_5),
        encode(Publish("plant/line-1/device-8/telemetry", b"21.5"), MQTT_5),
        encode(Publish(TOPIC, b"x" * 1_000), MQTT_5),
        encode(PingReq(), MQTT_5),
        WHOLE + WHOLE,
        WHOLE[:1],
        WHOLE[:-1],
        WHOLE + b"\x30",
        b"\x30" + bytes((WHOLE[1] | 0x80, 0)) + WHOLE[2:],
        WHOLE + b"x" * (SHORT + 1 - len(WHOLE)),
    ],
    ids=[
        "retained",
        "QoS 1",
        "another topic",
        "too large for the receiver",
        "another packet",
        "two",
        "a byte",
        "cut",
        "more behind it",
        "length too long",
        "a size no packet has",
    ],
)
def test_anything_else_is_left_to_others(pair: Pair, data: bytes) -> None:
    assert not pair.way.pass_on(data, True)
    assert pair.way.pass_on(WHOLE, True)


def test_a_packet_above_our_maximum_is_left_to_who_refuses_it() -> None:
    pair = Pair(settings=BrokerSettings(maximum_packet_size=200))
    data = pair.encoded(b"x" * 200)
    assert not pair.way.pass_on(data, True)
    pair.publisher.send_bytes(data)
    assert isinstance(pair.publisher.take()[-1], Disconnect)


def test_a_new_subscriber_gets_the_next_message(pair: Pair) -> None:
    other = pair.harness.connect("other")
    other.subscribe("plant/#")
    assert not pair.way.pass_on(WHOLE, True)
    pair.publisher.send_bytes(WHOLE)
    assert payloads(other) == payloads(pair.subscriber) == [b"21.5"]
    other.send(Unsubscribe(2, ["plant/#"]))
    assert not pair.way.pass_on(WHOLE, True)
    pair.publisher.send_bytes(WHOLE)
    assert pair.way.pass_on(WHOLE, True)


def test_a_session_that_came_back_is_reached_over_its_new_connection(pair: Pair) -> None:
    pair.subscriber.drop()
    assert not pair.way.pass_on(WHOLE, True)
    again = pair.connect("subscriber")
    assert not pair.way.pass_on(WHOLE, True)
    pair.publisher.send_bytes(WHOLE)
    assert pair.way.pass_on(WHOLE, True)
    pair.harness.settle()
    assert payloads(again) == [b"21.5"] * 2


def test_a_message_is_queued_behind_what_waits_for_a_window(pair: Pair) -> None:
    pair.subscriber.subscribe("numbered", qos=1)
    limit = pair.harness.session("subscriber").inflight.limit
    for _ in range(limit + 1):
        pair.harness.publish("numbered", qos=1)
    assert not pair.subscriber.client.connection.output.size
    assert not pair.way.pass_on(WHOLE, True)


def test_there_is_no_way_while_something_is_to_be_sent_again(pair: Pair) -> None:
    pair.subscriber.subscribe("numbered", qos=1)
    for _ in range(2):
        pair.harness.publish("numbered", qos=1)
    pair.subscriber.drop()
    again = pair.connect("subscriber", receive_maximum=1)
    assert pair.harness.session("subscriber").inflight.to_send_again
    for _ in range(2):
        pair.publisher.send_bytes(WHOLE)
        assert pair.publisher.client.way is None
    assert payloads(again) == [b"x"]
    again.send(PubAck(1))
    assert payloads(again) == [b"x", b"21.5", b"21.5"]
    pair.publisher.send_bytes(WHOLE)
    assert pair.way.pass_on(WHOLE, True)


def test_a_receiver_that_reads_too_slowly_gets_no_more(pair: Pair) -> None:
    pair.subscriber.client.connection.send_run(bytes(MAXIMUM_UNSENT), 1)
    assert not pair.way.pass_on(WHOLE, True)


@pytest.mark.parametrize("packet", [PingReq(), Publish("else/where", b"1"), Disconnect()])
def test_whatever_else_comes_ends_the_way(pair: Pair, packet: Packet) -> None:
    pair.publisher.send(packet)
    assert pair.publisher.client.way is None


def test_a_part_of_a_packet_ends_the_way(pair: Pair) -> None:
    pair.publisher.send_bytes(WHOLE[:-1])
    assert pair.publisher.client.way is None
    pair.publisher.send_bytes(WHOLE[-1:])
    assert payloads(pair.subscriber) == [b"21.5"]


def test_a_client_that_is_ended_has_no_way(pair: Pair) -> None:
    pair.publisher.client.close()
    assert pair.publisher.client.way is None


def test_two_receivers_have_no_way() -> None:
    harness = Harness()
    for name in ("one", "other"):
        harness.connect(name).subscribe("a")
    publisher = harness.connect("publisher")
    for _ in range(3):
        publisher.send(Publish("a", b"1"))
    assert publisher.client.way is None
