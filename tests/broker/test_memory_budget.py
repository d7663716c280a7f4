"""What all clients together may make the broker hold."""

import logging
from dataclasses import replace

import pytest

from gateway.broker.connecting.connection_info import PLAIN_BYTES, ConnectionInfo
from gateway.broker.memory_budget import HANDSHAKE, INTERVAL, NAMED
from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import ConnAck, Connect, Publish, Subscribe, SubscriptionRequest
from gateway.mqtt.reason_codes import ReasonCode
from gateway.session.queue.memory import AT_ONCE
from gateway.settings.broker import BrokerSettings
from tests.support.broker.broker_harness import REFUSING, Harness
from tests.support.broker.memory_client import MemoryClient

LIMIT = 1_000_000


@pytest.fixture
def harness() -> Harness:
    return Harness(BrokerSettings(memory_limit=LIMIT))


def leave_unfinished(client: MemoryClient, size: int) -> None:
    """Send all but the end of a PUBLISH of this size; tell the budget as the transport does."""
    publish = encode(Publish("t", bytes(size)), client.version)[:-1]
    for place in range(0, len(publish), 10_000):
        if not client.client.closing:
            client.send_bytes(publish[place : place + 10_000])
            client.harness.broker.memory.note(client.client, 0)


def test_who_holds_most_is_closed_first(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    modest, greedy, other = map(harness.connect, ("modest", "greedy", "other"))
    leave_unfinished(modest, 50_000)
    leave_unfinished(greedy, 500_000)
    with caplog.at_level(logging.WARNING):
        leave_unfinished(other, 450_000)
    assert greedy.closed()
    assert not modest.closed()
    assert not other.closed()
    memory = harness.broker.memory
    assert memory.closed == 1
    assert 0 < memory.buffers < LIMIT
    assert "closing the 1 that hold most, 'greedy' at 192.0.2.7:40000 with 5" in caplog.text
    for client in (modest, other):
        client.drop()
    assert memory.buffers == 0


def test_who_was_not_let_in_is_closed_before_all_others(harness: Harness) -> None:
    client = harness.connect("c")
    leave_unfinished(client, 700_000)
    strangers = [harness.open() for _ in range(4)]
    connect = encode(Connect("x" * 60_000), 5)[:-1]
    for stranger in strangers:
        stranger.send_bytes(connect)
        harness.broker.memory.note(stranger.client, 0)
    assert not client.closed()
    harness.settle()
    assert any(stranger.closed() for stranger in strangers)


def test_a_stranger_may_send_small_packets_alone(harness: Harness) -> None:
    stranger = harness.open()
    stranger.send_bytes(b"\x10\x81\x80\x08" + b"\0\4MQTT\5")
    assert stranger.closed()
    client = harness.connect("c", will=None)
    client.send(Publish("t", bytes(200_000)))
    assert not client.closed()


def test_slow_readers_are_counted_again_as_their_output_grows(harness: Harness) -> None:
    memory = harness.broker.memory
    reader = harness.connect("slow")
    reader.subscribe("t")
    reader.reads = False
    publisher = harness.connect("p")
    publisher.send(Publish("t", bytes(1_000)))
    memory.note(reader.client, 0)
    before = memory.buffers
    for _ in range(100):
        publisher.send(Publish("t", bytes(1_000)))
    assert harness.broker.traffic.bytes_sent < harness.broker.traffic.count_at
    assert memory.buffers == before
    memory.count_again()
    assert memory.buffers > before + 100 * 1_000


@pytest.mark.uncovered
def test_what_others_use_is_not_there_for_queues_retained_messages_and_subscriptions() -> None:
    harness = Harness(replace(REFUSING, memory_limit=LIMIT))
    client = harness.connect("c")
    assert harness.publish("r/1", b"x", retain=True) < 0x80
    leave_unfinished(harness.connect("holder"), 820_000)
    harness.pass_time(INTERVAL)
    away = harness.persistent("away")
    away.subscribe("q", 1)
    away.drop()
    harness.pass_time(INTERVAL)
    assert harness.publish("r/2", bytes(20_000), 1, retain=True) == ReasonCode.QUOTA_EXCEEDED
    codes = {harness.publish("q", bytes(20_000), 1) for _ in range(10)}
    assert codes == {ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED}
    for number in range(3):
        client.send(
            Subscribe(1, [SubscriptionRequest(f"{number}/{each}") for each in range(2_000)])
        )
        harness.pass_time(INTERVAL)
    assert client.subscribe("one/more") == ReasonCode.QUOTA_EXCEEDED
    harness.broker.memory.limit = 10 * LIMIT
    harness.pass_time(INTERVAL)
    assert client.subscribe("one/more") == ReasonCode.SUCCESS
    assert harness.publish("q", bytes(20_000), 1) == ReasonCode.SUCCESS


def test_many_that_are_closed_are_told_of_in_one_line(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    small = [harness.connect(f"c{number}") for number in range(20)]
    for client in small:
        leave_unfinished(client, 40_000)
    with caplog.at_level(logging.WARNING):
        leave_unfinished(harness.connect("last"), 10_000)
        more = harness.connect("more")
        harness.broker.memory.limit = LIMIT // 2
        harness.broker.memory.allot()
        leave_unfinished(more, 60_000)
    (line,) = [each for each in caplog.messages if "clients may hold" in each]
    assert line.count(" with ") == NAMED < harness.broker.memory.closed


def test_room_that_has_come_since_the_last_allotment_is_used(harness: Harness) -> None:
    memory = harness.broker.memory
    memory.limit = 100_000
    memory.allot()
    memory.limit = LIMIT
    leave_unfinished(harness.connect("c"), 200_000)
    assert memory.closed == 0


def test_slow_readers_whose_output_grew_too_much_are_closed(harness: Harness) -> None:
    memory = harness.broker.memory
    reader = harness.connect("slow")
    reader.subscribe("t")
    reader.reads = False
    publisher = harness.connect("p")
    publisher.send(Publish("t", b"x"))
    memory.note(reader.client, 0)
    for _ in range(60):
        publisher.send(Publish("t", bytes(10_000)))
    memory.count_again()
    assert memory.closed == 1
    assert reader.client.aborted
    before = memory.buffers
    memory.note(reader.client, 10_000)
    assert memory.buffers == before, "what it holds goes with its socket"


def test_a_connection_counts_by_itself(harness: Harness) -> None:
    memory = harness.broker.memory
    plain = harness.open()
    assert memory.idle == PLAIN_BYTES
    costly = harness.open(info=ConnectionInfo(occupied=50_000))
    assert memory.idle == PLAIN_BYTES + 50_000
    for client in (plain, costly):
        client.drop()
    assert memory.idle == 0


def test_idle_connections_are_closed_where_there_is_no_room_for_them(harness: Harness) -> None:
    let_in = harness.connect("c")
    strangers = [harness.open(info=ConnectionInfo(occupied=50_000)) for _ in range(21)]
    harness.settle()
    assert 0 < sum(each.client.aborted for each in strangers) == harness.broker.memory.closed < 21
    assert not let_in.client.aborted


class Handshake:
    """A TLS handshake that notes that it was ended."""

    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_handshakes_are_ended_before_all_others_and_the_oldest_first(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    memory = harness.broker.memory
    stranger = harness.open()
    handshakes = [Handshake() for _ in range(LIMIT // HANDSHAKE + 1)]
    for each in handshakes:
        memory.begin_handshake(each)
    ended = sum(each.aborted for each in handshakes)
    assert 0 < ended == memory.closed
    assert [each.aborted for each in handshakes] == [True] * ended + [False] * (
        len(handshakes) - ended
    )
    assert not stranger.closed()
    assert f"ending {ended} TLS handshakes" in caplog.text
    for each in handshakes:
        memory.end_handshake(each)
    assert memory.idle == PLAIN_BYTES


def test_sessions_count_and_are_refused_where_there_is_no_room(harness: Harness) -> None:
    memory = harness.broker.memory
    long = "x" * 50_000
    kept = [harness.persistent(f"{number}{long}") for number in range(5)]
    assert memory.idle > 10 * len(long)
    while kept[-1].connack.reason_code == ReasonCode.SUCCESS and len(kept) < 20:
        client = harness.open()
        client.send(Connect(f"{len(kept)}{long}"))
        (client.connack,) = (each for each in client.take() if isinstance(each, ConnAck))
        kept.append(client)
    assert kept[-1].connack.reason_code == ReasonCode.QUOTA_EXCEEDED
    assert harness.counters.count("tidegate/sessions/rejected") == 1
    assert memory.bytes < LIMIT
    for number in range(5):  # who has a session is let in
        kept[number].drop()
        assert harness.persistent(f"{number}{long}").connack.session_present


def test_who_holds_messages_leaves_room_for_sessions(harness: Harness) -> None:
    leave_unfinished(harness.connect("holder"), 2 * LIMIT)
    publisher = harness.connect("p")
    for number in range(100):
        publisher.send(Publish(f"r/{number}", bytes(20_000), retain=True))
        harness.pass_time(INTERVAL)
    harness.connect("another")
    assert harness.counters.count("tidegate/sessions/rejected") == 0


def test_who_is_about_to_connect_is_not_closed_for_what_others_hold(harness: Harness) -> None:
    stranger = harness.open()
    leave_unfinished(harness.connect("holder"), 2 * LIMIT)
    assert harness.broker.memory.closed > 0
    assert not stranger.client.aborted


def test_what_queues_give_up_counts_until_the_next_turns() -> None:
    harness = Harness()
    client = harness.connect("slow")
    client.subscribe("a")
    client.reads = False
    memory = harness.broker.queue_memory
    while memory.messages < 2 * AT_ONCE + 5:
        harness.publish("a", b"x" * 100)
    client.drop()
    assert memory.messages == AT_ONCE + 5
    harness.pass_time(0)
    assert memory.messages == 5
    harness.pass_time(0.001)
    assert memory.messages == memory.bytes == 0
