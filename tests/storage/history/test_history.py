"""The history is a ring: what is too old or too much goes, what was recorded comes back whole."""

import sqlite3
from pathlib import Path

import pytest

from gateway.errors import TidegateError
from gateway.mqtt.message import Message
from gateway.mqtt.message import Message as AcceptedMessage
from gateway.storage.engine.database import FILE_NAME
from gateway.storage.history.history import TRIM_ROWS, History, RecordedRule
from gateway.storage.history.reader import HistoryReader, open_history
from gateway.storage.history.row import HistoryRow, Numbered, RuleResult, size_of
from tests.support.disk.storage import Store, outbox_row, refuse_writes, until

EPOCH = "00a1b2c3d4"
RULES = [
    RecordedRule(0, "main", "s/#", "CHANGED(payload.t)", "live"),
    RecordedRule(1, "main", "#", None, "backlog"),
]
NUMBERS = (
    Numbered("main", 7, (RuleResult(0, 3, None, True), RuleResult(1, 0, True))),
    Numbered("slow", 2, (RuleResult(2, 0, False),)),
)


def message(payload: bytes = b"x", topic: str = "s/1", time: int = 1_000) -> Message:
    return Message(topic, payload, 1, received_at=time)


async def begun(
    store: Store, keep: int = 3600, max_bytes: int = 1 << 20, start: int = 1
) -> History:
    history = History(store.database, store.writer, store.counters, keep, max_bytes)
    await history.begin(EPOCH, start, RULES)
    await store.settle()
    return history


def fields(message: Message) -> dict[str, object]:
    names = [name for name in AcceptedMessage.__slots__ if not name.startswith("_")]
    return {name: getattr(message, name) for name in names if name != "arrived"}


async def rows(store: Store, since: int = 0) -> list[HistoryRow]:
    await store.settle()
    with open_history(store.database.path.parent) as reader:
        assert reader is not None
        return list(reader.since(since))


async def test_a_message_comes_back_whole(store: Store) -> None:
    whole = Message(
        "s/温度",
        b"\xff\x00",
        2,
        retain=True,
        client_id="c",
        username="u",
        received_at=1_763_740_000_123,
        content_type="text",
        response_topic="r",
        correlation_data=b"\x00",
        message_expiry=5,
        payload_format=1,
        user_properties=(("a", "1"), ("a", "2")),
    )
    history = await begun(store)
    history.add(whole, NUMBERS)
    history.add(message(), ())
    first, second = await rows(store)
    assert fields(first.message) == fields(whole)
    assert (first.start, first.epoch, first.numbers) == (1, EPOCH, NUMBERS)
    assert fields(second.message) == fields(message())
    assert (first.id, second.id) == (size_of(whole), size_of(whole) + size_of(message()))


async def test_whether_the_payload_was_json_is_recorded(store: Store) -> None:
    history = await begun(store)
    for payload in (b'{"a":1}', b'{"a":1}x'):
        history.add(message(payload), ())
    await store.settle()
    statement = "SELECT payload_is_json FROM history ORDER BY id"
    query = store.database.reader.query
    assert await query(statement, (), lambda cursor: cursor.fetchall()) == [(1,), (0,)]


async def test_no_more_bytes_than_allowed(store: Store) -> None:
    size = size_of(message(b"0000"))
    history = await begun(store, max_bytes=10 * size)
    for number in range(2 * TRIM_ROWS):
        history.add(message(b"%04d" % number), ())
    kept = [int(row.message.payload) for row in await rows(store)]
    assert kept == list(range(2 * TRIM_ROWS - 10, 2 * TRIM_ROWS))


async def test_nothing_older_than_allowed(store: Store) -> None:
    history = await begun(store, keep=10)
    for number in range(TRIM_ROWS):
        history.add(message(time=1_000 * number), ())
    times = [(row.message.received_at or 0) // 1000 for row in await rows(store)]
    assert times == list(range(TRIM_ROWS - 11, TRIM_ROWS))


async def test_since(store: Store) -> None:
    history = await begun(store)
    for time in (1, 2, 3):
        history.add(message(time=time), ())
    assert [row.message.received_at for row in await rows(store, 2)] == [2, 3]


async def test_a_later_start_goes_on(store: Store) -> None:
    (await begun(store)).add(message(), ())
    await store.settle()
    (await begun(store, start=2)).add(message(), ())
    first, second = await rows(store)
    assert (first.start, second.start) == (1, 2)
    assert second.id == 2 * first.id


async def test_turned_off_it_is_empty(store: Store) -> None:
    (await begun(store)).add(message(), ())
    await store.settle()
    await begun(store, keep=0, start=2)
    with open_history(store.database.path.parent) as reader:
        assert reader is not None
        assert not reader.on
        assert reader.rules(1) == {}
    assert await rows(store) == []


async def test_rules_are_known_as_long_as_messages_of_their_start(store: Store) -> None:
    (await begun(store)).add(message(), ())
    await store.settle()
    await begun(store, start=2)
    await begun(store, start=3)
    folder = store.database.path.parent
    with open_history(folder) as reader:
        assert reader is not None
        assert [len(reader.rules(start)) for start in (1, 2, 3)] == [2, 2, 2]
        assert reader.rules(3) == {0: RULES[0], 1: RULES[1]}
    await store.database.writer.write([("DELETE FROM history", [()])])
    await begun(store, start=4)
    with open_history(folder) as reader:
        assert reader is not None
        assert [len(reader.rules(start)) for start in (1, 2, 3, 4)] == [0, 0, 0, 2]


async def test_a_full_writer_skips(store: Store) -> None:
    history = await begun(store)
    store.writer.attempts.failing = True
    history.add(message(), ())
    assert store.writer.pending_rows == 0
    assert store.counters.count("tidegate/history/skipped") == 1
    store.writer.attempts.failing = False
    history.add(message(), ())
    assert store.counters.count("tidegate/history/recorded") == 1


async def test_a_message_is_found_by_its_number(store: Store) -> None:
    history = await begun(store)
    history.add(message(b"other"), ())
    history.add(message(b"wanted"), NUMBERS)
    store.outbox.add(outbox_row(7))
    store.rejected.add(outbox_row(2, "slow"), 0x99, 0)
    await store.settle()
    with open_history(store.database.path.parent) as reader:
        assert reader is not None
        assert reader.on
        for stream, number in (("main", 7), ("slow", 2)):
            found = reader.find((EPOCH, stream, number))
            assert found is not None
            assert found.message.payload == b"wanted"
        assert reader.find((EPOCH, "main", 2)) is None
        assert reader.find(("0000000000", "main", 7)) is None
        waiting = reader.outcomes.waiting((EPOCH, "main", 7))
        assert waiting is not None
        assert (waiting.seq, reader.outcomes.waiting((EPOCH, "main", 8))) == (7, None)
        assert reader.outcomes.rejection((EPOCH, "slow", 2)) == "0x99"
        assert reader.outcomes.rejection((EPOCH, "main", 7)) is None


async def test_a_disk_that_takes_nothing_at_the_start_is_asked_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as failing:
        refuse_writes(failing, store)
        history = History(store.database, store.writer, store.counters, 3600, 1 << 20)
        await history.begin(EPOCH, 1, RULES)
        await until(lambda: store.writer.attempts.failing)
    assert store.writer.full
    await store.settle()
    with open_history(store.database.path.parent) as reader:
        assert reader is not None
        assert reader.rules(1) == {0: RULES[0], 1: RULES[1]}


def test_no_database(tmp_path: Path) -> None:
    with open_history(tmp_path) as reader:
        assert reader is None


def test_a_database_of_an_older_version_has_no_history() -> None:
    connection = sqlite3.connect(":memory:")
    assert not HistoryReader(connection).on
    connection.close()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("no database at all, but a text")

    def read() -> None:
        with open_history(tmp_path) as reader:
            assert reader is not None
            list(reader.since(0))

    with pytest.raises(TidegateError, match="not a database"):
        read()
