"""What comes in one read, alike or not, is answered and delivered as one by one."""

import pytest

from gateway.broker.publishing.publish import MAXIMUM_BATCH, MAXIMUM_NUMBERED
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_5, Disconnect, PubAck, Publish, PubRec
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.traffic import TURN_BYTES
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import UNSHARED, Harness
from tests.support.broker.durable_broker import DurableHarness
from tests.support.broker.memory_client import MemoryClient
from tests.support.broker.payloads import payloads
from tests.support.broker.publishing import batch, codes, published, subscriber
from tests.support.table import table
from tests.support.versions import VERSIONS

NOBODY = ReasonCode.NO_MATCHING_SUBSCRIBERS
QUOTA = ReasonCode.QUOTA_EXCEEDED


def send(client: MemoryClient, packets: list[Publish], n: int) -> None:
    """Send packets, `n` in each read."""
    for start in range(0, len(packets), n):
        client.send(*packets[start : start + n])


@pytest.mark.uncovered
@table("n", [1, 2, 120])
@table("qos", [0, 1])
@table("version", VERSIONS)
def test_messages_are_forwarded_answered_and_counted(version: int, qos: int, n: int) -> None:
    harness = Harness()
    receivers = [harness.connect(name, version) for name in ("first", "second")]
    for place, receiver in enumerate(receivers):
        receiver.subscribe(["a/#", "a/b"][place], 1 + place)
    publisher = harness.connect("publisher", version)
    send(publisher, batch(120, qos, 7), n)
    assert publisher.take() == [PubAck(number) for number in range(7, 127)] * qos
    for receiver in receivers:
        assert receiver.take() == [
            Publish("a/b", b"%d" % (number + 6), qos, packet_id=number * qos)
            for number in range(1, 121)
        ]
        receiver.send(*(PubAck(number) for number in range(1, 121 * qos)))
    assert not len(harness.session("first").inflight)
    traffic = harness.broker.traffic
    assert (traffic.messages_received, traffic.messages_sent) == (120, 240)
    assert traffic.bytes_sent == 2 * traffic.bytes_received > 0
    answers = 240 * qos, 120 * qos
    assert harness.broker.packets() == (120 + 3 + 2 + answers[0], 240 + 3 + 2 + answers[1])


@table("n", [1, 2, 20])
@table("qos", [1, 2])
@table("topic", ["$SYS/x", "a/b/c"])
def test_a_topic_that_is_refused_is_refused_for_each(topic: str, qos: int, n: int) -> None:
    harness = Harness(BrokerSettings(maximum_topic_levels=2))
    publisher = harness.connect("publisher")
    publisher.send(*batch(n, qos, topic=topic))
    levels = topic == "a/b/c"
    code = ReasonCode.TOPIC_NAME_INVALID if levels else ReasonCode.NOT_AUTHORIZED
    assert codes(publisher) == [code] * n
    counter = "tidegate/refused/topic_names" if levels else "tidegate/clients/not_authorized"
    assert harness.counters.count(counter) == n
    assert publisher.client.connection.unacknowledged == 0


# --- what ends a batch ----------------------------------------------------------------------


def test_properties_keep_their_order_and_their_bytes(harness: Harness) -> None:
    receiver = subscriber(harness, qos=0)
    properties = b"\x26\0\1k\0\1v\x03\0\1t\x26\0\1k\0\1w\x01\x01"  # in no order of ours
    packet = b"\x30" + bytes((6 + len(properties), 0, 3)) + b"a/b" + bytes((len(properties),))
    data = packet + properties
    data = data[:1] + bytes((len(data) - 2,)) + data[2:]
    harness.connect("publisher").send_bytes(data * 3)
    assert receiver.raw.endswith(data * 3)
    assert len(receiver.take()) == 3


def test_a_packet_identifier_of_0_ends_the_connection_behind_those_before(harness: Harness) -> None:
    receiver, publisher = subscriber(harness), harness.connect("publisher")
    data = b"".join(encode(each, MQTT_5) for each in batch(2, 1))
    publisher.send_bytes(data + b"\x32\x09\0\3a/b\0\0\0x" + data)
    *answers, last = publisher.take()
    assert answers == [PubAck(1), PubAck(2)]
    assert isinstance(last, Disconnect)
    assert last.reason_code == ReasonCode.PROTOCOL_ERROR
    assert payloads(receiver.take()) == [b"1", b"2"]


@pytest.mark.parametrize("before", [0, 1, 3])
def test_what_is_malformed_behind_a_batch_ends_the_connection(
    harness: Harness, before: int
) -> None:
    receiver, publisher = subscriber(harness), harness.connect("publisher")
    data = b"".join(encode(each, MQTT_5) for each in batch(before, 0))
    publisher.send_bytes(data + b"\x30\xff\xff\xff\xff\x01")
    assert publisher.take_only(Disconnect).reason_code == ReasonCode.MALFORMED_PACKET
    assert len(receiver.take()) == before


@pytest.mark.parametrize(("qos", "most"), [(0, MAXIMUM_BATCH), (1, MAXIMUM_NUMBERED)])
def test_a_batch_is_bounded(harness: Harness, qos: int, most: int) -> None:
    client = harness.persistent("c")
    client.subscribe("#", 1)
    session = harness.session("c")
    session.inflight.limit = 0  # so that all of it waits
    client.reads = False
    client.client.connection.send_encoded(bytes(1024 * 1024), 1)
    harness.connect("publisher").send(*batch(most + 3, qos))
    assert [span.count for span in session.queue] == [most, 3]


def test_what_many_receivers_get_of_a_batch_is_bounded(harness: Harness) -> None:
    receivers = [harness.connect(name) for name in "abcd"]
    for receiver in receivers:
        receiver.subscribe("a/b", 1)
    traffic = harness.broker.traffic
    publisher = harness.connect("publisher")
    traffic.full_at = traffic.bytes_sent + 4 * 10 * 100  # ten of the messages for each
    data = b"".join(
        encode(Publish("a/b", bytes(100), 1, packet_id=number), MQTT_5) for number in range(1, 31)
    )
    assert harness.broker.receive(publisher.client, data, harness.instant)
    assert 4 * 9 * 100 <= traffic.bytes_sent <= 4 * 11 * 100
    assert traffic.full_at == traffic.bytes_sent + TURN_BYTES
    publisher.send_bytes(b"")
    assert [len(published(receiver)) for receiver in receivers] == [30] * 4


# --- QoS 2 inside a batch -------------------------------------------------------------------


@table("make", [Harness, DurableHarness])
@table(
    ("identifiers", "delivered"),
    [
        ([1, 2, 3, 1, 2, 3, 4], [0, 1, 2, 6]),
        ([1, 1, 1], [0]),
        ([5, 4, 5, 6], [0, 1, 3]),
        ([1, 2, 3, 4, 4, 5], [0, 1, 2, 3, 5]),
    ],
)
def test_what_is_repeated_inside_a_batch_is_delivered_once(
    make: type[Harness], identifiers: list[int], delivered: list[int]
) -> None:
    harness = make()
    receiver, publisher = subscriber(harness), harness.persistent("publisher")
    publisher.send(
        *(
            Publish("a/b", b"%d" % place, 2, packet_id=packet_id)
            for place, packet_id in enumerate(identifiers)
        )
    )
    assert publisher.take() == [PubRec(packet_id) for packet_id in identifiers]
    assert payloads(receiver.take()) == [b"%d" % place for place in delivered]
    assert len(harness.session("publisher").incoming) == len(delivered)
    assert harness.broker.traffic.messages_received == len(identifiers)
    assert harness.broker.traffic.bytes_received == len(identifiers)
    assert publisher.client.connection.unacknowledged == len(delivered)


@pytest.mark.parametrize("topic", ["a/+", ""])
def test_what_is_repeated_needs_a_topic_name_all_the_same(harness: Harness, topic: str) -> None:
    publisher = harness.connect("publisher")
    publisher.send(*batch(1, 2), *batch(1, 2, topic=topic))
    *answers, last = publisher.take()
    assert [type(each) for each in answers] == [PubRec]
    assert isinstance(last, Disconnect)


def test_a_session_has_room_for_a_part_of_a_batch(harness: Harness) -> None:
    receiver, publisher = subscriber(harness), harness.connect("publisher")
    harness.session("publisher").incoming.maximum = 2
    publisher.send(*batch(4, 2))
    assert codes(publisher) == [ReasonCode.SUCCESS] * 2 + [QUOTA] * 2
    assert payloads(receiver.take()) == [b"1", b"2"]
    assert harness.counters.count("tidegate/refused/incoming") == 2


# --- retained messages ----------------------------------------------------------------------


def test_a_retained_message_for_which_there_is_no_room_is_refused_alone() -> None:
    harness = Harness(UNSHARED)
    harness.broker.retained.maximum_messages = 3
    publisher = harness.connect()
    publisher.send(
        *(
            Publish(topic, b"x", 1, retain=True, packet_id=number)
            for number, topic in enumerate("abcdae", 1)
        )
    )
    assert codes(publisher) == [NOBODY, NOBODY, NOBODY, QUOTA, NOBODY, QUOTA]
    assert harness.counters.count("tidegate/retained/rejected") == 2
    assert [each for each in "abcde" if harness.broker.retained.get(each)] == ["a", "b", "c"]
