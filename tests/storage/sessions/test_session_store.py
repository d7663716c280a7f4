"""What the store of sessions writes, when, and what it makes of rows that cannot be read."""

from typing import Any

import pytest

from gateway.counters import Counters
from gateway.mqtt.output import Barrier
from gateway.session.restored import StoredSubscription
from gateway.session.span import Span
from gateway.storage.engine.pending_batch import PUT_OFF
from gateway.storage.sessions.broker_store import BrokerStore
from gateway.storage.sessions.session_journal import SessionJournal
from tests.support.broker.publications import publish
from tests.support.disk.sqlite_disk import SqliteDisk


def one(payload: bytes = b"", qos: int = 1) -> Span:
    """Return a span of one message."""
    return Span(publish([payload], qos, topic="t"), 0, 1, qos)


def payload(span: Span) -> bytes:
    return span.publication.packets.one(span.first)


@pytest.fixture
def disk() -> SqliteDisk:
    return SqliteDisk()


def opened(disk: SqliteDisk, within: float = 0.0) -> tuple[BrokerStore, SessionJournal]:
    store, _ = disk.restore(0.0, 0)
    return store, store.open("c", within)


def test_changes_are_due_as_the_class_of_the_session_says(disk: SqliteDisk) -> None:
    _, journal = opened(disk, 0.05)
    journal.store(60, None)
    assert disk.wanted == 0.05
    assert disk.pending.changes == 1
    journal.store(60, None)
    assert disk.pending.changes == 1  # it says nothing new
    disk.commit()
    journal.disconnect(5)
    assert disk.wanted == PUT_OFF


def session_rows(disk: SqliteDisk) -> list[tuple[Any, ...]]:
    names = "client_id, expiry_interval, username, left_at"
    return disk.connection.execute(f"SELECT {names} FROM session").fetchall()


def test_the_row_of_a_session_says_what_it_is_now(disk: SqliteDisk) -> None:
    _, journal = opened(disk)
    journal.store(60, None)
    journal.store(70, "u")
    assert disk.commit() == 1
    assert session_rows(disk) == [("c", 70, "u", None)]
    journal.disconnect(5)
    disk.commit()
    assert session_rows(disk) == [("c", 70, "u", 5)]
    journal.store(80, None)
    journal.close([])
    disk.commit()
    assert session_rows(disk) == []


def test_a_row_that_only_the_disk_knows_of_gives_way(disk: SqliteDisk) -> None:
    """It could not be read at the start, say: no commit must fail because of it."""
    _, journal = opened(disk)
    disk.connection.execute("INSERT INTO session VALUES (99, 'c', 1, 'old', NULL, NULL, 0, 0)")
    journal.store(60, "u")
    disk.commit()
    assert session_rows(disk) == [("c", 60, "u", None)]


@pytest.mark.parametrize(("within", "wanted"), [(0.0, 0.0), (0.05, 0.05)])
def test_deliveries_are_due_as_the_class_of_their_message_says(
    disk: SqliteDisk, within: float, wanted: float
) -> None:
    _, journal = opened(disk)
    span = one()
    span.publication.commit_within = within
    journal.enqueue(span, deferred=False)
    assert disk.wanted == wanted


@pytest.mark.parametrize("deferred", [False, True])
def test_what_is_kept_in_memory_alone_has_no_row(disk: SqliteDisk, deferred: bool) -> None:
    _, journal = opened(disk)
    span = one(qos=2)
    span.publication.commit_within = None
    span.publication.barrier = Barrier()
    journal.enqueue(span, deferred)
    assert journal.sent(span) == journal.released(span) == 0
    journal.sent(span)
    journal.done(span, 0, 1)
    journal.close([span])
    assert (span.sequence, span.publication.stored_for, disk.pending.deferred) == (0, 0, 0)


def test_what_is_released_before_its_row_is_written_is_so_in_it(disk: SqliteDisk) -> None:
    _, journal = opened(disk)
    journal.store(60, None)
    span = one(qos=2)
    journal.enqueue(span, deferred=False)
    span.packet_id = 7
    assert journal.sent(span) == journal.released(span) == disk.batch
    disk.commit()
    _, kept = disk.restore(0.0, 0)
    (each,) = kept.sessions[0].spans
    assert (each.released, each.span.packet_id) == (True, 7)


def owe_all(journals: list[SessionJournal], number: int, *, defer: bool, qos: int = 1) -> None:
    """Let the sessions have a message; the write of the first may be deferred."""
    publication = publish([b"%d" % number], qos, topic="t")
    publication.barrier = Barrier()
    for place, journal in enumerate(journals):
        journal.enqueue(Span(publication, 0, 1, qos), defer and not place)


def on_disk(disk: SqliteDisk) -> dict[str, list[bytes]]:
    _, kept = disk.restore(0.0, 0)
    return {each.client_id: [payload(one.span) for one in each.spans] for each in kept.sessions}


def test_what_is_written_leaves_nothing_deferred_before_it_out(disk: SqliteDisk) -> None:
    store, _ = disk.restore(0.0, 0)
    a, b = store.open("a", 0.0), store.open("b", 0.0)
    a.store(60, None)
    b.store(60, None)
    disk.commit()
    owe_all([b], 1, defer=True)  # stands before 3 in b
    owe_all([a], 2, defer=True)  # stands before 3 in a
    owe_all([b, a], 3, defer=True)
    owe_all([a], 4, defer=True)
    disk.commit()
    assert on_disk(disk) == {"a": [b"2", b"3"], "b": [b"1", b"3"]}


def test_the_order_is_that_of_one_qos(disk: SqliteDisk) -> None:
    store, _ = disk.restore(0.0, 0)
    journal = store.open("a", 0.0)
    journal.store(60, None)
    owe_all([journal], 1, defer=True)
    owe_all([journal], 2, defer=False, qos=2)
    disk.commit()
    assert on_disk(disk) == {"a": [b"2"]}


@pytest.mark.parametrize(
    ("table", "change", "lost"),
    [
        ("message", "qos = 7", "spans"),
        ("message", "user_properties = 'no JSON'", "spans"),
        ("message", "topic = CAST(x'ff' AS TEXT)", "spans"),
        ("delivery", "qos = 3", "spans"),
        ("delivery", "message = 99", "spans"),
        ("delivery", "packet_id = 65536", "spans"),
        ("delivery", "identifiers = '1 x'", "spans"),
        ("subscription", "qos = 3", "subscriptions"),
        ("incoming", "packet_id = 0", "incoming"),
    ],
)
def test_a_row_that_cannot_be_read_is_left_out(
    disk: SqliteDisk, table: str, change: str, lost: str
) -> None:
    _, journal = opened(disk)
    journal.store(60, None)
    journal.enqueue(one(), deferred=False)
    journal.subscribe("t", StoredSubscription("t", 1))
    journal.note_incoming((5,), released=False)
    disk.commit()
    disk.connection.execute(f"UPDATE {table} SET {change}")
    counters = Counters()
    store, kept = disk.restore(0.0, 0, counters)
    (session,) = kept.sessions
    expected: dict[str, list[Any]] = {
        name: [] for name in ("spans", "subscriptions", "incoming") if name == lost
    }
    for name in ("spans", "subscriptions", "incoming"):
        assert len(getattr(session, name)) == (0 if name in expected else 1), name
    assert counters.count("tidegate/storage/unreadable") >= 1
    another = store.open("d", 0.0)  # what comes now takes no place of what could not be read
    another.store(60, None)
    another.enqueue(one(b"new"), deferred=False)
    session.journal.enqueue(one(b"new"), deferred=False)
    disk.commit()
    _, kept = disk.restore(0.0, 0)
    assert [payload(each.spans[-1].span) for each in kept.sessions] == [b"new"] * 2


def test_messages_that_nobody_is_owed_are_deleted_at_the_start(disk: SqliteDisk) -> None:
    _, journal = opened(disk)
    journal.store(60, None)
    journal.enqueue(one(), deferred=False)
    disk.commit()
    disk.connection.execute("DELETE FROM delivery")
    disk.restore(0.0, 0)
    disk.commit()
    assert disk.count("message") == 0


def test_messages_that_are_owed_no_more_stay_while_others_are(
    disk: SqliteDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, journal = opened(disk)
    journal.store(60, None)
    spans = [one(b"x" * 50) for _ in range(4)]
    for span in spans:
        journal.enqueue(span, deferred=False)
    disk.commit()
    journal.done(spans[1], 0, 1)
    disk.commit()
    assert (disk.count("message"), disk.count("delivery")) == (4, 3)
    monkeypatch.setattr("gateway.storage.sessions.message_store.MAXIMUM_DEAD_BYTES", 300)
    journal.done(spans[0], 0, 1)
    disk.commit()  # 300 bytes with what is counted for a row
    assert (disk.count("message"), disk.count("delivery")) == (2, 2)
    journal.done(spans[2], 0, 1)
    disk.commit()
    assert disk.count("message") == 2
    _, kept = disk.restore(0.0, 0)  # a start finds it
    disk.commit()
    assert disk.count("message") == 1
    kept.sessions[0].journal.done(kept.sessions[0].spans[0].span, 0, 1)
    disk.commit()
    assert disk.count("message") == 0
