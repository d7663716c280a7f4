"""What a session lets its journal know, and takes up again from what that had."""

import pytest

from gateway.session import continuation
from gateway.session.limits import SessionLimits
from gateway.session.restored import CLOCK_SET, RestoredSpan, StoredTail, seconds_since
from gateway.session.session import Session
from gateway.settings.when_full import WhenFull
from tests.support.broker.noted_journal import NotedJournal
from tests.support.broker.publications import publish
from tests.support.broker.sessions import (
    acknowledge,
    deliver,
    open_connection,
    packets,
    payloads,
    persistent,
    sent,
)
from tests.support.broker.spans import kept


def noted(journal: NotedJournal, limits: SessionLimits | None = None) -> Session:
    session = persistent(limits)
    session.persist_in(journal)
    return session


@pytest.mark.parametrize("count", [1, 2, 100])
def test_what_is_sent_at_qos_1_is_owed_until_it_is_acknowledged(count: int) -> None:
    session = noted(journal := NotedJournal())
    session.attach(connection := open_connection(), 1_000)
    contents = [b"%d" % number for number in range(count)]
    deliver(session, *contents)
    assert payloads(connection) == contents
    assert session.finish(range(1, count + 1), 0) == count
    assert journal.notes == [("enqueue", contents), ("done", contents)]
    assert journal.deferred == [True]


def test_each_message_of_qos_2_is_owed_by_itself_and_waits_for_the_disk() -> None:
    session = noted(journal := NotedJournal())
    session.attach(connection := open_connection(), 2)
    deliver(session, b"1", b"2", b"3", qos=2)
    assert journal.notes == [
        ("enqueue", [b"1"]),
        ("sent", [b"1"]),
        ("enqueue", [b"2"]),
        ("sent", [b"2"]),
        ("enqueue", [b"3"]),
    ]
    assert journal.deferred == [False] * 3
    assert connection.data_to_send(6) is None
    assert connection.output.waiting_for == 7
    span = session.inflight.find(1)
    assert span is not None
    assert [session.release(1, span), session.release(1, span)] == [7, 7]
    assert journal.notes[-2:] == [("released", [b"1"]), ("resent", [b"1"])]
    session.finish((1,), 0)
    session.pump(0.0)
    assert journal.notes[-2:] == [("done", [b"1"]), ("sent", [b"3"])]


def test_what_waits_is_deferred_only_if_it_comes_soon() -> None:
    session = noted(journal := NotedJournal())
    deliver(session, b"1")
    session.attach(open_connection(), 1)
    session.pump(0.0)
    deliver(session, b"2")
    deliver(session, b"3")
    assert journal.deferred == [False, True, False]


def test_what_a_window_ends_in_is_owed_in_two() -> None:
    session = noted(journal := NotedJournal())
    session.attach(open_connection(), 2)
    deliver(session, b"1", b"2", b"3", b"4")
    assert journal.notes == [("enqueue", [b"1", b"2"]), ("enqueue", [b"3", b"4"])]
    acknowledge(session, 2)
    assert journal.notes[2:] == [("done", [b"2"])]


def test_what_cannot_be_sent_is_done() -> None:
    session = noted(journal := NotedJournal())
    session.attach(connection := open_connection(), 9)
    connection.maximum_packet_size = 20
    deliver(session, b"1", b"x" * 50, b"3")
    deliver(session, b"4", expiry=5)
    assert payloads(connection) == [b"1", b"3", b"4"]
    assert journal.notes[1] == ("done", [b"x" * 50])
    session.detach()
    deliver(session, b"5", b"6", expiry=5)
    deliver(session, b"7", expiry=9)
    assert session.drop_expired(5.0) == 2
    assert journal.notes[-1] == ("done", [b"5", b"6"])
    for packet_id in (1, 3, 4):
        session.finish((packet_id,), 0)
    session.attach(open_connection(), 9)
    session.pump(9.0)
    assert journal.notes[-1] == ("done", [b"7"])


def test_a_departure_tells_the_packet_identifiers_of_qos_1() -> None:
    session = noted(journal := NotedJournal())
    session.attach(open_connection(), 9)
    deliver(session, b"1", b"2")
    deliver(session, b"3", qos=2)
    session.detach()
    del journal.notes[:]
    continuation.note_departure(session, 1_000)
    assert journal.notes == [("sent", [b"1", b"2"]), ("leave 1000", [])]


def test_what_is_sent_again_at_qos_2_waits_for_the_disk() -> None:
    session = noted(journal := NotedJournal())
    session.attach(open_connection(), 9)
    deliver(session, b"1", b"2", qos=2)
    session.inflight.release(1)
    session.detach()
    session.attach(connection := open_connection(), 9)
    session.pump(0.0)
    assert journal.notes[-2:] == [("resent", [b"1"]), ("resent", [b"2"])]
    assert packets(connection) == []
    data = connection.data_to_send(7)
    assert data is not None
    assert bytes(data).startswith(b"\x62\x02\x00\x01\x3c")


def test_the_tail_is_read_while_the_head_is_sent() -> None:
    journal = NotedJournal([([kept(4), kept(5, 2)], False)])
    session = noted(journal)
    size = sum(span.disk_bytes for span in (kept(4), kept(5, 2), kept(7)))
    tail = StoredTail(after=3, up_to=7, messages=4, bytes=size)
    begun = [RestoredSpan(kept(1)), RestoredSpan(kept(2, 2))]
    continuation.restore(session, begun, tail, connected=False)
    assert (len(session.queue), session.queue.paged) == (7, 4)
    session.attach(connection := open_connection(), 2)
    session.pump(0.0)
    assert journal.asked == [(3, 7), (6, 7)]
    while came := sent(connection):
        acknowledge(session, *(packet.packet_id for packet in came))
    assert (len(session.queue), connection.packets_sent) == (1, 6)
    session.queue.accept_page([kept(7)], complete=True)
    session.pump(0.0)
    assert (len(session.queue), connection.packets_sent) == (0, 7)


@pytest.mark.parametrize("connected", [False, True])
def test_what_was_sent_before_a_restart_comes_again(connected: bool) -> None:
    session = noted(NotedJournal(), SessionLimits(maximum_inflight=4))
    spans = [kept(1, 2), kept(3), kept(4, 3), kept(7)]
    spans[1] = kept(3, qos=2)
    spans[1].packet_id = 9
    given = [RestoredSpan(spans[0]), RestoredSpan(spans[1], released=True)]
    given += [RestoredSpan(span) for span in spans[2:]]
    continuation.restore(session, given, connected=connected)
    memory = session.limits.memory
    assert memory.deliveries == 7
    begun = [(packet_id, span.sequence) for packet_id, span in session.inflight.items()]
    assert begun == ([(1, 1), (2, 1), (9, 3), (3, 4)] if connected else [(9, 3)])
    assert len(session.queue) == 7 - len(begun)
    assert session.inflight.released == {9}
    session.discard()
    assert (memory.bytes, memory.deliveries) == (0, 0)


def test_the_oldest_go_as_soon_as_they_have_been_read() -> None:
    limits = SessionLimits(maximum_queued_messages=4, when_full=WhenFull.DROP_OLDEST)
    journal = NotedJournal([([kept(1), kept(2)], False), ([kept(3)], False)])
    session = noted(journal, limits)
    continuation.restore(session, [], StoredTail(0, 4, 4, 4 * kept(1).disk_bytes), connected=False)
    deliver(session, b"5", b"6")
    dropped = session.counters.count("tidegate/queues/dropped_oldest")
    assert (dropped, len(session.queue)) == (2, 4)
    assert [what for what, _ in journal.notes].count("done") == 2


@pytest.mark.parametrize(
    ("then", "now", "seconds"),
    [
        (CLOCK_SET, CLOCK_SET + 1_500, 1.5),
        (CLOCK_SET + 1_500, CLOCK_SET, 0.0),
        (CLOCK_SET - 1, CLOCK_SET + 1_500, 0.0),
    ],
)
def test_how_long_ago_is_nothing_where_the_clock_does_not_know(
    then: int, now: int, seconds: float
) -> None:
    assert seconds_since(then, now) == seconds


def test_a_publication_that_was_split_leaves_as_it_is_owed() -> None:
    session = noted(journal := NotedJournal())
    session.attach(connection := open_connection(), 9)
    publication = publish([b"1", b"2", b"3"])
    session.accept(publication, 1, 2, 1)
    assert journal.notes == [("enqueue", [b"2", b"3"])]
    assert payloads(connection) == [b"2", b"3"]
