"""A step of the wall clock makes nothing expire too early."""

from pathlib import Path

from gateway.storage.outbox.clock_steps import MAX_STEPS, WITHOUT_END, ClockSteps
from gateway.storage.outbox.outcome import Outcome
from gateway.storage.outbox.streams.retention import OutboxSettings, Retention, StreamSettings
from tests.support.disk.storage import Store, open_store, outbox_row

HOUR = 3_600_000


def test_without_a_step_it_is_the_same_time_for_all() -> None:
    steps = ClockSteps()
    for second in range(10):
        steps.look(1_000 * second + second % 2, float(second), second)
    assert steps.now_for(5, 9_000) == 9_000
    assert steps.spans(9_000) == [(-1, WITHOUT_END, 9_000)]


def test_a_step_counts_for_what_was_accepted_before_it() -> None:
    steps = ClockSteps()
    assert steps.restore([(7, 500), (12, 500)], 10) == [(7, 500), (10, 500)]
    steps.look(0, 100.0, 10)
    steps.look(5_000, 105.0, 20)
    steps.look(HOUR + 6_000, 106.0, 30)
    steps.look(HOUR + 7_000 - 2_000, 107.0, 40)
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
        steps.look(wall, 0.0, row)
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
    taken = [store.outbox.take(row, HOUR + 9_000) for row in rows]
    assert (early, taken, ended) == ([], [True, False, False], [2, 3])
    await store.settle()
    store.outbox.put_back(rows[0])
    await store.outbox.sweep(HOUR + 58_000, 59.0)
    assert ended == [2, 3]
    await store.outbox.sweep(HOUR + 59_000, 60.0)
    assert ended == [2, 3, 1]


async def test_a_step_that_no_look_has_found_yet_expires_nothing(store: Store) -> None:
    await store.outbox.sweep(0, 0.0)
    store.outbox.add(outbox_row(1, time=0, message_expiry=60))
    await store.settle()
    (row,) = await store.outbox.fetch(0, 10)
    assert store.outbox.take(row, HOUR)
    store.outbox.put_back(row)
    await store.outbox.sweep(HOUR, 3_600.0)  # it was no step
    assert not store.outbox.take(row, HOUR)


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
