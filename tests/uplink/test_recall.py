"""Requests for a recall, and what they bring back into the outbox."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import gateway.storage.history.history as history_recall_module
import gateway.uplink.recall as recall_module
from gateway.mqtt.message import Message
from gateway.settings.when_full import WhenFull
from gateway.storage.history.history import EVER, History, HistoryRecall, Window
from gateway.storage.history.row import HistoryRow, Numbered
from gateway.storage.outbox.bounds import OutboxSettings, Retention, StreamSettings
from gateway.storage.outbox.row import OutboxRow, Outcome
from gateway.uplink.lanes import Lanes
from gateway.uplink.recall import MAX_REQUEST_BYTES, Recall, RecallError, Report, parse_request
from tests.support.disk.storage import Store, bounded, open_store, outbox_row, until
from tests.support.fleet.uplinks import folder_files, running, uplink_settings
from tests.support.table import table

MISTAKES = [
    (b"", "not JSON"),
    (b"[" * 10_000, "not JSON"),
    (b"\xff", "not JSON"),
    (b"[]", "a JSON object"),
    (b'{"streams":"main"}', "unknown key 'streams'"),
    (b'{"stream":7}', "stream is a text"),
    (b'{"from":-1}', "from is a whole number"),
    (b'{"to":1.5}', "to is a whole number"),
    (b'{"from":true}', "from is a whole number"),
    (b'{"first":1}', "numbers of one epoch"),
    (b'{"last":1,"stream":"main"}', "numbers of one epoch"),
    (b'{"topic":"a/#/b"}', "topic 'a/#/b'"),
    (b'{"where":"payload.value >"}', "where: position 15"),
    (b'{"where":"CHANGED(payload.value)"}', "where: position"),
    (b'"' + bytes(MAX_REQUEST_BYTES) + b'"', "at most"),
]


@table(("payload", "reported"), MISTAKES)
def test_a_mistake_is_named(payload: bytes, reported: str) -> None:
    with pytest.raises(RecallError, match=re.escape(reported)):
        parse_request(payload)


def test_without_a_word_all_of_main_is_meant() -> None:
    request = parse_request(b"{}")
    assert (request.stream, request.window) == ("main", Window(0, EVER, None))
    assert (request.first, request.last, request.topic, request.where) == (1, EVER, None, None)


ROW = HistoryRow(
    9,
    1,
    "00a1b2c3d4",
    Message("sensors/n1/t", b'{"value":21}', 1, received_at=5),
    (Numbered("main", 7, ()), Numbered("slow", 3, ())),
)

REQUESTS = [
    ({}, 7),
    ({"stream": "slow"}, 3),
    ({"stream": "other"}, None),
    ({"epoch": "00a1b2c3d4", "first": 7, "last": 7}, 7),
    ({"epoch": "00a1b2c3d4", "first": 8}, None),
    ({"epoch": "00a1b2c3d4", "last": 6}, None),
    ({"topic": "sensors/+/t"}, 7),
    ({"topic": "sensors/+/h"}, None),
    ({"where": "payload.value > 20"}, 7),
    ({"where": "payload.value > 21"}, None),
    ({"where": "payload.other > 21"}, None),
]


@table(("request_", "number"), REQUESTS)
def test_a_message_goes_up_under_its_number_in_the_stream(
    request_: dict[str, object], number: int | None
) -> None:
    assert parse_request(json.dumps(request_).encode()).number_of(ROW) == number


EPOCH = "00a1b2c3d4"


async def remember(store: Store, count: int, size: int = 10) -> None:
    """Record messages 1 to `count` of the stream main, accepted at that second."""
    history = History(store.database, store.writer, store.counters, 3600, 2**30)
    await history.begin(EPOCH, 1, [])
    for number in range(1, count + 1):
        message = Message(
            "sensors/n1/t", bytes(size), 1, received_at=1000 * number, message_expiry=5
        )
        history.add(message, [Numbered("main", number, ())])
    await store.settle()


def recall_of(store: Store, *, history: bool = True) -> Recall:
    return Recall(store.database, store.outbox, store.counters, history=lambda: history)


async def ended(recall: Recall, request: bytes) -> Report:
    """Carry a request out while somebody takes what comes."""
    reports: list[Report] = []
    recall.begin(parse_request(request), reports.append)
    await until(lambda: bool(reports))
    return reports[0]


async def waiting(store: Store) -> list[OutboxRow]:
    await store.settle()
    return await store.outbox.fetch(0, 10_000)


async def test_a_window_is_put_into_the_lowest_lane(store: Store) -> None:
    await remember(store, 9)
    reported: list[Outcome] = []
    store.outbox.on_outcome.append(lambda _, outcome, __: reported.append(outcome))
    report = await ended(recall_of(store), b'{"from":3000,"to":5000}')
    rows = await waiting(store)
    assert [(row.epoch, row.stream, row.seq, row.time) for row in rows] == [
        (EPOCH, "main", number, 1000 * number) for number in (3, 4, 5)
    ]
    assert {(row.lane, row.message_expiry) for row in rows} == {("recall", None)}
    reached = {"epoch": EPOCH, "number": 5, "time": 5000}
    assert report == {"state": "done", "messages": 3, "complete": True, "reached": reached}
    store.outbox.remove(rows, Outcome.DELIVERED)
    assert (store.outbox.recalled, reported) == (0, [])


@pytest.mark.parametrize("piece", [1, 100, 10_000])
async def test_the_history_is_read_piece_by_piece(
    store: Store, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(history_recall_module, "PIECE_BYTES", piece)
    await remember(store, 6)
    history = HistoryRecall(store.database, Window(2000, 5000, EPOCH))
    found = []
    while (rows := await history.read()) is not None:
        found += [row.numbers[0].number for row in rows]
    other = HistoryRecall(store.database, Window(epoch="ffffffffff"))
    while (rows := await other.read()) is not None:
        assert list(rows) == []
    assert found == [2, 3, 4, 5]


async def test_others_have_their_turns_while_a_filter_passes_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_module, "SLICE", 0.0)
    await remember(store, 50)
    reports: list[Report] = []
    recall_of(store).begin(parse_request(b'{"where":"payload.x = 1"}'), reports.append)
    turns = 0
    while not reports:
        await asyncio.sleep(0)
        turns += 1
    assert turns > 50
    assert reports[0]["messages"] == 0


async def test_few_wait_at_a_time_and_one_request_runs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_module, "MAX_WAITING", 4)
    await remember(store, 10)
    recall = recall_of(store)
    reports: list[Report] = []
    recall.begin(parse_request(b"{}"), reports.append)
    with pytest.raises(RecallError, match="another recall is running"):
        recall.begin(parse_request(b"{}"), reports.append)
    came: list[int] = []
    most = 0
    while not reports:
        rows = await waiting(store)
        most = max(most, len(rows))
        came += [row.seq for row in rows]
        store.outbox.remove(rows, Outcome.DELIVERED)
        await store.settle()
        await asyncio.sleep(0)  # nothing else here may wait: rows are in memory
    came += [row.seq for row in await waiting(store)]
    assert (came, most) == (list(range(1, 11)), 4)
    assert store.counters.count("tidegate/recall/messages") == 10
    assert store.counters.values["tidegate/recall/running"] == 0


async def test_more_than_one_request_may_send_is_said(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_module, "MAX_RECALL_MESSAGES", 4)
    await remember(store, 5)
    report = await ended(recall_of(store), b"{}")
    assert (report["messages"], report["complete"]) == (4, False)


async def test_nobody_leaves_for_a_recalled_message(tmp_path: Path) -> None:
    store = await open_store(tmp_path, settings=bounded("drop-oldest", maximum_messages=3))
    await remember(store, 2)
    for seq in (11, 12, 13):
        store.outbox.add(outbox_row(seq))
    recall = recall_of(store)
    reports: list[Report] = []
    recall.begin(parse_request(b"{}"), reports.append)
    full = [row.seq for row in await waiting(store)]
    store.outbox.remove((await waiting(store))[:2], Outcome.DELIVERED)
    store.outbox.end_turn()
    await until(lambda: bool(reports))
    rows = [row.seq for row in await waiting(store)]
    store.outbox.add(outbox_row(14))  # makes room of 13, not of what was asked for
    after = [row.seq for row in await waiting(store)]
    assert (full, rows, after) == ([11, 12, 13], [13, 1, 2], [1, 2, 14])
    await store.close()


async def test_bounds_in_age_and_modes_leave_recalled_messages_alone(tmp_path: Path) -> None:
    aged = OutboxSettings(
        Retention(maximum_age=1, when_full=WhenFull.DROP_OLDEST), (StreamSettings("main"),)
    )
    store = await open_store(tmp_path, settings=aged)
    await remember(store, 2)
    await ended(recall_of(store), b"{}")
    await store.outbox.sweep(10**13, 10**10)
    assert [row.seq for row in await waiting(store)] == [1, 2]
    await store.close()


async def test_a_message_that_never_fits_does_not_stand_in_the_way(tmp_path: Path) -> None:
    store = await open_store(tmp_path, settings=bounded(maximum_bytes=1_000))
    await remember(store, 2, size=5_000)
    report = await ended(recall_of(store), b"{}")
    assert (report["messages"], report["complete"]) == (0, False)
    await store.close()


async def test_without_a_history_it_is_refused(store: Store) -> None:
    with pytest.raises(RecallError, match="has no history"):
        recall_of(store, history=False).begin(parse_request(b"{}"), print)


async def test_a_stop_ends_a_recall(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_module, "MAX_WAITING", 1)
    await remember(store, 3)
    recall = recall_of(store)
    recall.begin(parse_request(b"{}"), print)
    await until(lambda: store.outbox.recalled == 1)
    await recall.close()
    assert store.counters.values["tidegate/recall/running"] == 0
    assert asyncio.all_tasks() == {asyncio.current_task()} | store_tasks()


def store_tasks() -> set[asyncio.Task[None]]:
    return {task for task in asyncio.all_tasks() if "_commit" in str(task.get_coro())}


async def lanes_in_order(store: Store) -> Sequence[tuple[str, int]]:
    lanes = Lanes(store.outbox)
    store.outbox.add(outbox_row(30))
    await store.settle()
    found = []
    while (row := await lanes.live()) is not None:
        found.append((row.lane, row.seq))
    while lanes.backlog_waits:
        row = await lanes.backlog()
        if row is not None:
            found.append((row.lane, row.seq))
            assert lanes.waited(row)
    return found


async def test_recalled_rows_come_behind_the_backlog_also_after_a_restart(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for seq, lane in ((1, "recall"), (20, "live"), (2, "recall"), (21, "backlog")):
        store.outbox.add(outbox_row(seq, lane=lane))
    await store.settle()
    expected = [("live", 30), ("live", 20), ("backlog", 21), ("recall", 1), ("recall", 2)]
    assert await lanes_in_order(store) == expected
    await store.close()
    store = await open_store(tmp_path)
    assert store.outbox.recalled == 2
    lanes = [each for each in await lanes_in_order(store) if each[1] != 30]
    assert lanes == expected[1:]
    await store.close()


async def test_in_a_directory_recalled_rows_never_replace_a_file(
    store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "landing"
    settings = uplink_settings(directory=folder)
    for lane in ("live", "recall", "recall"):
        async with running(store, settings):
            for seq in (5, 6, 7):
                store.outbox.add(outbox_row(seq, lane=lane))
            store.outbox.end_turn()
            await until(lambda: store.outbox.writes.committed_id == store.outbox.bounds.last_id)
    assert folder_files(folder / "barn") == [
        f"{EPOCH}.main.5-5.1.jsonl",
        f"{EPOCH}.main.5-7.3.jsonl",
        f"{EPOCH}.main.6-6.1.jsonl",
        f"{EPOCH}.main.6-7.2.jsonl",
        f"{EPOCH}.main.7-7.1.jsonl",
    ]
    lines = (folder / "barn" / f"{EPOCH}.main.6-7.2.jsonl").read_text().splitlines()
    assert all('"resent":true' in line for line in lines)
