import pytest

from gateway.counters import Counters
from gateway.mqtt.connection import MAXIMUM_UNSENT, Connection
from gateway.mqtt.packets import Publish
from gateway.routing.where.message import Message
from gateway.session import overflow
from gateway.session.delivery import Delivery
from gateway.session.delivery_queue import DeliveryQueue
from gateway.session.limits import MAXIMUM_INFLIGHT, SessionLimits, WhenFull
from gateway.session.session import Session
from gateway.session.templates import Templates
from tests.support.sessions import deliver, open_connection, packets, persistent


def attached(receive_maximum: int = 10) -> tuple[Session, Connection]:
    session, connection = persistent(), open_connection()
    session.attach(connection, receive_maximum)
    return session, connection


def payloads(connection: Connection) -> list[bytes]:
    return [packet.payload for packet in packets(connection) if isinstance(packet, Publish)]


def test_our_window_counts_where_the_clients_is_larger() -> None:
    session, connection = attached(receive_maximum=65_535)
    for _ in range(MAXIMUM_INFLIGHT + 5):
        deliver(session)
    assert len(packets(connection)) == MAXIMUM_INFLIGHT
    assert len(session.queue) == 5


@pytest.mark.parametrize(("qos", "kept"), [(0, 0), (1, 1), (2, 1)])
def test_a_session_without_a_connection_keeps_what_it_must(qos: int, kept: int) -> None:
    session = persistent()
    deliver(session, qos=qos)
    assert len(session.queue) == kept


def test_a_session_that_has_ended_keeps_nothing() -> None:
    session = Session("c", Counters())
    deliver(session)
    assert len(session.queue) == 0


def test_room_is_what_a_persistent_session_has_in_its_queue() -> None:
    session = persistent()
    session.queue = DeliveryQueue(maximum_messages=1)
    assert session.has_room(1)
    deliver(session)
    assert session.has_room(0)
    assert not session.has_room(1)
    deliver(session)
    assert session.counters.count("publish/messages/dropped") == 1
    session.expiry_interval = 0
    assert session.has_room(1)


@pytest.mark.parametrize("qos", [1, 2])
def test_where_all_sessions_memory_is_full_only_what_need_not_wait_is_taken(qos: int) -> None:
    session, connection = attached(receive_maximum=2)
    message = Message("a", b"x" * 1_000, 1)
    session.limits.memory.maximum_bytes = 1
    assert session.has_room(qos)
    session.limits.memory.add(message)  # by some other session
    assert session.has_room(qos)
    for _ in range(2):
        deliver(session, qos=qos)
    assert not session.has_room(qos)
    assert session.has_room(0)
    deliver(session, qos=qos)
    assert len(payloads(connection)) == 2
    assert session.traffic.messages_sent == 2
    assert session.counters.values == {
        "publish/messages/dropped": 1,
        "tidegate/queues/rejected_for_memory": 1,
    }
    session.limits.memory.remove(message)
    deliver(session, qos=qos)
    assert len(session.queue) == 1
    session.detach()
    assert not session.has_room(qos)


def test_a_session_without_a_connection_counts_what_is_inflight_too() -> None:
    session, connection = attached(receive_maximum=2)
    memory = session.limits.memory
    for qos in (1, 2, 1, 0):
        deliver(session, qos=qos)
    assert (memory.messages, memory.deliveries) == (2, 2)
    session.detach()
    assert (memory.messages, memory.deliveries) == (3, 3)
    session.attach(connection, 2)
    assert (memory.messages, memory.deliveries) == (1, 1)
    session.detach()
    session.discard()
    assert (memory.messages, memory.deliveries, memory.bytes) == (0, 0, 0)
    assert not len(session.queue)
    assert not len(session.inflight)


def test_limits() -> None:
    limits = SessionLimits(
        maximum_inflight=2, maximum_queued_messages=3, maximum_queued_bytes=2_000
    )
    session = Session("c", Counters(), limits)
    session.expiry_interval = 60
    session.attach(open_connection(), 10)
    for _ in range(6):
        deliver(session)
    assert (len(session.inflight), len(session.queue)) == (2, 3)
    for _ in range(3):
        session.queue.popleft()
    for _ in range(3):
        deliver(session, b"x" * 1_000)
    assert len(session.queue) == 2
    assert session.counters.count("tidegate/queues/rejected") == 2


def test_a_full_window_stops_what_waits_behind_it() -> None:
    session, connection = attached(receive_maximum=1)
    for payload in (b"1", b"2"):
        deliver(session, payload)
    session.pump(0.0)
    assert payloads(connection) == [b"1"]


def test_what_expires_behind_a_full_window_is_not_sent() -> None:
    session, connection = attached(receive_maximum=1)
    for payload, expiry in ((b"1", None), (b"2", 10), (b"3", 100)):
        deliver(session, payload, message_expiry=expiry)
    session.inflight.remove(1)
    session.pump(50.0)
    assert payloads(connection) == [b"1", b"3"]
    assert session.counters.count("publish/messages/expired") == 1


def test_a_slow_reader_is_given_no_more_than_it_can_have_unsent() -> None:
    session, connection = attached()
    for number in range(40):
        deliver(session, b"%02d" % number * 50_000, qos=0)
    assert MAXIMUM_UNSENT <= connection.output.size < MAXIMUM_UNSENT + 100_010
    waiting = len(session.queue)
    assert waiting == 40 - 11
    seen = payloads(connection)
    while len(session.queue):
        session.pump(0.0)
        seen += payloads(connection)
    assert [payload[:2] for payload in seen] == [b"%02d" % number for number in range(40)]


def test_a_slow_reader_is_sent_nothing_again_either() -> None:
    session, connection = attached()
    for _ in range(3):
        deliver(session, b"x" * 500_000)
    assert len(payloads(connection)) == 3
    session.detach()
    session.attach(connection := open_connection(), 10)
    connection.send(Publish("other", b"x" * 900_000))
    for sent in (2, 2):
        session.pump(0.0)
        assert len(payloads(connection)) == sent


def test_the_window_is_bounded_in_bytes_too() -> None:
    session, connection = attached()
    for _ in range(4):
        deliver(session, b"x" * 500_000)
    assert len(payloads(connection)) == 3
    session.pump(0.0)
    assert connection.data_to_send(0) is None
    for packet_id in (1, 2):
        session.inflight.remove(packet_id)
        session.pump(0.0)
    assert len(payloads(connection)) == 1
    assert len(session.inflight) == 2


def test_qos_0_that_waits_is_given_up_with_the_connection() -> None:
    session, _ = attached(receive_maximum=1)
    for qos in (1, 0, 1, 0):
        deliver(session, qos=qos)
    session.detach()
    assert session.connection is None
    assert len(session.queue) == 1
    assert session.counters.count("publish/messages/dropped") == 1
    session.detach()
    assert session.counters.count("publish/messages/dropped") == 1


def test_without_a_connection_nothing_is_pumped() -> None:
    session = persistent()
    deliver(session)
    session.pump(0.0)
    assert len(session.queue) == 1


def test_a_message_too_large_for_the_client_is_dropped_for_it() -> None:
    session, connection = attached(receive_maximum=1)
    connection.maximum_packet_size = 20
    for size in (13, 12, 13, 11, 14):
        deliver(session, b"x" * size)
    seen = []
    while sent := packets(connection):
        (publish,) = sent
        assert isinstance(publish, Publish)
        seen.append(len(publish.payload))
        session.inflight.remove(publish.packet_id)
        session.pump(0.0)
    assert seen == [12, 11]
    assert session.counters.count("publish/messages/dropped") == 3
    assert len(session.inflight) == 0
    deliver(session, b"x" * 15, qos=0)
    assert session.counters.count("publish/messages/dropped") == 4


def test_the_expiry_interval_counts_down() -> None:
    session, connection = attached()
    message = Message("a", b"x", 1, arrived=100.0, message_expiry=60)
    for now in (100.0, 100.9, 130.5, 200.0):
        session.deliver(Delivery(message, 1), Templates(message), now)
    left = [
        packet.properties.message_expiry_interval
        for packet in packets(connection)
        if isinstance(packet, Publish)
    ]
    assert left == [60, 60, 30, 0]


def test_a_message_that_nobody_was_promised_is_no_loss_where_the_oldest_go() -> None:
    limits = SessionLimits(maximum_queued_messages=1, when_full=WhenFull.DROP_OLDEST)
    session = Session("c", Counters(), limits)
    session.expiry_interval = 60
    session.queue.append(Delivery(Message("t"), 0))
    overflow.drop_oldest(session, 1)
    assert not len(session.queue)
    assert session.counters.count("tidegate/queues/rejected") == 1
    assert session.counters.count("tidegate/queues/dropped_oldest") == 0
