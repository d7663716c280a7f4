"""From the checkpoints of earlier versions, files of JSON and snapshots, to the state's tables.

It is done by the first command that changes the tables. Nothing counts before the table `batches`
has its rows, in one commit, and the old files go after it: whatever is killed is done again.
"""

import json
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import Schema

from pipeline.errors import PipelineError
from pipeline.ledger.report import is_earlier
from pipeline.place import place_of
from pipeline.tables import delta, islands, silver_numbers
from pipeline.tables.columns import BATCHES, FILES, QUARANTINED, STREAMS, arrow_schema, names
from pipeline.tables.delta import Where
from pipeline.tables.quarantined import COLUMNS, by_reason, counted, quarantined
from pipeline.tables.state import Mark, State
from pipeline.tables.task_files import GROUP_ROWS

VERSION = 2
_MOVED = "tidegate-pipeline: what was committed is in the tables `batches` and `files` now, no more"


def migrate(folder: Path, root: Where) -> None:
    """Put what the checkpoints in a folder say into the state's tables, and remove them.

    Raises PipelineError for those of another version.
    """
    for left in (folder, place_of(root).folder):  # of kills
        for staging in left.glob("_staging-*") if left is not None else ():
            shutil.rmtree(staging)
    loose = [commit for path in sorted(folder.glob("[0-9]*.json")) if (commit := _read(path))]
    snapshot = max(folder.glob("snapshot-*"), default=None)
    if not loose and snapshot is None:
        return
    if not delta.files(root / "batches"):
        _move(folder, snapshot, loose, root)
    print(f"{_MOVED} in {folder}", file=sys.stderr)
    for path in (*folder.glob("[0-9]*.json"), folder / "derived.json", folder / "settled.json"):
        path.unlink(missing_ok=True)
    for path in folder.glob("snapshot-*"):
        shutil.rmtree(path)


def rename_outcome(root: Where, state: State) -> None:
    """Have the tables `streams` and `gaps` of an earlier version made again, under today's name.

    What they follow is noted first: whatever is killed is done again.
    """
    if not is_earlier(root):
        return
    state.compared = 0
    state.note()
    table = root / "streams"
    noted = delta.opened(table).metadata().configuration
    schema = Schema.from_arrow(arrow_schema(STREAMS))
    delta.make(table, schema, mode="overwrite", configuration=noted)


def _move(folder: Path, snapshot: Path | None, loose: list[dict[str, Any]], root: Where) -> None:
    for table in ("files", "islands", "quarantined"):  # of a kill
        delta.remove_all(root / table)
    batches = {row["batch"]: row for row in _rows(snapshot, "batches")}
    upto = max(batches, default=0)
    loose = [commit for commit in loose if commit["batch"] not in batches]
    state, epochs = _progress(folder, snapshot, root, upto)
    read = _move_files(snapshot, loose, root)
    _move_islands(snapshot, loose, root)
    for commit in loose:
        streams = {
            tuple(each) for each in (*commit["streams"], *(i[:3] for i in commit["islands"]))
        }
        row = {"batch": commit["batch"], **commit["rows"]}
        row["dates"] = [date.fromisoformat(day) for day in commit["dates"] if day]
        row["streams"] = [dict(zip(islands.STREAM, each, strict=True)) for each in sorted(streams)]
        row["epochs"] = [_epoch(each) for each in commit["epochs"]]
        batches[commit["batch"]] = row
    reasons = _move_quarantined(batches, root)
    rows = [
        {"reasons": {}, "dates": [], "streams": [], "epochs": []}
        | row
        | {"files": read[number], "reasons": dict(reasons[number])}
        for number, row in sorted(batches.items())
    ]
    if rows:
        rows[-1]["epochs"] += epochs
    state.note()
    found = pa.Table.from_pylist(rows, schema=arrow_schema(BATCHES))
    delta.append_table(root / "batches", found, max(batches, default=0))


def _progress(
    folder: Path, snapshot: Path | None, root: Where, upto: int
) -> tuple[State, list[dict[str, str]]]:
    """Return how far tables follow, and epochs whose clock records may not be in effect.

    A snapshot does not say what its batches touched: of those that gold lacks, all is made anew.
    """
    state = State(root)
    note = folder / "derived.json"
    marks = json.loads(note.read_text()) if note.exists() else {}
    for name in ("compared", "golden", "mapped"):
        setattr(state, name, marks.get(name, getattr(state, name)))
    state.corrected = tuple(filter(None, marks.get("corrected", ())))
    state.made = datetime.fromisoformat(marks["made"]) if marks.get("made") else None
    state.trimmed = snapshot is not None and bool(_header(snapshot)["trimmed"])
    state.reread = True  # nobody noted it
    epochs: list[dict[str, str]] = []
    if state.compared < upto:
        state.compared = 0
        columns = ("gateway_id", "epoch")
        for part in delta.scan(root / "clocks", columns):
            epochs += pa.Table.from_batches([part]).group_by(columns).aggregate([]).to_pylist()
    if state.golden < upto:
        state.golden = 0
    return state, epochs


def _move_files(snapshot: Path | None, loose: list[dict[str, Any]], root: Where) -> Counter[int]:
    """Move the landing files; return how many each batch read."""
    read: Counter[int] = Counter()
    schema = arrow_schema(FILES)
    for part in _parts(snapshot, "files"):
        last = pc.max(part["batch"]).as_py()
        delta.append_table(root / "files", part.select(schema.names).cast(schema), last)
        read.update(part["batch"].to_pylist())
    rows = [
        {"name": name, "size": size, "mtime": mtime, "batch": commit["batch"]}
        for commit in loose
        for name, (size, mtime) in commit["files"].items()
    ]
    read.update(commit["batch"] for commit in loose for _ in commit["files"])
    delta.append(root / "files", FILES, rows, max(read, default=0))
    return read


def _move_islands(snapshot: Path | None, loose: list[dict[str, Any]], root: Where) -> None:
    new = islands.table_of(
        [islands.Island(*each) for commit in loose for each in commit["islands"]]
    )
    silver_numbers.overwrite(root, silver_numbers.merged([*_parts(snapshot, "islands"), new]))


def _move_quarantined(
    batches: dict[int, dict[str, Any]], root: Where
) -> defaultdict[int, Counter[str]]:
    """Count the quarantine's rows by gateway and day; return them by batch and reason."""
    reasons: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for each in delta.files(root / "quarantine"):
        try:
            parts = list(delta.parts(root / "quarantine", each, [*COLUMNS, "batch"]))
        except (OSError, pa.ArrowInvalid):  # `once --verify` finds them
            continue
        if not parts:
            continue
        rows = pa.Table.from_batches(parts)
        found = set(filter(None, pc.unique(rows["landing_file"]).to_pylist()))
        near = delta.read_parts(root / "files", names(FILES), "name", found).to_pylist()
        marks = {row["name"]: Mark(row["size"], row["mtime"]) for row in near}
        for number in set(pc.unique(rows["batch"]).to_pylist()) & batches.keys():
            of_batch = rows.filter(pc.equal(rows["batch"], number)).select(COLUMNS)
            bad = quarantined(of_batch, marks)
            reasons[number] += by_reason(bad)
            delta.append(root / "quarantined", QUARANTINED, counted(bad, number), number)
    return reasons


def _parts(snapshot: Path | None, name: str) -> Iterator[pa.Table]:
    """Yield the rows of a snapshot's file, some at one time."""
    if snapshot is not None:
        with pq.ParquetFile(snapshot / f"{name}.parquet") as file:
            for part in file.iter_batches(10 * GROUP_ROWS):
                yield pa.Table.from_batches([part])


def _rows(snapshot: Path | None, name: str) -> Iterator[dict[str, Any]]:
    for part in _parts(snapshot, name):
        yield from part.to_pylist()


def _header(snapshot: Path) -> dict[str, Any]:
    header: dict[str, Any] = json.loads((snapshot / "header.json").read_text())
    _check_version(snapshot, header["version"])
    return header


def _epoch(pair: list[str]) -> dict[str, str]:
    return {"gateway_id": pair[0], "epoch": pair[1]}


def _read(path: Path) -> dict[str, Any] | None:
    """Return a commit, None for a damaged one, whose batch is done again."""
    try:
        commit: dict[str, Any] = {"streams": (), "epochs": ()} | json.loads(path.read_bytes())
        _check_version(path, commit["version"])
        whole = commit["batch"] == int(path.stem) and {"files", "rows", "islands", "dates"} <= {
            *commit
        }
    except (ValueError, TypeError, KeyError):
        return None
    return commit if whole else None


def _check_version(path: Path, version: int) -> None:
    if version != VERSION:
        raise PipelineError(
            f"{path} has version {version}, this program knows {VERSION}: "
            "move the tables and their checkpoints away, and read the landing folder again"
        )
