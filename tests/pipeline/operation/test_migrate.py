"""Checkpoints as earlier versions wrote them, and what the next run makes of them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from pipeline.cli import EXIT_CANNOT_RUN, main
from pipeline.errors import PipelineError
from pipeline.ledger.completeness import NOT_REPORTED
from pipeline.operation.migrate import migrate
from pipeline.tables import on_disk, state
from tests.support.disk.landing_files import EPOCH, name_for, put, put_records, record, text_of
from tests.support.pipeline_kills import Killed, kill_at
from tests.support.pipeline_tables import contents, islands, known, sizes, table_rows

if TYPE_CHECKING:
    from pipeline.operation.once import Totals

    Run = Callable[..., Totals]

pytestmark = pytest.mark.spark

OF_STATE = ("batches", "files", "folders", "islands", "quarantined")
STREAM = ("gateway_id", "epoch", "stream")
REASONS = {"not_an_object": 1, "not_json": 1, "key_conflict": 1}
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory, run: "Run") -> Path:
    """Return a data folder whose tables have three batches, and a clock record of the last."""
    data = tmp_path_factory.mktemp("settled")
    put_records(data / "landing", [record(1), record(2), b"null"])
    run(data)
    put_records(data / "landing", [record(4), b"{", record(4, content=b"z")], first=4)
    run(data, gold=True)
    put_records(data / "landing", [record(3)], first=3)
    clock = {"epoch": EPOCH, "offset_ms": 1, "uncertainty_ms": 70, "from": 0, "to": 9999}
    clock |= {"numbers": {"main": [1, 2]}, "boot": "b", "uptime_ms": 0}
    put(data / "landing" / "barn", text_of([clock]), f"{EPOCH}.1.jsonl", gateway="clock")
    run(data, gold=True)
    return data


def as_before(data: Path, snapshot: int) -> None:
    """Write what the state's tables say as checkpoints, so many batches of them a snapshot."""
    folder = data / "checkpoints" / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    rows = {table: table_rows(data, table) for table in OF_STATE}
    for row in (*rows["files"], *rows["islands"]):
        row["batch"] = row["batch"] or 1  # of several, which a correction put together
    marks = state.load(data / "tables")
    for table in OF_STATE:
        shutil.rmtree(data / "tables" / table)
    for batch in sorted(rows["batches"], key=lambda row: row["batch"]):
        if batch["batch"] > snapshot:
            write_commit(folder, batch, rows)
    if snapshot:
        write_snapshot(folder / "snapshot-0000000007", snapshot, rows)
    note: dict[str, object] = {"compared": marks.compared, "golden": marks.golden}
    note |= {"mapped": marks.mapped}
    note |= {"corrected": list(marks.corrected), "made": marks.made and marks.made.isoformat()}
    (folder / "derived.json").write_text(json.dumps({"version": 2} | note))
    (folder / "settled.json").write_text("{}")


def write_commit(folder: Path, batch: dict[str, Any], rows: Rows) -> None:
    number = batch["batch"]
    here = {t: [row for row in rows[t] if row["batch"] == number] for t in ("files", "islands")}
    commit = {
        "version": 2,
        "batch": number,
        "files": {row["name"]: [row["size"], row["mtime"]] for row in here["files"]},
        "rows": {table: batch[table] for table in state.TABLES},
        "reasons": dict(batch["reasons"]),
        "islands": [list(row.values())[:-1] for row in here["islands"]],
        "dates": [str(day) for day in batch["dates"]],
        "streams": [[each[name] for name in STREAM] for each in batch["streams"]],
        "epochs": [[each[name] for name in STREAM[:2]] for each in batch["epochs"]],
    }
    (folder / f"{number:010d}.json").write_text(json.dumps(commit))


def write_snapshot(folder: Path, upto: int, rows: Rows) -> None:
    folder.mkdir()
    for table in ("batches", "files", "islands"):
        listed = [row for row in rows[table] if row["batch"] <= upto]
        for row in listed:
            for name in ("dates", "streams", "epochs", "reasons"):
                row.pop(name, None)
            if table == "islands":
                del row["batch"]
        pq.write_table(pa.Table.from_pylist(listed), folder / f"{table}.parquet")
    header = {"version": 2, "last": upto, "trimmed": False, "reasons": {}}
    (folder / "header.json").write_text(json.dumps(header))


def under_earlier_names(data: Path) -> None:
    """Give an outcome the name in the reports that it had in earlier versions."""
    tables = data / "tables"
    streams = DeltaTable((tables / "streams").as_uri()).to_pyarrow_table()
    names = ["not_told" if name == NOT_REPORTED else name for name in streams.column_names]
    gaps = DeltaTable((tables / "gaps").as_uri()).to_pyarrow_table()
    outcomes = pc.replace_substring(gaps["outcome"], NOT_REPORTED, "not_told")
    for table, rows in (
        ("streams", streams.rename_columns(names)),
        ("gaps", gaps.set_column(gaps.column_names.index("outcome"), "outcome", outcomes)),
    ):
        write_deltalake(tables / table, rows, mode="overwrite", schema_mode="overwrite")


KILLS = [
    ("pipeline.tables.delta.append_table", 1, True),
    ("pipeline.tables.silver_numbers.overwrite", 1, True),
    ("pipeline.tables.delta.append", 2, True),
    ("pipeline.tables.delta.note", 1, True),
    ("pipeline.operation.migrate._move", 1, True),
    ("pipeline.tables.state.load", 1, False),
]


@pytest.mark.parametrize("snapshot", [0, 2, 3])
def test_a_run_moves_what_was_committed_whatever_is_killed(
    settled: Path, tmp_path: Path, run: "Run", capsys: pytest.CaptureFixture[str], snapshot: int
) -> None:
    data = Path(shutil.copytree(settled, tmp_path / "data"))
    before = known(data)
    as_before(data, snapshot)
    for place, call, after in KILLS:
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, place, call, after=after)
            with pytest.raises(Killed):
                run(data)
    assert capsys.readouterr().err.count("what was committed is in the tables") == 1
    totals = run(data, gold=True)
    assert (totals.files, totals.reasons) == (0, REASONS)
    assert contents(data) == contents(settled)
    after_it = known(data)
    assert {**after_it, "batches": None} == {**before, "batches": None}
    assert islands(data) == islands(settled)
    assert [row["batch"] for row in table_rows(data, "batches")] == [1, 2, 3]
    left = {path.name for path in (data / "checkpoints" / "tables").iterdir()}
    assert not {name for name in left if "json" in name or "snapshot" in name}
    put_records(data / "landing", [record(3), record(5)], first=5)
    run(data, gold=True)
    assert sizes(data)[:2] == (sizes(settled)[0] + 2, sizes(settled)[1] + 1)
    assert not run(data, verify=True).doubled


def test_a_run_renames_an_outcome_whatever_is_killed(
    settled: Path, tmp_path: Path, run: "Run", capsys: pytest.CaptureFixture[str]
) -> None:
    data = Path(shutil.copytree(settled, tmp_path / "data"))
    put(data / "landing", text_of([record(9)]), name_for(1, 9))
    run(data)
    before = {table: table_rows(data, table) for table in ("streams", "gaps")}
    assert NOT_REPORTED in {row["outcome"] for row in before["gaps"]}
    under_earlier_names(data)
    ledger = ["ledger", "--tables", f"{data}/tables"]
    for command in (ledger, ["status", *ledger[1:], "--landing", f"{data}/landing"]):
        assert main(command) == EXIT_CANNOT_RUN
        assert "are of an earlier version: run `tidegate-pipeline once`" in capsys.readouterr().err
    for place in ("pipeline.tables.delta.make", "pipeline.tables.delta.overwrite"):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, place, 1, after=True)
            with pytest.raises(Killed):
                run(data)
    run(data)
    assert {table: table_rows(data, table) for table in before} == before
    assert main(ledger) == 0


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"version":2}', b'{"version":2,"batch":3}', b"\0" * 40]
)
def test_a_damaged_file_is_no_commit(tmp_path: Path, content: bytes) -> None:
    on_disk.create(tmp_path / "tables")
    (tmp_path / "0000000003.json").write_bytes(content)
    migrate(tmp_path, tmp_path / "tables")
    assert state.load(tmp_path / "tables").count == 0


def test_what_kills_of_earlier_versions_left_is_removed(tmp_path: Path) -> None:
    on_disk.create(tmp_path / "tables")
    for folder in ("checkpoints", "tables"):
        (tmp_path / folder / "_staging-0a1b" / "silver").mkdir(parents=True)
    migrate(tmp_path / "checkpoints", tmp_path / "tables")
    assert not list(tmp_path.glob("*/_staging-*"))


@pytest.mark.parametrize("version", [1, 3])
def test_another_version_stops_the_run(tmp_path: Path, version: int) -> None:
    (tmp_path / "0000000001.json").write_text(json.dumps({"version": version, "news": True}))
    with pytest.raises(PipelineError, match=rf"0000000001\.json has version {version}, .* knows 2"):
        migrate(tmp_path, tmp_path / "tables")
