"""What cannot be read costs a queue no more than itself, and nothing if it is read later."""

import sqlite3

import pytest

from tests.support.broker.durable_broker import DurableHarness, away
from tests.support.broker.paged_queues import MESSAGES, drain, fill, numbers

pytestmark = pytest.mark.usefixtures("small_pages")


def test_a_disk_that_cannot_be_read_is_asked_again(
    harness: DurableHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    away(harness)
    fill(harness)

    async def broken(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(harness.disk, "query", broken)
        client = harness.persistent()
        found = drain(client)
        assert len(found) < MESSAGES
    (again,) = harness.disk.retries
    again()
    harness.settle()
    assert found + drain(client) == numbers()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE delivery SET message = -1 WHERE sequence = 7",
        "UPDATE delivery SET packet_id = 65536, qos = 3 WHERE sequence = 7",
        "UPDATE message SET topic = CAST(x'ff' AS TEXT) WHERE id = 7",
    ],
)
def test_what_cannot_be_read_is_left_out_and_no_more(harness: DurableHarness, damage: str) -> None:
    away(harness)
    fill(harness)
    harness.disk.connection.execute(damage)
    assert drain(harness.persistent("c")) == [*numbers(6), *numbers(first=7)]
    assert harness.counters.count("tidegate/storage/unreadable") >= 1


def test_a_page_that_cannot_be_read_is_the_end(harness: DurableHarness) -> None:
    away(harness)
    fill(harness)
    harness.disk.connection.execute("UPDATE delivery SET qos = 3 WHERE sequence > 6")
    client = harness.persistent("c")
    assert drain(client) == numbers(6)
    assert not len(harness.session().queue)
