from collections.abc import Callable

import pytest

from gateway.mqtt.connection import MAXIMUM_UNSENT
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    Publish,
)
from gateway.session.inflight import MAXIMUM_BYTES, MAXIMUM_PACKET_ID
from tests.support.broker_harness import Harness
from tests.support.lone_pair import SHORT, TOPIC, Pair

PINGS = bytes(64 * 1024)
"""Stand for answers that nobody reads."""

VERSIONS = pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])


@pytest.fixture
def pair() -> Pair:
    return Pair()


@VERSIONS
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("size", [0, 4, SHORT, 900])
def test_a_message_and_its_acknowledgements_leave_at_once(
    version: int, persistent: bool, size: int
) -> None:
    pair = Pair(version, persistent=persistent)
    broker, payload = pair.harness.broker, b"x" * size
    traffic, hits, packets = broker.traffic, broker.router.routes.hits, broker.packets()
    before = [getattr(traffic, name) for name in traffic.__slots__]
    data = pair.encoded(payload, 0x1234)
    assert pair.goes(data)
    assert pair.written() == [
        [pair.encoded(payload, 3)],
        [encode(PubAck(0x1234), version)],
    ]
    session = pair.harness.session("subscriber")
    assert len(session.inflight) == 1
    assert broker.packets() == (packets[0] + 1, packets[1] + 2)
    pair.subscriber.send(PubAck(3))
    assert len(session.inflight) == 0
    assert session.inflight.room == (session.inflight.limit, MAXIMUM_BYTES)
    assert broker.packets() == (packets[0] + 2, packets[1] + 2)
    assert broker.router.routes.hits == hits + 1
    assert pair.publisher.client.connection.unacknowledged == 0
    counted = [getattr(traffic, name) for name in traffic.__slots__]
    change = [after - then for after, then in zip(counted, before, strict=True)]
    assert dict(zip(traffic.__slots__, change, strict=True)) == {
        "bytes_received": size,
        "bytes_sent": size,
        "full_at": 0,
        "messages_received": 1,
        "messages_sent": 1,
        "network_received": len(data) + 4,
        "network_sent": len(data) + 4,
        "turns": 0,
    }


def test_the_second_message_of_its_kind_has_a_way() -> None:
    harness = Harness()
    harness.alone = True
    harness.connect("subscriber").subscribe(TOPIC, 1)
    publisher = harness.connect("publisher")
    ways = []
    for number in (1, 2):
        publisher.send(Publish(TOPIC, b"x", 1, packet_id=number))
        ways.append(publisher.client.numbered_way is not None)
    assert ways == [False, True]


def leave(harness: Harness) -> None:
    client = harness.persistent("c")
    client.subscribe(TOPIC, 1)
    client.drop()


NO_WAY: dict[str, Callable[[Harness], object]] = {
    "nobody": lambda _: None,
    "two": lambda harness: [harness.connect(name).subscribe(TOPIC, 1) for name in ("one", "other")],
    "another version": lambda harness: harness.connect("c", MQTT_3_1_1).subscribe(TOPIC, 1),
    "who is away": leave,
}


@pytest.mark.parametrize("subscribe", NO_WAY.values(), ids=NO_WAY)
def test_others_have_no_way(subscribe: Callable[[Harness], object]) -> None:
    harness = Harness()
    harness.alone = True
    subscribe(harness)
    publisher = harness.connect("publisher")
    for number in (1, 2, 3):
        publisher.send(Publish(TOPIC, b"x", 1, packet_id=number))
    assert publisher.client.numbered_way is None


def test_there_is_no_way_at_qos_2() -> None:
    harness = Harness()
    harness.connect("c").subscribe(TOPIC, 2)
    publisher = harness.connect("publisher")
    for number in (1, 2, 3):
        publisher.send(Publish(TOPIC, b"x", 2, packet_id=number))
    assert publisher.client.numbered_way is None


WHOLE = encode(Publish(TOPIC, b"21.5", 1, packet_id=7), MQTT_5)
BEGINNING = WHOLE[:-7]  # before the packet identifier
OTHERWISE = {
    "retained": encode(Publish(TOPIC, b"21.5", 1, retain=True, packet_id=7), MQTT_5),
    "a duplicate": encode(Publish(TOPIC, b"21.5", 1, dup=True, packet_id=7), MQTT_5),
    "QoS 0": encode(Publish(TOPIC, b"21.5"), MQTT_5),
    "QoS 2": encode(Publish(TOPIC, b"21.5", 2, packet_id=7), MQTT_5),
    "another topic": WHOLE.replace(b"device-7", b"device-8"),
    "too large for the receiver": encode(Publish(TOPIC, b"x" * 1_000, 1, packet_id=7), MQTT_5),
    "no packet identifier": BEGINNING + b"\0\0\0" + b"21.5",
    "properties": BEGINNING + b"\0\7\2\1\1" + b"5",
    "another packet": encode(PingReq(), MQTT_5),
    "two": WHOLE * 2,
    "a byte": WHOLE[:1],
    "cut": WHOLE[:-1],
    "more behind it": WHOLE + b"\x32",
    "nothing behind the topic": BEGINNING.replace(WHOLE[1:2], bytes((len(BEGINNING) - 2,)), 1),
    "no property length": BEGINNING.replace(WHOLE[1:2], bytes((len(BEGINNING),)), 1) + b"\0\7",
    "length too long": b"\x32" + bytes((WHOLE[1] | 0x80, 0)) + WHOLE[2:],
}


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("data", OTHERWISE.values(), ids=OTHERWISE)
def test_anything_else_is_left_to_others(pair: Pair, data: bytes, before: bool) -> None:
    assert not before or pair.goes()
    written = [len(each) for each in pair.written()]
    assert not pair.goes(data)
    assert [len(each) for each in pair.written()] == written
    assert len(pair.harness.session("subscriber").inflight) == before
    assert pair.goes()


def queued(pair: Pair) -> None:
    pair.subscriber.client.send(PingResp())


def subscribed(pair: Pair) -> None:
    pair.harness.connect("other").subscribe("plant/#")


def dropped(pair: Pair) -> None:
    pair.subscriber.drop()


def window_full(pair: Pair) -> None:
    pair.harness.session("subscriber").inflight.limit = 0


def bytes_full(pair: Pair) -> None:
    pair.subscriber.client.connection.maximum_packet_size = 2 * MAXIMUM_BYTES
    assert pair.goes(pair.encoded(bytes(MAXIMUM_BYTES)))


def a_run_is_on_its_way(pair: Pair) -> None:
    pair.harness.connect("other").send(
        *(Publish(TOPIC, b"x", 1, packet_id=number) for number in (1, 2))
    )


def identifier_taken(pair: Pair) -> None:
    inflight = pair.harness.session("subscriber").inflight
    assert pair.goes()
    inflight._last -= 1


def identifiers_at_an_end(pair: Pair) -> None:
    pair.harness.session("subscriber").inflight._last = MAXIMUM_PACKET_ID


def read_too_slowly(pair: Pair) -> None:
    pair.subscriber.client.connection.send_run(bytes(MAXIMUM_UNSENT), 1)


def answers_unread(pair: Pair) -> None:
    pair.publisher.client.connection.output.transport = None
    for _ in range(MAXIMUM_UNSENT // len(PINGS)):
        pair.publisher.client.connection.acknowledge_like(PINGS, 1)


def turn_full(pair: Pair) -> None:
    queued(pair)
    pair.harness.broker.traffic.end_turn()


def receive_maximum_reached(pair: Pair) -> None:
    connection = pair.publisher.client.connection
    connection.receive_maximum = connection.unacknowledged


@pytest.mark.parametrize(
    "obstacle",
    [
        subscribed,
        dropped,
        window_full,
        bytes_full,
        a_run_is_on_its_way,
        identifier_taken,
        identifiers_at_an_end,
        read_too_slowly,
        answers_unread,
        turn_full,
        receive_maximum_reached,
    ],
)
def test_nothing_goes_where_something_is_in_the_way(
    pair: Pair, obstacle: Callable[[Pair], None]
) -> None:
    obstacle(pair)
    before = [list(each) for each in pair.written()]
    assert not pair.goes()
    assert pair.written() == before


def test_a_message_waits_behind_what_waits_for_the_window(pair: Pair) -> None:
    way, session = pair.way, pair.harness.session("subscriber")
    session.inflight.limit = 1
    for number in (1, 2):
        pair.publisher.send(Publish(TOPIC, b"x", 1, packet_id=number))
    assert len(session.queue) == 1
    session.inflight.limit = 5
    assert not way.pass_on(WHOLE, True, pair.harness.now, pair.harness.wall)
    pair.subscriber.send(PubAck(3))
    assert len(session.queue) == 0


def test_it_keeps_its_place_among_what_was_sent(pair: Pair) -> None:
    other, inflight = pair.harness.connect("other"), pair.harness.session("subscriber").inflight
    other.send(*(Publish(TOPIC, payload, 1, packet_id=5) for payload in (b"1", b"2")))
    assert [message.delivery.message.payload for message in inflight] == [b"1", b"2"]
    assert pair.goes(pair.encoded(b"3"))
    other.send(*(Publish(TOPIC, payload, 1, packet_id=5) for payload in (b"4", b"5")))
    assert len(inflight) == 5
    payloads = [message.delivery.message.payload for message in inflight]
    assert payloads == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("packet", [PingReq(), Publish("else/where", b"1"), Disconnect()])
def test_whatever_else_comes_ends_the_way(pair: Pair, packet: Packet) -> None:
    pair.publisher.send(packet)
    assert pair.publisher.client.numbered_way is None


def test_a_part_of_a_packet_ends_the_way(pair: Pair) -> None:
    pair.publisher.send_bytes(WHOLE[:-1])
    assert pair.publisher.client.numbered_way is None


def test_a_client_that_is_ended_has_no_way(pair: Pair) -> None:
    pair.publisher.client.close()
    assert pair.publisher.client.numbered_way is None
