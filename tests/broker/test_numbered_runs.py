"""What goes out in runs at QoS 1 and 2 is what went out without, whatever happens meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.acknowledgement_runs import take_alone, take_run
from gateway.broker.numbered_runs import pass_on_alone
from gateway.broker.runs import pass_on, pass_on_again
from gateway.broker.settings import BrokerSettings
from gateway.mqtt.encode import encode
from gateway.mqtt.message_size import MESSAGE_OVERHEAD
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    Packet,
    PingResp,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubscriptionRequest,
)
from gateway.mqtt.properties import Properties
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.received_runs import next_byte
from gateway.session.queue_bounds import LARGEST_OF_RUN
from tests.support.broker_harness import Harness, Inline, MemoryClient, Wire
from tests.support.counted_rows import everything_is_counted
from tests.support.durable_broker import DurableHarness
from tests.support.queues import messages

PASS_ON = "gateway.broker.broker.pass_on"
PASS_ON_AGAIN = "gateway.broker.broker.pass_on_again"
TAKE_ALONE = "gateway.broker.broker.take_alone"
TAKE_RUN = "gateway.broker.broker.take_run"


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give how many messages each run had, 0 for a message that was handled as others are."""
    counts: list[int] = []

    def noting(broker: Any, *arguments: Any) -> bool:
        before = broker.traffic.messages_received
        done = pass_on(broker, *arguments)
        counts.append(broker.traffic.messages_received - before)
        return done

    def noting_again(broker: Any, *arguments: Any) -> bool:
        before = broker.traffic.messages_received
        done = pass_on_again(broker, *arguments)
        if done:
            counts.append(broker.traffic.messages_received - before)
        return done

    monkeypatch.setattr(PASS_ON, noting)
    monkeypatch.setattr(PASS_ON_AGAIN, noting_again)
    return counts


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Give for each read that was asked about whether it was passed on as one packet alone."""
    answers: list[bool] = []

    def noting(*arguments: Any) -> bool:
        answers.append(pass_on_alone(*arguments))
        return answers[-1]

    monkeypatch.setattr("gateway.broker.broker.pass_on_numbered", noting)
    return answers


@pytest.fixture
def acknowledged(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Give the answers of `take_run` that were asked about acknowledgements."""
    answers: list[bool] = []

    def noting(client: Any, *arguments: Any) -> bool:
        asked = next_byte(client.connection) in (0x40, 0x50, 0x62, 0x70)
        done = take_run(client, *arguments)
        if asked:
            answers.append(done)
        return done

    def noting_alone(client: Any, data: bytes, *arguments: Any) -> int:
        done = take_alone(client, data, *arguments)
        if done:
            answers.append(True)
        return done

    monkeypatch.setattr(TAKE_RUN, noting)
    monkeypatch.setattr(TAKE_ALONE, noting_alone)
    return answers


def publishes(count: int, qos: int, first: int = 1) -> list[Packet]:
    return [
        Publish("a/b", b"%d" % number, qos, packet_id=number)
        for number in range(first, first + count)
    ]


def published(client: MemoryClient) -> list[Publish]:
    return [packet for packet in client.take() if isinstance(packet, Publish)]


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_run_of_qos_1_is_passed_on_and_acknowledged(
    version: int, taken: list[int], acknowledged: list[bool]
) -> None:
    harness = Harness()
    first, second = (harness.connect(name, version) for name in ("first", "second"))
    first.subscribe("a/#", 1)
    second.subscribe("a/b", 2)
    publisher = harness.connect("publisher", version)
    publisher.send(*publishes(120, 1, 7))
    assert taken == [120]
    assert publisher.take() == [PubAck(number) for number in range(7, 127)]
    for client in (first, second):
        assert published(client) == publishes(120, 1, 1)[:0] + [
            Publish("a/b", b"%d" % (number + 6), 1, packet_id=number) for number in range(1, 121)
        ]
        client.send(*(PubAck(number) for number in range(1, 121)))
    assert acknowledged == [True, True]
    assert not len(harness.session("first").inflight)
    traffic = harness.broker.traffic
    assert (traffic.messages_received, traffic.messages_sent) == (120, 240)
    assert traffic.bytes_sent == 2 * traffic.bytes_received
    assert harness.broker.packets() == (120 + 3 + 2 + 240, 240 + 120 + 3 + 2)


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_run_of_qos_2_goes_through_all_four_packets(
    version: int, taken: list[int], acknowledged: list[bool]
) -> None:
    harness = Harness()
    subscriber = harness.connect("subscriber", version)
    subscriber.subscribe("#", 2)
    publisher = harness.connect("publisher", version)
    numbers = range(1, 21)
    publisher.send(*publishes(20, 2))
    assert taken == [20]
    assert publisher.take() == [PubRec(number) for number in numbers]
    assert len(harness.session("publisher").incoming) == 20
    publisher.send(*(PubRel(number) for number in numbers))
    assert publisher.take() == [PubComp(number) for number in numbers]
    assert not len(harness.session("publisher").incoming)
    assert published(subscriber) == publishes(20, 2)
    subscriber.send(*(PubRec(number) for number in numbers[:15]))
    subscriber.send(*(PubComp(number) for number in numbers[:10]))
    subscriber.send(*(PubRec(number) for number in numbers[15:]))
    subscriber.send(*(PubComp(number) for number in numbers[10:]))
    assert subscriber.take() == [PubRel(number) for number in numbers]
    assert acknowledged == [True] * 5
    assert not len(harness.session("subscriber").inflight)


def test_a_topic_without_subscribers_is_answered_with_the_reason(taken: list[int]) -> None:
    harness = Harness()
    publisher = harness.connect("publisher")
    publisher.send(*publishes(3, 1))
    publisher.send(*publishes(3, 2, 4))
    nobody = ReasonCode.NO_MATCHING_SUBSCRIBERS
    assert publisher.take() == [
        *(PubAck(number, nobody) for number in (1, 2, 3)),
        *(PubRec(number, nobody) for number in (4, 5, 6)),
    ]
    assert taken == [3, 3]


def test_a_window_that_is_full_ends_the_run(taken: list[int]) -> None:
    harness = Harness()
    subscriber = harness.connect("c", receive_maximum=5)
    subscriber.subscribe("#", 1)
    harness.connect("publisher").send(*publishes(8, 1))
    assert taken == [5, 0, 0, 0]
    assert len(published(subscriber)) == 5
    subscriber.send(*(PubAck(number) for number in range(1, 6)))
    assert [each.payload for each in published(subscriber)] == [b"6", b"7", b"8"]


def test_what_many_receivers_get_ends_the_run(
    taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.broker.numbered_runs.TURN_BYTES", 2 * 4 * (MESSAGE_OVERHEAD + 11))
    harness = Harness()
    receivers = [harness.connect("one"), harness.connect("two")]
    for receiver in receivers:
        receiver.subscribe("a/b", 1)
    publisher = harness.connect("p")
    publisher.send(*publishes(9, 1))
    assert taken == [4, 4, 1]
    assert [len(published(receiver)) for receiver in receivers] == [9, 9]


def test_our_receive_maximum_ends_the_run_and_then_the_connection(taken: list[int]) -> None:
    harness = Harness(BrokerSettings(receive_maximum=4))
    publisher = harness.connect("publisher")
    publisher.send(*publishes(5, 2))
    assert taken == [4, 0]
    assert publisher.closed()


def test_packet_identifiers_come_round(taken: list[int]) -> None:
    harness = Harness(BrokerSettings(maximum_inflight=60_000))
    subscriber = harness.connect("c", MQTT_3_1_1)
    subscriber.subscribe("#", 1)
    publisher = harness.connect("publisher", MQTT_3_1_1)
    seen: list[int] = []
    for _ in range(300):
        publisher.send(*publishes(500, 1))
        numbers = [each.packet_id for each in published(subscriber)]
        kept = numbers[-1:] if not seen else []  # the first turn's last is never acknowledged
        subscriber.send(*(PubAck(number) for number in numbers if number not in kept))
        seen += numbers
    stuck = seen[499]
    assert stuck in seen[:500]
    assert stuck not in seen[500:]
    assert 0 not in seen
    assert len(harness.session("c").inflight) == 1
    assert sum(taken) > 140_000


OTHERWISE: dict[str, Callable[[Harness], object]] = {
    "an identifier": lambda harness: harness.connect("c").subscribe_all(
        [SubscriptionRequest("a/b")], identifier=3
    ),
    "a part of the gateway": lambda harness: harness.broker.subscribe_inline(Inline(), ["#"]),
    "aliases": lambda harness: harness.connect(
        "c", properties=Properties(topic_alias_maximum=5)
    ).subscribe("a/b", 1),
}


@pytest.mark.parametrize("otherwise", OTHERWISE.values(), ids=OTHERWISE)
def test_where_a_receiver_needs_more_each_message_is_handled(
    otherwise: Callable[[Harness], object], taken: list[int]
) -> None:
    harness = Harness()
    plain = harness.connect("plain")
    plain.subscribe("a/b", 1)
    otherwise(harness)
    harness.connect("publisher").send(*publishes(3, 1))
    assert [each.payload for each in published(plain)] == [b"1", b"2", b"3"]
    assert taken == [0] * 3


def test_a_store_that_is_full_takes_no_runs(taken: list[int]) -> None:
    harness = DurableHarness()
    harness.persistent("c").subscribe("#", 1)
    harness.disk.full = True
    publisher = harness.connect("publisher")
    publisher.send(*publishes(2, 1))
    assert [each.reason_code for each in publisher.take() if isinstance(each, PubAck)] == [
        ReasonCode.QUOTA_EXCEEDED
    ] * 2


def test_what_waits_behind_a_run_follows_it_many_at_a_time(taken: list[int]) -> None:
    harness = Harness(BrokerSettings(maximum_inflight=5))
    subscriber = harness.connect("c")
    subscriber.subscribe("#", 1)
    harness.connect("publisher").send(*publishes(9, 1))
    assert taken[0] == 5
    assert [each.packet_id for each in published(subscriber)] == [1, 2, 3, 4, 5]
    subscriber.send(PubAck(1), PubAck(2), PubAck(3))
    assert [(each.packet_id, each.payload) for each in published(subscriber)] == [
        (6, b"6"),
        (7, b"7"),
        (8, b"8"),
    ]
    inflight = harness.session("c").inflight
    assert [number for number, _ in inflight.items()] == [4, 5, 6, 7, 8]
    subscriber.send(*(PubAck(number) for number in (4, 5, 6, 7, 8)))
    assert [(each.packet_id, each.payload) for each in published(subscriber)] == [(9, b"9")]
    assert len(inflight) == 1


def away(harness: Harness, name: str = "away") -> None:
    client = harness.persistent(name)
    client.subscribe("a/#", 1)
    client.drop()


@pytest.mark.parametrize("make", [Harness, DurableHarness])
def test_a_run_waits_for_who_is_away(make: Callable[[], Harness], taken: list[int]) -> None:
    harness = make()
    away(harness)
    harness.connect("publisher").send(*publishes(30, 1))
    assert taken == [30]
    assert len(harness.session("away").queue) == 30
    client = harness.persistent("away")
    assert published(client) == publishes(30, 1)
    client.send(*(PubAck(number) for number in range(1, 31)))
    assert not len(harness.session("away").inflight)
    assert harness.broker.queue_memory.bytes == harness.broker.queue_memory.disk_bytes == 0


def test_it_is_acknowledged_when_it_is_on_disk(taken: list[int]) -> None:
    harness = DurableHarness()
    away(harness)
    here = harness.persistent("here")
    here.subscribe("a/b", 1)
    publisher = harness.connect("publisher")
    harness.commits = False
    publisher.send(*publishes(3, 1))
    assert taken == [3]
    here.send(*(PubAck(number) for number in range(1, 4)))  # which helps nobody who is away
    assert publisher.take() == []
    harness.commit()
    assert publisher.take() == [PubAck(number) for number in range(1, 4)]
    harness.crash()
    waiting = messages(harness.session("away").queue)
    assert [each.payload for each in waiting] == [b"1", b"2", b"3"]


def test_what_is_kept_in_memory_alone_waits_for_no_disk(taken: list[int]) -> None:
    harness = DurableHarness(BrokerSettings(default_durability=None))
    away(harness)
    harness.commits = False
    publisher = harness.connect("publisher")
    publisher.send(*publishes(3, 1))
    assert taken == [3]
    assert len(publisher.take()) == 3


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        (BrokerSettings(maximum_queued_messages=0), 1),
        (BrokerSettings(maximum_queued_bytes=10_000), 1),
        (BrokerSettings(maximum_queued_bytes_total=10_000), 1),
        (BrokerSettings(), LARGEST_OF_RUN),
    ],
)
def test_where_there_may_be_no_room_each_message_is_handled(
    settings: BrokerSettings, size: int, taken: list[int]
) -> None:
    harness = DurableHarness(settings)
    away(harness)
    publisher = harness.connect("publisher")
    publisher.send(*(Publish("a/b", bytes(size), 1, packet_id=number) for number in (1, 2)))
    assert taken == [0, 0]
    assert len(publisher.take()) == 2


def test_a_queue_ends_the_run_where_it_may_be_full(taken: list[int]) -> None:
    harness = DurableHarness(BrokerSettings(maximum_queued_messages=5))
    away(harness)
    publisher = harness.connect("publisher")
    publisher.send(*publishes(7, 1))
    assert taken == [5, 0, 0]
    codes = [each.reason_code for each in publisher.take() if isinstance(each, PubAck)]
    assert codes == [ReasonCode.SUCCESS] * 5 + [ReasonCode.QUOTA_EXCEEDED] * 2


def test_at_qos_0_nothing_waits_for_who_is_away(taken: list[int]) -> None:
    harness = Harness()
    client = harness.persistent("away")
    client.subscribe("a/#", 0)
    client.drop()
    publisher = harness.connect("publisher")
    publisher.send(*publishes(3, 1))
    assert taken == [3]
    assert len(publisher.take()) == 3
    assert not len(harness.session("away").queue)


def test_at_qos_2_each_message_that_waits_is_handled(taken: list[int]) -> None:
    harness = Harness()
    client = harness.persistent("away")
    client.subscribe("a/#", 2)
    client.drop()
    harness.connect("publisher").send(*publishes(3, 2))
    assert taken == [0] * 3


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_run_is_rewritten_for_another_qos_and_another_version(
    version: int, qos: int, taken: list[int]
) -> None:
    harness = Harness()
    subscribers = [
        harness.connect(f"c{number}", each) for number, each in enumerate([MQTT_3_1_1, MQTT_5] * 3)
    ]
    for number, subscriber in enumerate(subscribers):
        subscriber.subscribe("a/b", number // 2)
    sizes = [0, 1, 1, 121, 122, 123, 200, 2]
    packets = [
        Publish("a/b", b"x" * size, qos, packet_id=number * (qos > 0))
        for number, size in enumerate(sizes, 1)
    ]
    harness.connect("publisher", version).send(*packets)
    assert taken == [len(sizes)]
    for number, subscriber in enumerate(subscribers):
        sent = min(qos, number // 2)
        assert published(subscriber) == [
            Publish("a/b", b"x" * size, sent, packet_id=place * (sent > 0))
            for place, size in enumerate(sizes, 1)
        ]
    assert harness.broker.traffic.bytes_sent == 6 * sum(sizes)


def test_what_would_be_too_large_when_rewritten_is_not_passed_on(taken: list[int]) -> None:
    harness = Harness()
    small = harness.connect("small", MQTT_5, maximum_packet_size=100)
    small.subscribe("a/b")
    publisher = harness.connect("publisher", MQTT_3_1_1)
    publisher.send(Publish("a/b", bytes(91)), Publish("a/b", bytes(92)), Publish("a/b", bytes(93)))
    assert taken == [1, 0, 0]
    assert [len(each.payload) for each in published(small)] == [91, 92]


def test_properties_and_a_missing_identifier_end_the_run(taken: list[int]) -> None:
    harness = Harness()
    subscriber = harness.connect("c")
    subscriber.subscribe("#", 1)
    publisher = harness.connect("publisher")
    more = Publish("a/b", b"x", 1, packet_id=9, properties=Properties(content_type="t"))
    publisher.send(*publishes(3, 1), more, *publishes(2, 1, 4))
    assert taken == [3, 0, 2]
    harness.connect("other").send_bytes(
        b"".join(encode(each, MQTT_5) for each in publishes(2, 1))
        + encode(Publish("a/b", b"1", 1, packet_id=0x0100), MQTT_5).replace(
            b"\x01\x00\x00", b"\0" * 3
        )
    )
    assert taken[3:] == [2]
    assert len(published(subscriber)) == 8


def test_what_begins_like_the_last_run_may_be_no_run(taken: list[int]) -> None:
    harness = Harness()
    subscriber = harness.connect("c")
    subscriber.subscribe("#", 1)
    publisher = harness.connect("publisher")
    publisher.send(*publishes(2, 1))
    publisher.send(*publishes(2, 1, 3))
    publisher.send(Publish("a/b", b"5", 1, packet_id=5, properties=Properties(content_type="t")))
    assert taken == [2, 2, 0]
    filtered = harness.connect("filtered")
    filtered.subscribe_all([SubscriptionRequest("a/b", 1)], where="value > 0")
    publisher.send(*publishes(2, 1, 6))
    assert taken == [2, 2, 0, 0, 0]
    assert [each.payload for each in published(subscriber)] == [b"%d" % n for n in range(1, 8)]
    assert publisher.take() == [PubAck(number) for number in range(1, 8)]


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_one_packet_alone_is_passed_on_without_looking_further(
    version: int, qos: int, taken: list[int], alone: list[bool]
) -> None:
    harness = Harness()
    subscriber = harness.connect("c", version)
    subscriber.subscribe("a/b", qos)
    publisher = harness.connect("publisher", version)
    for packet in publishes(3, qos):
        publisher.send(packet)
    assert (taken, alone) == ([1], [True, True])
    assert published(subscriber) == publishes(3, qos)
    answer = PubAck if qos == 1 else PubRec
    assert publisher.take() == [answer(number) for number in (1, 2, 3)]
    traffic = harness.broker.traffic
    assert (traffic.messages_received, traffic.messages_sent) == (3, 3)
    assert (traffic.bytes_received, traffic.bytes_sent) == (3, 3)
    assert publisher.client.connection.packets_received == 1 + 3
    assert publisher.client.connection.unacknowledged == (0 if qos == 1 else 3)


def send_alone(publisher: MemoryClient, packet: Publish) -> None:
    """Hand a packet to the broker in a turn that nothing else came in."""
    data = encode(packet, publisher.version)
    harness = publisher.harness
    assert not harness.broker.receive(publisher.client, data, harness.instant, True)


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("sent_with", [1, 2])
def test_a_message_alone_and_its_answer_leave_before_the_turn_ends(
    qos: int, sent_with: int
) -> None:
    harness = Harness()
    subscriber = harness.connect("c")
    subscriber.subscribe("a/b", qos)
    publisher = harness.connect("publisher")
    first, packet = publishes(2, sent_with)
    publisher.send(first)
    wires = []
    for client in (subscriber, publisher):
        client.client.connection.output.transport = wire = Wire()
        wires.append(wire)
    packets, network_sent = harness.broker.packets(), harness.broker.traffic.network_sent
    send_alone(publisher, cast("Publish", packet))
    granted = min(qos, sent_with)
    received = Publish("a/b", b"2", granted, packet_id=2 if granted else 0)
    answer = PubAck(2) if sent_with == 1 else PubRec(2)
    written = [encode(received, MQTT_5), encode(answer, MQTT_5)]
    assert [wire.written for wire in wires] == [[each] for each in written]
    assert harness.broker.packets() == (packets[0] + 1, packets[1] + 2)
    assert harness.broker.traffic.network_sent == network_sent + sum(map(len, written))
    assert not subscriber.client.connection.touched
    assert not publisher.client.connection.touched
    assert publisher.client.connection.unacknowledged == (0 if sent_with == 1 else 2)


def test_a_message_alone_and_its_answer_keep_their_order() -> None:
    harness = Harness()
    both = harness.connect("both")
    both.subscribe("a/b", 1)
    first, packet = publishes(2, 1)
    both.send(first)
    both.take()
    both.client.connection.output.transport = wire = Wire()
    both.client.send(PingResp())
    send_alone(both, cast("Publish", packet))
    assert wire.written == []
    harness.settle()
    assert both.take() == [PingResp(), packet, PubAck(2)]


def test_an_answer_that_waits_for_the_disk_does_not_leave_at_once() -> None:
    harness = DurableHarness()
    subscriber = harness.persistent("c")
    subscriber.subscribe("a/b", 1)
    publisher = harness.connect("publisher")
    first, packet = publishes(2, 1)
    publisher.send(first)
    subscriber.send(PubAck(1))
    harness.commits = False
    publisher.take()
    for client in (subscriber, publisher):
        client.client.connection.output.transport = Wire()
    send_alone(publisher, cast("Publish", packet))
    assert subscriber.client.connection.output.transport == Wire([encode(packet, MQTT_5)])
    assert publisher.client.connection.output.transport == Wire()
    harness.settle()
    assert publisher.take() == []
    subscriber.send(PubAck(2))
    assert publisher.take() == [PubAck(2)]


NOT_ALONE = {
    "another topic": encode(Publish("a/c", b"4", 1, packet_id=4), MQTT_5),
    "another QoS": encode(Publish("a/b", b"4", 2, packet_id=4), MQTT_5),
    "properties": encode(
        Publish("a/b", b"4", 1, packet_id=4, properties=Properties(content_type="t")), MQTT_5
    ),
    "two": encode(Publish("a/b", b"4", 1, packet_id=4), MQTT_5) * 2,
    "not whole": encode(Publish("a/b", b"4", 1, packet_id=4), MQTT_5)[:-1],
    "no identifier": b"\x32\x08\0\3a/b\0\0\0",
    "nothing behind the topic": b"\x32\x05\0\3a/b",
}


@pytest.mark.parametrize("data", NOT_ALONE.values(), ids=NOT_ALONE)
def test_what_is_not_like_the_last_packet_is_looked_at(data: bytes, alone: list[bool]) -> None:
    harness = Harness()
    harness.connect("c").subscribe("#", 2)
    publisher = harness.connect("publisher")
    for packet in publishes(2, 1):
        publisher.send(packet)
    publisher.send_bytes(data)
    assert alone == [True, False]


def test_who_gets_what_comes_alone_is_looked_up_each_time(alone: list[bool]) -> None:
    harness = Harness()
    subscriber = harness.connect("c", properties=Properties(receive_maximum=3))
    subscriber.subscribe("a/b", 1)
    publisher = harness.connect("publisher")
    for packet in publishes(4, 1):  # the window is full then
        publisher.send(packet)
    assert alone == [True, True, False]
    filtered = harness.connect("filtered")
    filtered.subscribe_all([SubscriptionRequest("a/b", 1)], where="value > 0")
    publisher.send(*publishes(1, 1, 5))
    assert alone == [True, True, False, False]
    assert publisher.take() == [PubAck(number) for number in range(1, 6)]


def test_receivers_at_qos_0_share_what_is_written_for_them() -> None:
    harness = Harness()
    receivers = [harness.connect(name) for name in ("one", "two")]
    for receiver in receivers:
        receiver.subscribe("a/b", 0)
    harness.connect("publisher").send(*publishes(3, 1))
    for receiver in receivers:
        assert published(receiver) == [Publish("a/b", b"%d" % n) for n in (1, 2, 3)]


def test_what_is_sent_twice_is_delivered_once(taken: list[int]) -> None:
    harness = Harness()
    subscriber = harness.connect("c")
    subscriber.subscribe("#", 2)
    publisher = harness.connect("publisher")
    publisher.send(*publishes(3, 2))
    publisher.send(*publishes(4, 2))
    assert taken == [3, 0, 0, 0, 1]
    assert publisher.take() == [PubRec(number) for number in (1, 2, 3, 1, 2, 3, 4)]
    assert [each.payload for each in published(subscriber)] == [b"1", b"2", b"3", b"4"]


def test_acknowledgements_in_another_order_are_taken_one_by_one(acknowledged: list[bool]) -> None:
    harness = Harness()
    subscriber = harness.connect("c")
    subscriber.subscribe("#", 1)
    publisher = harness.connect("publisher")
    publisher.send(*publishes(6, 1))
    subscriber.send(PubAck(1), PubAck(2), PubAck(4), PubAck(3), PubAck(6))
    assert acknowledged == [True, False, True]  # the one that is not next has made them single
    assert [number for number, _ in harness.session("c").inflight.items()] == [5]
    subscriber.send(PubAck(5, ReasonCode.UNSPECIFIED_ERROR))
    assert not len(harness.session("c").inflight)


def test_what_was_sent_in_a_run_is_sent_again(taken: list[int]) -> None:
    harness = Harness()
    subscriber = harness.persistent("c")
    subscriber.subscribe("#", 1)
    harness.connect("publisher").send(*publishes(5, 1))
    subscriber.send(PubAck(1), PubAck(2))
    subscriber.drop()
    assert harness.broker.queue_memory.deliveries == 3
    again = harness.persistent("c")
    assert again.take() == [
        Publish("a/b", b"%d" % number, 1, dup=True, packet_id=number) for number in (3, 4, 5)
    ]
    again.send(*(PubAck(number) for number in (3, 4, 5)))
    assert harness.broker.queue_memory.bytes == 0
    assert taken == [5]


QOS = st.sampled_from([0, 1, 1, 1, 2, 2])
SIZES = st.sampled_from([0, 1, 1, 1, 2, 130])
MESSAGES = st.tuples(st.sampled_from(["a/b", "a/b", "a/c", "x"]), QOS, SIZES, st.integers(1, 5))


NAMES = ("one", "two", "three", "first", "second")


class Scene:
    """Two publishers and three subscribers, driven by drawn steps; all that is sent is noted."""

    def __init__(self, harness: Harness, steps: list[Any]) -> None:
        self.harness = harness
        self.heard: list[tuple[str, Packet]] = []
        self.clients: dict[str, MemoryClient] = {}
        self.owed: dict[str, list[Packet]] = {name: [] for name in NAMES}
        self.slow: set[str] = set()  # publishers that answer when they are told to
        self.numbers = {"first": 0, "second": 0}
        self.away: set[str] = set()
        self.come("one", MQTT_3_1_1, "#")
        self.come("two", MQTT_5, "a/#")
        self.come("three", MQTT_5, "a/b")
        self.clients["first"] = harness.connect("first", MQTT_3_1_1)
        self.clients["second"] = harness.connect("second", MQTT_5)
        for step in steps:
            getattr(self, step[0])(*step[1:])
            self.look()

    def come(self, name: str, version: int, topic_filter: str) -> None:
        client = self.clients[name] = self.harness.persistent(name, version)
        client.subscribe(topic_filter, {"one": 2, "two": 1, "three": 2}[name])

    def publish(self, name: str, messages: list[tuple[str, int, int, int]]) -> None:
        packets = []
        for topic, qos, size, times in messages:
            for _ in range(times):
                self.numbers[name] = number = self.numbers[name] % 3_000 + 1
                packets.append(
                    Publish(topic, b"%d" % (number % 10) * size, qos, packet_id=number * (qos > 0))
                )
        self.clients[name].send(*packets)

    def acknowledge(self, name: str, count: int, skip: int) -> None:
        owed = self.owed[name]
        if name in self.away:
            return
        answers = owed[skip : skip + count]
        del owed[skip : skip + count]
        self.clients[name].send(*answers)

    def take_time(self, name: str) -> None:
        """Let a publisher answer by itself no more, or again."""
        self.slow ^= {name}

    def leave(self, name: str, stays_away: bool) -> None:
        """Go, or come back from an earlier time, and come again at once or not."""
        version = self.clients[name].version
        if name not in self.away:
            self.clients[name].drop()
        self.owed[name] = []
        if stays_away:
            self.away.add(name)
            return
        self.away.discard(name)
        self.come(name, version, {"one": "#", "two": "a/#", "three": "a/b"}[name])

    def look(self) -> None:
        for name, client in self.clients.items():
            for packet in client.take():
                self.heard.append((name, packet))
                if isinstance(packet, PubRec):
                    self.owed[name].append(PubRel(packet.packet_id))
                elif isinstance(packet, PubRel):
                    self.owed[name].append(PubComp(packet.packet_id))
                elif isinstance(packet, Publish) and packet.qos:
                    kind = PubAck if packet.qos == 1 else PubRec
                    self.owed[name].append(kind(packet.packet_id))
            if self.owed[name] and name in ("first", "second") and name not in self.slow:
                answers, self.owed[name] = self.owed[name], []
                client.send(*answers)


STEPS = st.one_of(
    st.tuples(
        st.just("publish"),
        st.sampled_from(["first", "second"]),
        st.lists(MESSAGES, min_size=1, max_size=6),
    ),
    st.tuples(
        st.just("acknowledge"),
        st.sampled_from(NAMES),
        st.integers(1, 20),
        st.sampled_from([0, 0, 0, 0, 1]),
    ),
    st.tuples(st.just("take_time"), st.sampled_from(["first", "second"])),
    st.tuples(st.just("leave"), st.sampled_from(["one", "two", "three"]), st.booleans()),
)


@contextmanager
def without_runs() -> Iterator[None]:
    """Let every packet be handled by itself."""
    with (
        mock.patch(PASS_ON, return_value=False),
        mock.patch(PASS_ON_AGAIN, return_value=False),
        mock.patch(TAKE_RUN, return_value=False),
        mock.patch(TAKE_ALONE, return_value=0),
    ):
        yield


@pytest.mark.parametrize("make", [Harness, DurableHarness])
@given(steps=st.lists(STEPS, max_size=25))
def test_everyone_hears_the_same_as_without_runs(
    make: Callable[[BrokerSettings], Harness], steps: list[Any]
) -> None:
    settings = BrokerSettings(maximum_inflight=40)
    with_runs = Scene(make(settings), steps)
    with without_runs():
        without = Scene(make(settings), steps)
    assert with_runs.heard == without.heard
    for name in ("one", "two", "three"):
        assert len(with_runs.harness.session(name).inflight) == len(
            without.harness.session(name).inflight
        )
    memory, other = with_runs.harness.broker.queue_memory, without.harness.broker.queue_memory
    assert memory.deliveries == other.deliveries
    assert memory.bytes >= other.bytes  # what one gets as a run and another not is there twice


@given(steps=st.lists(STEPS, max_size=25))
def test_a_crash_leaves_the_same_as_without_runs(steps: list[Any]) -> None:
    left = []
    for how in (nullcontext, without_runs):
        with how():
            harness = DurableHarness()
            Scene(harness, steps)
            harness.disk.commit()
        everything_is_counted(harness)
        harness.crash()
        left.append(
            [
                [(each.delivery.message.payload, each.released) for each in session.inflight]
                + [(each.payload, False) for each in messages(session.queue)]
                for session in harness.broker.sessions.values()
            ]
        )
    assert left[0] == left[1]
