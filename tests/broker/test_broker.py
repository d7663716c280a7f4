import pytest

from gateway.broker.broker import AT_ONCE
from gateway.broker.memory_budget import INTERVAL
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import (
    MQTT_5,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from gateway.mqtt.properties import Properties
from gateway.session import traffic
from tests.support.broker.broker_harness import Harness


def test_nothing_is_sent_behind_a_disconnect(harness: Harness) -> None:
    """A client that is being closed gets no message of the same turn."""
    client = harness.persistent()
    client.subscribe("a", 1)
    client.reads = False  # its output stays where we can see it
    client.send_bytes(b"\x00\x00")
    harness.publish("a", b"1", qos=1)
    harness.publish("a", b"2")
    client.reads = True
    harness.settle()
    assert [type(packet) for packet in client.take()] == [Disconnect]
    assert harness.persistent().take() == [Publish("a", b"1", 1, packet_id=1)]


def test_packets_and_bytes_are_counted(harness: Harness) -> None:
    harness.open().send_bytes(b"\x10")  # not a packet yet
    client = harness.connect()
    client.send(PingReq())
    assert harness.broker.packets() == (2, 2)
    client.drop()
    assert harness.broker.packets() == (2, 2)
    harness.connect()
    assert harness.broker.packets() == (3, 3)
    assert harness.broker.traffic.network_received == 1 + 2 * len(encode(Connect("c"), 5)) + 2


def test_packets_never_fall_while_a_connection_goes(harness: Harness) -> None:
    first = harness.persistent()
    first.reads = False
    before = harness.broker.packets()
    harness.persistent()
    received, sent = harness.broker.packets()
    assert received == before[0] + 1
    assert sent == before[1] + 2  # CONNACK here, DISCONNECT there


def test_the_broker_says_when_it_wants_to_be_woken(harness: Harness) -> None:
    assert harness.pass_time(0) == harness.now + INTERVAL
    harness.broker.deadlines.set("soon", harness.now + INTERVAL / 2, lambda _, __: None)
    assert harness.pass_time(0) == harness.now + INTERVAL / 2


def test_what_one_read_gives_to_many_is_written_in_between(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "TURN_BYTES", 10_000 + 5 * 20 * traffic.RECEIVER_BYTES)
    harness.broker.traffic.begin_turn()
    receivers = [harness.connect(f"r{number}") for number in range(20)]
    for receiver in receivers:
        receiver.subscribe("#")
    publisher = harness.connect("p")
    kinds = [Properties(content_type="a"), Properties(content_type="b")]  # which stay apart
    messages = [
        Publish("ab"[number % 2], b"%100d" % number, properties=kinds[number % 2])
        for number in range(40)
    ]
    data = b"".join(encode(message, MQTT_5) for message in messages)
    most = pauses = 0
    while harness.broker.receive(publisher.client, data, harness.instant):
        data = b""
        pauses += 1
        most = max(most, sum(each.client.connection.output.size for each in receivers))
        harness.settle()
    harness.settle()
    assert pauses == 40 * 100 * 20 // 12_000  # a message may go beyond the bound
    assert most <= 1.1 * 12_000
    for receiver in receivers:
        assert receiver.take() == messages


@pytest.mark.parametrize(
    ("packet", "at_once"),
    [
        (PingReq(), AT_ONCE),
        (Subscribe(1, [SubscriptionRequest("a")]), 1),
        (Unsubscribe(1, ["a"]), 1),
    ],
)
def test_others_may_have_their_turn(harness: Harness, packet: Packet, at_once: int) -> None:
    client = harness.connect("c")
    data = encode(packet, MQTT_5) * (2 * at_once + 1)
    handled = []
    while harness.broker.receive(client.client, data, harness.instant):
        data = b""
        handled.append(client.client.connection.packets_received - 1)
    harness.settle()
    assert handled[:2] == [at_once, 2 * at_once]
    assert len(client.take()) == 2 * at_once + 1
