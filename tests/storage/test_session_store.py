"""The store of sessions against a model in memory, with crashes that lose the uncommitted."""

from typing import Any

import pytest

from gateway.counters import Counters
from gateway.mqtt.output import Pledge
from gateway.routing.where.message import Message
from gateway.session.delivery import Delivery
from gateway.session.kept import KeptSubscription
from gateway.storage.broker_store import BrokerStore
from gateway.storage.gathering import PUT_OFF
from gateway.storage.session_journal import SessionJournal
from tests.support.queues import single
from tests.support.sqlite_disk import SqliteDisk


@pytest.fixture
def disk() -> SqliteDisk:
    return SqliteDisk()


def opened(disk: SqliteDisk, within: float = 0.0) -> tuple[BrokerStore, SessionJournal]:
    store, _ = disk.restore(0.0, 0)
    return store, store.open("c", within)


def test_changes_are_due_as_the_class_of_the_session_says(disk: SqliteDisk) -> None:
    store, journal = opened(disk, 0.05)
    journal.keep(60, None)
    assert disk.wanted == 0.05
    assert store.changes == 1
    journal.keep(60, None)
    assert store.changes == 1  # it says nothing new
    disk.commit()
    journal.leave(5)
    assert disk.wanted == PUT_OFF


def session_rows(disk: SqliteDisk) -> list[tuple[Any, ...]]:
    names = "client_id, expiry_interval, username, left_at"
    return disk.connection.execute(f"SELECT {names} FROM session").fetchall()


def test_the_row_of_a_session_says_what_it_is_now(disk: SqliteDisk) -> None:
    _, journal = opened(disk)
    journal.keep(60, None)
    journal.keep(70, "u")
    assert disk.commit() == 1
    assert session_rows(disk) == [("c", 70, "u", None)]
    journal.leave(5)
    disk.commit()
    assert session_rows(disk) == [("c", 70, "u", 5)]
    journal.keep(80, None)
    journal.close([])
    disk.commit()
    assert session_rows(disk) == []


def test_a_row_that_only_the_disk_knows_of_gives_way(disk: SqliteDisk) -> None:
    """It could not be read at the start, say: no commit must fail because of it."""
    _, journal = opened(disk)
    disk.connection.execute("INSERT INTO session VALUES (99, 'c', 1, 'old', NULL)")
    journal.keep(60, "u")
    disk.commit()
    assert session_rows(disk) == [("c", 60, "u", None)]


@pytest.mark.parametrize(("within", "wanted"), [(0.0, 0.0), (0.05, 0.05)])
def test_deliveries_are_due_as_the_class_of_their_message_says(
    disk: SqliteDisk, within: float, wanted: float
) -> None:
    _, journal = opened(disk)
    message = Message("t", b"", 1)
    message.commit_within = within
    journal.owe(Delivery(message, 1))
    assert disk.wanted == wanted


def test_what_is_kept_in_memory_alone_has_no_place(disk: SqliteDisk) -> None:
    store, journal = opened(disk)
    message = Message("t", b"", 2)
    message.commit_within = None
    message.pledge = Pledge(0)
    delivery = Delivery(message, 2)
    journal.owe(delivery)
    journal.lend(delivery)
    assert journal.sent(delivery, 1) == journal.released(delivery) == 0
    journal.identify(delivery, 1)
    journal.done(delivery)
    journal.close([delivery])
    assert (delivery.place, message.owed, store.lent) == (0, 0, 0)


def lent_or_owed(journals: list[SessionJournal], number: int, *, lend: bool, qos: int = 1) -> None:
    """Let the sessions have a message: lend it to the first, owe it to the others."""
    message = Message("t", b"%d" % number, qos, received_at=0)
    message.pledge = Pledge(0)
    for place, journal in enumerate(journals):
        (journal.lend if lend and not place else journal.owe)(Delivery(message, qos))


def on_disk(disk: SqliteDisk) -> dict[str, list[bytes]]:
    _, kept = disk.restore(0.0, 0)
    return {
        each.client_id: [single(one.delivery).message.payload for one in each.deliveries]
        for each in kept.sessions
    }


def test_what_is_written_leaves_nothing_lent_before_it_out(disk: SqliteDisk) -> None:
    store, _ = disk.restore(0.0, 0)
    a, b = store.open("a", 0.0), store.open("b", 0.0)
    a.keep(60, None)
    b.keep(60, None)
    disk.commit()
    lent_or_owed([b], 1, lend=True)  # stands before 3 in b
    lent_or_owed([a], 2, lend=True)  # stands before 3 in a
    lent_or_owed([b, a], 3, lend=True)
    lent_or_owed([a], 4, lend=True)
    disk.commit()
    assert on_disk(disk) == {"a": [b"2", b"3"], "b": [b"1", b"3"]}


def test_the_order_is_that_of_one_qos(disk: SqliteDisk) -> None:
    store, _ = disk.restore(0.0, 0)
    journal = store.open("a", 0.0)
    journal.keep(60, None)
    lent_or_owed([journal], 1, lend=True)
    lent_or_owed([journal], 2, lend=False, qos=2)
    disk.commit()
    assert on_disk(disk) == {"a": [b"2"]}


@pytest.mark.parametrize(
    ("table", "change", "lost"),
    [
        ("message", "qos = 7", "deliveries"),
        ("message", "user_properties = 'no JSON'", "deliveries"),
        ("message", "topic = CAST(x'ff' AS TEXT)", "deliveries"),
        ("delivery", "qos = 3", "deliveries"),
        ("delivery", "message = 99", "deliveries"),
        ("delivery", "packet_id = 65536", "deliveries"),
        ("delivery", "identifiers = '1 x'", "deliveries"),
        ("subscription", "qos = 3", "subscriptions"),
        ("incoming", "packet_id = 0", "incoming"),
    ],
)
def test_a_row_that_cannot_be_read_is_left_out(
    disk: SqliteDisk, table: str, change: str, lost: str
) -> None:
    _, journal = opened(disk)
    journal.keep(60, None)
    journal.owe(Delivery(Message("t", b"", 1, received_at=0), 1))
    journal.subscribe(KeptSubscription("t", 1))
    journal.take(5)
    disk.commit()
    disk.connection.execute(f"UPDATE {table} SET {change}")
    counters = Counters()
    store, kept = disk.restore(0.0, 0, counters)
    (session,) = kept.sessions
    expected: dict[str, list[Any]] = {
        name: [] for name in ("deliveries", "subscriptions", "incoming") if name == lost
    }
    for name in ("deliveries", "subscriptions", "incoming"):
        assert len(getattr(session, name)) == (0 if name in expected else 1), name
    assert counters.count("tidegate/storage/unreadable") >= 1
    another = store.open("d", 0.0)  # what comes now takes no place of what could not be read
    another.keep(60, None)
    another.owe(Delivery(Message("t", b"new", 1, received_at=0), 1))
    session.journal.owe(Delivery(Message("t", b"new", 1, received_at=0), 1))
    disk.commit()
    _, kept = disk.restore(0.0, 0)
    assert [single(each.deliveries[-1].delivery).message.payload for each in kept.sessions] == [
        b"new"
    ] * 2


def test_messages_that_nobody_is_owed_are_deleted_at_the_start(disk: SqliteDisk) -> None:
    _, journal = opened(disk)
    journal.keep(60, None)
    journal.owe(Delivery(Message("t", b"", 1, received_at=0), 1))
    disk.commit()
    disk.connection.execute("DELETE FROM delivery")
    disk.restore(0.0, 0)
    disk.commit()
    assert disk.count("message") == 0


def test_messages_that_are_owed_no_more_stay_while_others_are(
    disk: SqliteDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, journal = opened(disk)
    journal.keep(60, None)
    deliveries = [Delivery(Message("t", b"x" * 50, 1, received_at=0), 1) for _ in range(4)]
    for delivery in deliveries:
        journal.owe(delivery)
    disk.commit()
    journal.done(deliveries[1])
    disk.commit()
    assert (disk.count("message"), disk.count("delivery")) == (4, 3)
    monkeypatch.setattr("gateway.storage.message_store.MAXIMUM_DEAD_BYTES", 300)
    journal.done(deliveries[0])
    disk.commit()  # 300 bytes with what is counted for a row
    assert (disk.count("message"), disk.count("delivery")) == (2, 2)
    journal.done(deliveries[2])
    disk.commit()
    assert disk.count("message") == 2
    _, kept = disk.restore(0.0, 0)  # a start finds it
    disk.commit()
    assert disk.count("message") == 1
    kept.sessions[0].journal.done(single(kept.sessions[0].deliveries[0].delivery))
    disk.commit()
    assert disk.count("message") == 0
