"""What a rule remembers comes back with its rule epoch, or the epoch is a higher one."""

from pathlib import Path

import pytest

from gateway.storage.state.rule_states import RuleKey, RuleState, RuleStates
from gateway.where.language.conversions import Value
from tests.support.disk.storage import Store, crash_image, open_store, refuse_writes, until

TEMPERATURE = RuleKey("main", "sensors/#", "DEADBAND(payload.value, 0.5)")
DOOR = RuleKey("main", "doors/#", "CHANGED(payload.open)")

ROW: list[Value] = [None, True, -5, 2**63 - 1, 0.1, 1e300, "it's 温度\n", []]


async def restore(store: Store, *keys: RuleKey) -> list[RuleState]:
    states = await RuleStates(store.database, store.writer).restore(keys)
    await store.settle()
    return [states[key] for key in keys]


async def restored(folder: Path, *keys: RuleKey) -> list[tuple[int, dict[str, list[Value]]]]:
    """Open the folder as a start of the gateway does, and close it again."""
    store = await open_store(folder)
    states = [(state.epoch, state.rows) for state in await restore(store, *keys)]
    await store.close()
    return states


async def test_rules_start_empty_with_epochs_that_rise(store: Store) -> None:
    states = await restore(store, TEMPERATURE, DOOR)
    assert [(state.epoch, state.rows, state.complete) for state in states] == [
        (1, {}, True),
        (2, {}, True),
    ]


async def test_rows_come_back(store: Store, tmp_path: Path) -> None:
    first, second = await restore(store, TEMPERATURE, DOOR)
    first.save("a", ROW)
    first.save("a/温度", [1])
    first.save("a/温度", [2])
    first.save("gone", [3])
    first.save("gone", None)
    second.save("a", [4])
    await store.settle()
    image = crash_image(store.database.path.parent, tmp_path / "image")
    assert await restored(image, DOOR, TEMPERATURE) == [
        (2, {"a": [4]}),
        (1, {"a": ROW, "a/温度": [2]}),
    ]


async def test_a_state_that_is_not_complete_starts_empty(store: Store, tmp_path: Path) -> None:
    (state,) = await restore(store, DOOR)
    state.save("a", [1])
    state.set_complete(complete=False)
    await store.settle()
    folder = store.database.path.parent
    assert await restored(crash_image(folder, tmp_path / "crash"), DOOR) == [(2, {})]
    state.set_complete(complete=True)
    await store.settle()
    assert await restored(crash_image(folder, tmp_path / "stop"), DOOR) == [(1, {"a": [1]})]


async def test_the_mark_is_written_when_it_changes_alone(store: Store) -> None:
    (state,) = await restore(store, DOOR)
    state.set_complete(complete=True)
    assert store.writer.pending_rows == 0
    for _ in range(5):
        state.set_complete(complete=False)
    assert store.writer.pending_rows == 1


async def test_another_expression_starts_empty_and_never_with_an_old_epoch(tmp_path: Path) -> None:
    assert await restored(tmp_path, DOOR) == [(1, {})]
    assert await restored(tmp_path, TEMPERATURE) == [(2, {})]
    assert await restored(tmp_path) == []
    assert await restored(tmp_path, DOOR) == [(3, {})]
    assert await restored(tmp_path, RuleKey("other", DOOR.topic, DOOR.expression), DOOR) == [
        (4, {}),
        (3, {}),
    ]
    assert await restored(tmp_path, DOOR, RuleKey("main", "doors/#", DOOR.expression, 1)) == [
        (3, {}),
        (5, {}),
    ]


async def test_what_belongs_to_no_rule_is_deleted(store: Store) -> None:
    (state,) = await restore(store, DOOR)
    state.save("a", [1])
    await store.settle()
    await restore(store, TEMPERATURE)
    count = "SELECT (SELECT count(*) FROM rule_memory), (SELECT count(*) FROM rules)"
    query = store.database.reader.query
    assert await query(count, (), lambda cursor: cursor.fetchone()) == (0, 1)


async def test_rows_of_another_layout_mean_nothing(store: Store, tmp_path: Path) -> None:
    (state,) = await restore(store, DOOR)
    state.save("a", [1])
    await store.settle()
    await store.database.writer.write([("UPDATE rules SET layout = 0", [()])])
    image = crash_image(store.database.path.parent, tmp_path / "image")
    assert await restored(image, DOOR) == [(2, {})]


async def test_a_disk_that_does_not_take_an_epoch_is_asked_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as failing:
        refuse_writes(failing, store)
        states = await RuleStates(store.database, store.writer).restore([DOOR])
        states[DOOR].save("a", [1])
        await until(lambda: store.writer.attempts.failing)
    await store.settle()
    image = crash_image(store.database.path.parent, tmp_path / "image")
    assert await restored(image, DOOR) == [(1, {"a": [1]})]
