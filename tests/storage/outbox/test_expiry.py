"""Rows end when their message expiry or a maximum age has passed, by the time it is for them."""

from pathlib import Path

import pytest

import gateway.storage.outbox.expiry as expiry_module
from gateway.settings.outbox import Mode
from gateway.storage.outbox.bounds import OutboxSettings, Retention, StreamSettings
from gateway.storage.outbox.expiry import MAX_STEPS, WITHOUT_END, ClockSteps
from gateway.storage.outbox.row import Outcome
from tests.support.disk.storage import Store, open_store, outbox_row


async def test_what_has_expired_is_not_sent_and_is_swept(tmp_path: Path) -> None:
    expire = StreamSettings("short", mode=Mode.EXPIRE, expire_after=10)
    aged = StreamSettings("aged", retention=Retention(maximum_age=100))
    store = await open_store(tmp_path, settings=OutboxSettings(streams=(expire, aged)))
    ended: list[tuple[str, Outcome, str]] = []
    store.outbox.on_outcome.append(
        lambda rows, outcome, reason: ended.extend(
            (f"{row.stream}.{row.seq}", outcome, reason) for row in rows
        )
    )
    rows = [
        outbox_row(1, "main", time=0, message_expiry=60),
        outbox_row(2, "main", time=0),
        outbox_row(1, "short", time=0),
        outbox_row(2, "short", time=0, message_expiry=5),
        outbox_row(3, "short", time=0, message_expiry=60),
        outbox_row(1, "aged", time=0),
        outbox_row(2, "aged", time=50_000),
    ]
    for row in rows:
        store.outbox.add(row)
    await store.settle()
    assert [row.message_expiry for row in rows] == [60, None, 10, 5, 10, None, None]
    fetched = {(row.stream, row.seq): row for row in await store.outbox.fetch(0, 10)}
    assert store.outbox.claim(fetched["short", 2], 4_999)
    fetched["short", 2].claimed = 0
    assert not store.outbox.claim(fetched["short", 2], 5_000)
    assert store.outbox.claim(fetched["short", 3], 9_000)  # and on its way since then
    await store.outbox.sweep(99_999, 99.999)
    await store.outbox.sweep(100_000, 100.0)
    await store.settle()
    assert ended == [
        ("short.2", Outcome.EXPIRED, ""),
        ("short.1", Outcome.EXPIRED, ""),
        ("main.1", Outcome.EXPIRED, ""),
        ("aged.1", Outcome.EXPIRED, "maximum_age"),
    ]
    assert store.counters.count("tidegate/outbox/expired") == 4
    assert [(row.stream, row.seq) for row in await store.outbox.fetch(0, 10)] == [
        ("main", 2),
        ("short", 3),
        ("aged", 2),
    ]
    await store.close()


async def test_a_sweep_ends_so_many_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry_module, "SWEEP_ROWS", 3)
    store = await open_store(tmp_path)
    for seq in range(1, 8):
        store.outbox.add(outbox_row(seq, time=0, message_expiry=1))
    more = []
    for _ in range(3):
        await store.settle()
        more.append(await store.outbox.sweep(1_000, 1.0))
    assert (more, store.outbox.rows) == ([True, True, False], 0)
    await store.close()


HOUR = 3_600_000


def test_without_a_step_it_is_the_same_time_for_all() -> None:
    steps = ClockSteps()
    for second in range(10):
        steps.check(1_000 * second + second % 2, float(second), second)
    assert steps.now_for(5, 9_000) == 9_000
    assert steps.spans(9_000) == [(-1, WITHOUT_END, 9_000)]


def test_a_step_counts_for_what_was_accepted_before_it() -> None:
    steps = ClockSteps()
    assert steps.restore([(7, 500), (12, 500)], 10) == [(7, 500), (10, 500)]
    steps.check(0, 100.0, 10)
    steps.check(5_000, 105.0, 20)
    steps.check(HOUR + 6_000, 106.0, 30)
    steps.check(HOUR + 7_000 - 2_000, 107.0, 40)
    assert [steps.now_for(row, 2 * HOUR) for row in (7, 10, 11, 30, 31, 40, 41)] == [
        HOUR + 1_000,
        HOUR + 1_500,
        HOUR + 2_000,
        HOUR + 2_000,
        2 * HOUR + 2_000,
        2 * HOUR + 2_000,
        2 * HOUR,
    ]
    assert steps.spans(2 * HOUR) == [
        (-1, 7, HOUR + 1_000),
        (7, 10, HOUR + 1_500),
        (10, 30, HOUR + 2_000),
        (30, 40, 2 * HOUR + 2_000),
        (40, WITHOUT_END, 2 * HOUR),
    ]


def test_steps_beyond_the_bound_are_added_to_one() -> None:
    steps = ClockSteps()
    wall = 0
    for row in range(MAX_STEPS + 6):
        steps.check(wall, 0.0, row)
        wall += 2_000
    assert len(steps.spans(0)) <= MAX_STEPS + 2
    assert steps.now_for(1, 100_000) == 100_000 - 2_000 * (MAX_STEPS + 5)
    assert steps.now_for(MAX_STEPS + 5, 100_000) == 100_000 - 2_000


async def test_rows_expire_by_the_time_that_has_passed(store: Store) -> None:
    ended: list[int] = []
    store.outbox.on_outcome.append(lambda rows, *_: ended.extend(row.seq for row in rows))
    await store.outbox.sweep(0, 0.0)
    for seq, expiry in ((1, 60), (2, 5)):
        store.outbox.add(outbox_row(seq, time=0, message_expiry=expiry))
    await store.settle()
    await store.outbox.sweep(HOUR, 1.0)  # the clock is set a second after the start
    store.outbox.add(outbox_row(3, time=HOUR, message_expiry=1))
    await store.settle()
    early = list(ended)
    rows = await store.outbox.fetch(0, 10)
    taken = [store.outbox.claim(row, HOUR + 9_000) for row in rows]
    assert (early, taken, ended) == ([], [True, False, False], [2, 3])
    await store.settle()
    rows[0].claimed = 0
    await store.outbox.sweep(HOUR + 58_000, 59.0)
    assert ended == [2, 3]
    await store.outbox.sweep(HOUR + 59_000, 60.0)
    assert ended == [2, 3, 1]


async def test_a_step_that_no_look_has_found_yet_expires_nothing(store: Store) -> None:
    await store.outbox.sweep(0, 0.0)
    store.outbox.add(outbox_row(1, time=0, message_expiry=60))
    await store.settle()
    (row,) = await store.outbox.fetch(0, 10)
    assert store.outbox.claim(row, HOUR)
    row.claimed = 0
    await store.outbox.sweep(HOUR, 3_600.0)  # it was no step
    assert not store.outbox.claim(row, HOUR)


async def test_ages_go_by_the_time_that_has_passed_too(tmp_path: Path) -> None:
    aged = StreamSettings("main", retention=Retention(maximum_age=60))
    store = await open_store(tmp_path, settings=OutboxSettings(streams=(aged,)))
    ended: list[tuple[Outcome, str]] = []
    store.outbox.on_outcome.append(lambda _, outcome, reason: ended.append((outcome, reason)))
    await store.outbox.sweep(0, 0.0)
    store.outbox.add(outbox_row(1, time=0))
    await store.settle()
    await store.outbox.sweep(HOUR, 1.0)
    assert ended == []
    await store.outbox.sweep(HOUR + 60_000, 61.0)
    assert ended == [(Outcome.EXPIRED, "maximum_age")]
    await store.close()
