"""Where a message waits or how it ended, also in a database that lacks some of the tables."""

import sqlite3
from collections.abc import Iterator

import pytest

from gateway.mqtt.message import Message
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, PubAck, Publish
from gateway.storage.history.outcome_reader import OutcomeReader, Undelivered
from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.publishing import batch

NUMBER = ("00a1b2c3d4", "main", 5)
MESSAGE = Message("t", b"x", 1, received_at=1_000)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:")
    yield opened
    opened.close()


def test_without_the_tables_nothing_is_known(connection: sqlite3.Connection) -> None:
    outcomes = OutcomeReader(connection)
    assert outcomes.waiting(NUMBER) is None
    assert outcomes.rejection(NUMBER) is None
    assert outcomes.ledger(NUMBER) == []
    assert outcomes.undelivered("c", MESSAGE) is None
    assert not outcomes.has_session("c")


def test_another_mistake_is_told(connection: sqlite3.Connection) -> None:
    connection.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        OutcomeReader(connection).ledger(NUMBER)


@pytest.mark.parametrize(
    ("number", "expected"), [(2, None), (3, ("expired", "7d")), (5, ("expired", "7d")), (6, None)]
)
def test_the_ledger_has_ranges(
    connection: sqlite3.Connection, number: int, expected: tuple[str, str] | None
) -> None:
    connection.execute("CREATE TABLE ledger (epoch, stream, first, last, uplink, outcome, reason)")
    connection.executemany(
        "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            ("00a1b2c3d4", "main", 1, 1, "", "delivered", ""),
            ("00a1b2c3d4", "main", 3, 5, "", "expired", "7d"),
            ("00a1b2c3d4", "other", 1, 9, "", "lost", "x"),
        ],
    )
    found = OutcomeReader(connection).ledger(("00a1b2c3d4", "main", number))
    assert found == ([("", *expected)] if expected else [])


@pytest.mark.parametrize(
    ("packet_id", "released", "expected"),
    [(0, 0, Undelivered(None, False)), (7, 0, Undelivered(7, False)), (7, 1, Undelivered(7, True))],
)
def test_what_a_stored_session_is_owed(
    connection: sqlite3.Connection, packet_id: int, released: int, expected: Undelivered
) -> None:
    connection.executescript(
        "CREATE TABLE session (id, client_id);"
        "CREATE TABLE message (id, topic, time, payload);"
        "CREATE TABLE delivery (session, message, packet_id, released);"
        "INSERT INTO session VALUES (1, 'c'), (2, 'd');"
        "INSERT INTO message VALUES (8, 't', 1000, x'78'), (9, 't', 1000, x'79');"
    )
    delivery = (1, 8, packet_id, released)
    connection.execute("INSERT INTO delivery VALUES (?, ?, ?, ?)", delivery)
    connection.execute("INSERT INTO delivery VALUES (2, 9, 3, 0)")
    outcomes = OutcomeReader(connection)
    assert outcomes.undelivered("c", MESSAGE) == expected
    assert outcomes.undelivered("d", MESSAGE) is None
    assert outcomes.has_session("d")
    assert not outcomes.has_session("e")


@pytest.mark.parametrize("version", [MQTT_3_1_1, MQTT_5])
def test_a_message_of_a_batch_is_found_by_its_payload(version: int) -> None:
    harness = DurableHarness()
    away(harness, "a/#", "away", 1)
    harness.connect("publisher", version).send(*batch(20, 1))
    outcomes = OutcomeReader(harness.disk.connection)

    def undelivered(payload: bytes) -> Undelivered | None:
        return outcomes.undelivered("away", Message("a/b", payload, 1, received_at=harness.wall))

    assert undelivered(b"4") == Undelivered(None, False)
    assert undelivered(b"x") is None
    client = harness.persistent("away", receive_maximum=15)
    client.send(*(PubAck(number) for number in (1, 2, 3, 5)))
    client.drop()
    harness.settle()
    assert [undelivered(b"%d" % number) for number in (3, 5)] == [None, None]
    for number in (4, 6, 15, 16, 17, 18, 19):  # what goes into the window was sent
        assert undelivered(b"%d" % number) == Undelivered(number, False)
    assert undelivered(b"20") == Undelivered(None, False)
    harness.disk.connection.execute("UPDATE message SET payload = x'00'")
    assert undelivered(b"4") is None


def test_a_message_among_others_is_found_by_topic_and_payload() -> None:
    harness = DurableHarness()
    away(harness, "a/#", "away", 1)
    topics = ["a/b", "a/longer", "a/b"]
    harness.connect("publisher").send(
        *(Publish(topic, b"x", 1, packet_id=number) for number, topic in enumerate(topics, 1))
    )
    rows = harness.disk.connection.execute("SELECT topic FROM message").fetchall()
    assert [tuple(row) for row in rows] == [("",)]
    outcomes = OutcomeReader(harness.disk.connection)
    found = {
        topic: outcomes.undelivered("away", Message(topic, b"x", 1, received_at=harness.wall))
        for topic in ("a/b", "a/longer", "a/other", "")
    }
    here = Undelivered(None, False)
    assert found == {"a/b": here, "a/longer": here, "a/other": None, "": None}
