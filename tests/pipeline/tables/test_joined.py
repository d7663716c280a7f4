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
from pipeline.tables.joined import Span, join_batches, resume, span_of
from pipeline.tables.staging import clear
from pipeline.tables.state import Commit, Mark, State, load, write_commit

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
            folder = on_disk.batch_folder(data / "tables", table, number)
            on_disk.write_rows(folder, table, [row | received for row in rows])
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
    assert (numbers(data, "bronze"), numbers(data, "quarantine")) == ({3, 4}, {3})
    assert span_of(on_disk.batch_folder(data / "tables", "bronze", 3)) == Span(1, 3)
    committed = load(data / "checkpoints")
    assert [tuple(row.values()) for row in committed.batches.to_pylist()] == [
        (3, 1, 5, 3, 0),
        (4, 4, 5, 0, 0),
    ]
    assert (committed.files_of(3), committed.last) == ({"1", "2", "3"}, 4)
    add(data, 5, 1, 1, day=2)
    join(data)
    assert numbers(data, "bronze") == {3, 5}
    assert load(data / "checkpoints").first_of(4) == 4
    assert not list((data / "tables").glob("_staging-*"))
    state_before = (data / "tables" / "bronze").stat().st_ino
    join(data)
    assert (data / "tables" / "bronze").stat().st_ino == state_before, "nothing was to be done"


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
            if both(data) != expected or numbers(data, "bronze") != {3, 4}:
                wrong.append((name, call, after, "after the next command"))
            if not ended.batches.equals(load(undisturbed / "checkpoints").batches):
                wrong.append((name, call, after, "what is committed"))
            left = {path.name for path in (data / "tables" / "bronze").iterdir()}
            if left != {"batch=0", "batch=3", "batch=4"} or (data / "checkpoints" / NOTE).exists():
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


def test_a_reader_meanwhile_finds_all_rows_once(tmp_path: Path) -> None:
    """Or none of the files that it listed, which it is told."""
    data = made(tmp_path)
    expected = rows(data, "bronze")
    ended = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not ended.is_set():
            try:
                found = rows(data, "bronze")
            except FileNotFoundError:
                continue
            if found != expected:
                wrong.append(found)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(5, 25):
        join(data)
        folder = on_disk.batch_folder(data / "tables", "quarantine", number)
        add(data, number, 0, 1, day=2)
        assert folder.exists()
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
    pq.write_table(pq.read_table(body).drop_columns(["first"]), body)
    assert load(folder).batches.equals(committed.batches)
    assert load(folder).first_of(6) is None
    assert state.renumbered(pa.chunked_array([[7, 8]]), State().batches).to_pylist() == [7, 8]
