import pytest

from gateway.counters import Counters
from gateway.mqtt.connection import MAXIMUM_UNSENT, Connection
from gateway.mqtt.packets import Publish, Will
from gateway.session.limits import SessionLimits
from gateway.session.session import Readiness, Session
from tests.support.broker.publications import publish
from tests.support.broker.sessions import (
    acknowledge,
    deliver,
    open_connection,
    payloads,
    persistent,
)
from tests.support.broker.spans import unkept

REJECTED, DROPPED = "tidegate/queues/rejected", "publish/messages/dropped"


def attached(
    receive_maximum: int = 10, limits: SessionLimits | None = None
) -> tuple[Session, Connection]:
    session, connection = persistent(limits), open_connection()
    session.attach(connection, receive_maximum)
    return session, connection


def many(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_a_session_that_has_ended_keeps_nothing() -> None:
    session = Session("c", Counters())
    deliver(session)
    assert len(session.queue) == 0


def test_room_is_what_a_persistent_session_has_in_its_queue() -> None:
    session = persistent(SessionLimits(maximum_queued_messages=3))
    publication = publish(many(5))
    assert session.capacity(publication, 0, 5, 1) == 3
    assert session.capacity(publication, 0, 5, 0) == 5
    deliver(session, b"1", b"2")
    assert session.capacity(publication, 1, 4, 2) == 1
    deliver(session, b"3", b"4", b"5")
    assert (len(session.queue), session.capacity(publication, 0, 5, 1)) == (3, 0)
    assert (session.counters.count(DROPPED), session.counters.count(REJECTED)) == (2, 2)
    session.expiry_interval = 0
    assert session.capacity(publication, 0, 5, 1) == 5


def test_a_connection_adds_the_room_of_its_window() -> None:
    session, connection = attached(4, SessionLimits(maximum_queued_messages=3))
    publication = publish(many(9))
    assert session.capacity(publication, 0, 9, 1) == 4 + 3
    session.accept(publication, 0, 7, 1, reserved=True)
    assert payloads(connection) == many(4)
    assert [span.count for span in session.queue] == [3]
    assert session.capacity(publication, 7, 2, 1) == 0
    acknowledge(session, 1)
    assert session.capacity(publication, 7, 2, 1) == 1


@pytest.mark.parametrize("qos", [1, 2])
def test_where_all_sessions_memory_is_full_only_what_need_not_wait_is_taken(qos: int) -> None:
    session, connection = attached(receive_maximum=2)
    other, publication = unkept(), publish(many(3), qos)
    session.limits.memory.maximum_bytes = 1
    session.limits.memory.add(other)  # by some other session
    assert session.capacity(publication, 0, 3, qos) == 2
    assert session.capacity(publication, 0, 3, 0) == 3
    session.accept(publication, 0, 3, qos)
    assert payloads(connection) == many(2)
    assert session.traffic.messages_sent == session.traffic.bytes_sent == 2
    assert session.counters.values == {
        "publish/messages/dropped": 1,
        "tidegate/queues/rejected_for_memory": 1,
    }
    assert session.capacity(publication, 0, 3, qos) == 0
    session.limits.memory.remove(other)
    deliver(session, qos=qos)
    assert len(session.queue) == 1
    session.detach()
    assert session.capacity(publication, 0, 3, qos) == 0


def test_a_session_without_a_connection_counts_what_is_inflight_too() -> None:
    session, connection = attached(receive_maximum=3)
    memory = session.limits.memory
    deliver(session, b"1", b"2")
    deliver(session, b"3", b"4")
    deliver(session, qos=0)
    assert (memory.messages, memory.deliveries) == (2 + 1, 1 + 1)
    session.detach()
    assert (memory.messages, memory.deliveries) == (4, 4)
    session.attach(connection, 2)
    assert (memory.messages, memory.deliveries) == (2, 1)
    session.detach()
    session.discard()
    assert (memory.messages, memory.deliveries, memory.bytes) == (0, 0, 0)
    assert (len(session.queue), len(session.inflight)) == (0, 0)


def test_what_expires_behind_a_full_window_is_not_sent() -> None:
    session, connection = attached(receive_maximum=1)
    deliver(session, b"1")
    deliver(session, b"2", b"2", expiry=10)
    deliver(session, b"3", expiry=100)
    deliver(session, b"4")
    deliver(session, b"5", expiry=10)
    session.finish((1,), 0)
    session.pump(50.0)
    assert payloads(connection) == [b"1", b"3"]
    assert session.counters.count("publish/messages/expired") == 2
    assert (session.drop_expired(50.0), len(session.queue)) == (1, 1)


@pytest.mark.parametrize("together", [1, 2, 20])
def test_a_slow_reader_is_given_no_more_than_it_can_have_unsent(together: int) -> None:
    session, connection = attached()
    contents = [b"%02d" % number * 50_000 for number in range(40)]
    deliver(session, *contents[:11], qos=0)  # what was read at once leaves at once
    for first in range(11, 40, together):
        deliver(session, *contents[first : first + together], qos=0)
    assert MAXIMUM_UNSENT <= connection.output.size < MAXIMUM_UNSENT + 100_010
    assert len(session.queue) == 40 - 11
    seen = payloads(connection)
    while len(session.queue):
        session.pump(0.0)
        assert connection.output.size < MAXIMUM_UNSENT + 100_010
        seen += payloads(connection)
    assert seen == contents


def test_a_slow_reader_is_sent_nothing_again_either() -> None:
    session, connection = attached()
    deliver(session, *[b"x" * 500_000] * 3)
    assert len(payloads(connection)) == 3
    session.detach()
    session.attach(connection := open_connection(), 10)
    connection.send(Publish("other", b"x" * 900_000))
    for count in (2, 2):
        session.pump(0.0)
        assert len(payloads(connection)) == count


def test_qos_0_that_waits_is_given_up_with_the_connection() -> None:
    session, _ = attached(receive_maximum=1)
    for qos in (1, 0, 1, 0):
        deliver(session, b"1", qos=qos)
    for _ in range(2):
        session.detach()
        assert session.connection is None
        assert len(session.queue) == 1
        assert session.counters.count(DROPPED) == 1


def test_how_soon_a_message_can_be_sent() -> None:
    session, connection = attached(1, SessionLimits(maximum_queued_messages=1))
    found = [session.readiness(1)]
    deliver(session)
    found += [session.readiness(0), session.readiness(1)]
    connection.send_encoded(b"x" * MAXIMUM_UNSENT, 1)
    found.append(session.readiness(0))
    deliver(session)
    found.append(session.readiness(1))
    session.queue.clear()
    session.detach()
    found += [session.readiness(1), session.readiness(0)]
    assert found == [
        Readiness.READY,
        Readiness.READY,
        Readiness.WAITING,
        Readiness.WAITING,
        Readiness.FULL,
        Readiness.AWAY,
        Readiness.FULL,
    ]


def test_what_is_queued_last_comes_soon_while_it_is_less_than_a_window() -> None:
    session, connection = attached(receive_maximum=2)
    found = [session.comes_soon]
    deliver(session, *many(3))
    found.append(session.comes_soon)
    deliver(session)
    found.append(session.comes_soon)
    acknowledge(session, 1, 2)
    connection.send_encoded(b"x" * MAXIMUM_UNSENT, 1)
    found.append(session.comes_soon)
    session.detach()
    assert [*found, session.comes_soon] == [True, True, False, False, False]


def test_whoever_waits_for_room_is_told() -> None:
    session, _ = attached(receive_maximum=1)
    reported: list[tuple[Session, float]] = []
    session.on_capacity = lambda who, now: reported.append((who, now))
    session.pump(7.0)
    assert reported == [(session, 7.0)]


@pytest.mark.parametrize("qos", [1, 2])
def test_what_others_of_a_shared_subscription_get_when_the_session_ends(qos: int) -> None:
    session, _ = attached(receive_maximum=4)
    first, second = publish(many(3), qos), publish(many(3), qos)
    session.accept(first, 0, 3, qos, topic_filter="$share/g/a")
    deliver(session, qos=qos)
    session.accept(second, 0, 3, qos, topic_filter="$share/g/a")
    deliver(session, qos=qos)
    assert session.finish((2,), 0) == 1
    assert session.finish((9,), 0) == 0
    begun = [(first, 0, 1), (first, 2, 1)] if qos == 1 else []
    left = [(span.publication, span.first, span.count) for span in session.for_other_members()]
    assert left == [*begun, (second, 0, 3)]
    owed = [span.publication for span in session.undelivered()]
    assert (owed[0], owed[2], len(owed)) == (first, second, 4)


def test_a_will_counts_while_it_may_be_published() -> None:
    session = persistent()
    memory = session.limits.memory
    session.will = Will("a", b"x")
    once = memory.bytes
    session.will = Will("a", b"x")
    assert memory.bytes == once > 0
    assert session.will == Will("a", b"x")
    session.will = None
    assert memory.bytes == 0


def test_qos_2_messages_of_the_client_are_forgotten_with_the_session() -> None:
    session, connection = attached()
    found = [session.has_incoming]
    session.incoming.add(7)
    found.append(session.has_incoming)
    session.attach(connection, 10)
    assert session.incoming.add(7)  # not published on this connection before
    session.detach()
    session.discard()
    assert [*found, session.has_incoming] == [False, True, False]
    assert session.limits.memory.bytes == 0
