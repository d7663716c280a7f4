"""Batches of bronze and quarantine as one: killed anywhere, and read meanwhile."""

import contextlib
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pipeline.errors import PipelineError
from pipeline.tables import joined, on_disk, state
from pipeline.tables.columns import arrow_schema
from pipeline.tables.damage import damaged
from pipeline.tables.joined import Span, join_batches, resume, span_of
from pipeline.tables.staging import clear, put_in_place, stage
from pipeline.tables.state import Commit, Mark, State, load, write_commit
from tests.support.waiting import until

DAY = 86_400_000
KILLS = (
    (joined, "_write_joined"),
    (joined, "_stage_table"),
    (state, "write_note"),
    (joined, "_swap"),
    (joined, "_join_state"),
    (state, "put_in_place"),
    (state, "fold"),
)


class Killed(BaseException):
    """Ends the work as a kill does."""


def add(data: Path, number: int, bronze: int, quarantine: int = 0, day: int = 1) -> None:
    """Commit a batch whose rows say where they are from."""
    counts = {"bronze": bronze, "quarantine": quarantine, "silver": 0}
    for table, count in counts.items():
        if count:
            rows = [{"landing_file": f"{number}", "line": n} for n in range(count)]
            received = {"received": DAY * day + number} if table == "bronze" else {}
            staged = stage(data / "tables") / table
            on_disk.write_rows(staged, table, [row | received for row in rows])
            put_in_place(staged, on_disk.batch_folder(data / "tables", table, number))
            staged.parent.rmdir()
    files = {f"{number}": Mark(1, 1)}
    write_commit(data / "checkpoints", Commit(number, files, counts, {}, (), ()))


def made(data: Path) -> Path:
    (data / "checkpoints").mkdir(parents=True)
    on_disk.create(data / "tables")
    for number, bronze, quarantine, day in ((1, 3, 1, 1), (2, 2, 0, 1), (3, 0, 2, 1), (4, 5, 0, 2)):
        add(data, number, bronze, quarantine, day)
    return data


def join(data: Path) -> None:
    join_batches(data / "tables", data / "checkpoints", load(data / "checkpoints"))


def again(data: Path) -> None:
    """Do what the next command does."""
    resume(data / "tables", data / "checkpoints")
    clear(data / "tables")
    join(data)


def rows(data: Path, table: str) -> list[tuple[str, int]]:
    found = ds.dataset(data / "tables" / table, partitioning="hive").to_table()
    return sorted(zip(*(found[name].to_pylist() for name in ("landing_file", "line")), strict=True))


def both(data: Path) -> list[list[tuple[str, int]]]:
    return [rows(data, table) for table in on_disk.IN_BATCHES]


def numbers(data: Path, table: str) -> set[int]:
    return on_disk.batches(data / "tables" / table)


def test_batches_of_a_day_become_one_and_more_of_them_later(tmp_path: Path) -> None:
    data = made(tmp_path)
    before = both(data)
    join(data)
    assert both(data) == before
    assert (numbers(data, "bronze"), numbers(data, "quarantine")) == ({1, 2, 4}, {1, 3})
    assert span_of(on_disk.batch_folder(data / "tables", "bronze", 1)) == Span(1, 3)
    committed = load(data / "checkpoints")
    assert [tuple(row.values()) for row in committed.batches.to_pylist()] == [
        (1, 3, 5, 3, 0),
        (4, 4, 5, 0, 0),
    ]
    assert (committed.files_of(1), committed.last) == ({"1", "2", "3"}, 4)
    assert damaged(data / "tables", committed, verify=True) == []
    add(data, 5, 1, 1, day=2)
    add(data, 6, 1, 0, day=2)
    join(data)
    assert (numbers(data, "bronze"), numbers(data, "quarantine")) == ({1, 4, 5, 6}, {1, 5})
    assert [load(data / "checkpoints").last_of(number) for number in (2, 4, 5)] == [3, 4, 6]
    assert damaged(data / "tables", load(data / "checkpoints"), verify=True) == []
    assert not list((data / "tables").glob("_staging-*"))
    state_before = (data / "tables" / "bronze").stat().st_ino
    join(data)
    assert (data / "tables" / "bronze").stat().st_ino == state_before, "nothing was to be done"


@pytest.mark.uncovered
def test_a_kill_anywhere_loses_and_doubles_nothing(tmp_path: Path) -> None:
    undisturbed = made(tmp_path / "undisturbed")
    expected = both(undisturbed)
    join(undisturbed)
    wrong = []
    for place, (module, name) in enumerate(KILLS):
        for call, after in ((1, False), (1, True), (2, True), (3, False)):
            data = tmp_path / f"{place}-{call}-{after}"
            made(data)
            with pytest.MonkeyPatch.context() as patch:
                _kill_at(patch, module, name, call, after=after)
                with contextlib.suppress(Killed):
                    join(data)
                if both(data) != expected:
                    wrong.append((name, call, after, "read after the kill"))
            again(data)
            ended = load(data / "checkpoints")
            if both(data) != expected or numbers(data, "bronze") != {1, 2, 4}:
                wrong.append((name, call, after, "after the next command"))
            if not ended.batches.equals(load(undisturbed / "checkpoints").batches):
                wrong.append((name, call, after, "what is committed"))
            left = {path.name for path in (data / "tables" / "bronze").iterdir()}
            left |= {path.name for path in (data / "checkpoints").glob(NOTE)}
            if left != {"batch=0", "batch=1", "batch=2", "batch=4"}:
                wrong.append((name, call, after, "what is left"))
            shutil.rmtree(data)
    assert wrong == []


NOTE = "joining.json"


def _kill_at(
    patch: pytest.MonkeyPatch, module: object, name: str, call: int, *, after: bool
) -> None:
    function: Callable[..., object] = getattr(module, name)
    calls = iter(range(1, 100))

    def killing(*arguments: object) -> object:
        last = next(calls) == call
        if last and not after:
            raise Killed
        result = function(*arguments)
        if last:
            raise Killed
        return result

    patch.setattr(module, name, killing)


@pytest.mark.uncovered
def test_a_reader_meanwhile_finds_whole_batches_and_each_once(tmp_path: Path) -> None:
    """Or is told that a file which it listed is not there any more."""
    data = made(tmp_path)
    ended = threading.Event()
    wrong: list[object] = []
    reads = []

    def read() -> None:
        seen = 10
        while not ended.is_set():
            try:
                found = rows(data, "bronze")
            except FileNotFoundError:
                continue
            reads.append(len(found))
            whole = len(found) == len(set(found)) and len(found) % 5 == 0
            if not whole or len(found) < seen:
                wrong.append(found)
            seen = len(found)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        until(lambda: reads, "a first read")  # on a busy machine all may be joined before it
        for number in range(5, 15):
            add(data, number, 5, 1, day=2)
            join(data)
    finally:
        ended.set()
        reader.join()
    assert wrong == []


def test_rows_that_were_not_committed_stop_it(tmp_path: Path) -> None:
    data = made(tmp_path)
    before = both(data)
    file = next(on_disk.batch_folder(data / "tables", "bronze", 1).glob("*.parquet"))
    pq.write_table(arrow_schema(on_disk.IN_BATCHES["bronze"]).empty_table(), file)
    with pytest.raises(PipelineError, match=r"bronze has 2 rows of batches 1 to 3, 5 were comm"):
        join(data)
    file.write_bytes(b"PAR1")
    with pytest.raises(PipelineError, match=r"cannot be read .* once --verify` first"):
        join(data)
    file.unlink()
    assert rows(data, "quarantine") == before[1]


def test_a_disk_that_cannot_swap_folders_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = made(tmp_path)

    def refuse(_one: Path, _other: Path) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(joined, "_swap", refuse)
    with pytest.raises(PipelineError, match=r"swap folders \(Invalid argument\)"):
        join(data)
    assert numbers(data, "bronze") == {1, 2, 4}
    assert not list((data / "tables").glob("_staging-*"))


def test_an_earlier_state_has_batches_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    committed = State()
    committed.add(Commit(7, {}, {"bronze": 1, "quarantine": 0, "silver": 1}, {}, (), ()))
    state.fold(folder, committed)
    body = next(folder.glob("snapshot-*")) / "batches.parquet"
    pq.write_table(pq.read_table(body).drop_columns(["last"]), body)
    assert load(folder).batches.equals(committed.batches)
    assert load(folder).last_of(6) is None
    assert state.renumbered(pa.chunked_array([[7, 8]]), State().batches).to_pylist() == [7, 8]
