"""Live rows first; what waited by priority, each stream in its order; each row once."""

from pathlib import Path

import pytest

import gateway.uplink.lanes as lanes_module
from gateway.storage.outbox.bounds import OutboxSettings, StreamSettings
from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.lanes import Lanes
from tests.support.disk.storage import Store, open_store, outbox_row

WAITED = [("main", 1), ("video", 1), ("alarms", 1), ("slow", 1), ("main", 2), ("alarms", 2)]
LATER = [("video", 2, "live"), ("main", 3, "backlog"), ("alarms", 3, "live")]

PRIORITIES = [
    (
        {"alarms": 9, "video": 1},
        [*(("alarms", n) for n in (1, 2)), ("main", 1), ("slow", 1), ("main", 2), ("video", 1)],
    ),
    ({"alarms": 9, "main": 8, "slow": 7, "video": 6}, sorted(WAITED)),
    ({}, WAITED),
    ({"alarms": 3, "main": 3, "slow": 3, "video": 3}, WAITED),
]


def names(rows: list[OutboxRow]) -> list[tuple[str, int]]:
    return [(row.stream, row.seq) for row in rows]


async def backlog(lanes: Lanes) -> list[OutboxRow]:
    rows = []
    while lanes.backlog_waits:
        row = await lanes.backlog()
        if row is not None:
            rows.append(row)
    return rows


async def live(lanes: Lanes) -> list[OutboxRow]:
    rows = []
    while (row := await lanes.live()) is not None:
        rows.append(row)
    return rows


@pytest.mark.parametrize(("priorities", "expected"), PRIORITIES)
@pytest.mark.parametrize("fetched", [1, 2, 256])
async def test_what_waited_goes_by_priority_and_age(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    priorities: dict[str, int],
    expected: list[tuple[str, int]],
    fetched: int,
) -> None:
    monkeypatch.setattr(lanes_module, "FETCH_ROWS", fetched)
    streams = tuple(StreamSettings(name, priority) for name, priority in priorities.items())
    store = await open_store(tmp_path, settings=OutboxSettings(streams=streams))
    for stream, seq in WAITED:
        store.outbox.add(outbox_row(seq, stream))
    await store.settle()
    lanes = Lanes(store.outbox)
    for stream, seq, lane in LATER:
        store.outbox.add(outbox_row(seq, stream, lane=lane))
    await store.settle()
    assert names(await live(lanes)) == [("video", 2), ("alarms", 3)]
    rows = await backlog(lanes)
    assert names(rows) == [*expected, ("main", 3)]
    assert [lanes.waited(row) for row in rows] == [True] * len(WAITED) + [False]
    assert (names(await live(lanes)), await lanes.backlog()) == ([], None)
    await store.close()


async def test_rows_that_were_not_on_disk_yet_are_waited_for(store: Store) -> None:
    store.outbox.add(outbox_row(1))
    lanes = Lanes(store.outbox)
    before = (lanes.backlog_waits, await lanes.backlog())
    await store.settle()
    assert before == (False, None)
    assert names(await backlog(lanes)) == [("main", 1)]
