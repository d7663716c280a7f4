"""The tables on disk, `<tables>/<table>/batch=<number>/`, and what their files say."""

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.checkpoint import Range
from pipeline.columns import BRONZE, QUARANTINE, SILVER, Columns, arrow_schema
from pipeline.staging import put_in_place, stage

TABLES: dict[str, Columns] = {"bronze": BRONZE, "quarantine": QUARANTINE, "silver": SILVER}
"""In the order in which a batch is put in place."""

DATE = "event_date"
"""The column that is a folder's name in silver, not a column in its files."""

DAMAGED = -1
"""The rows of a batch with an unreadable file; no commit has this number."""

Rows = dict[str, int]
"""The rows of a batch in each table."""


def create(root: Path) -> None:
    """Give each missing table its columns, in a batch 0 without rows, so that it can be read."""
    for table, columns in TABLES.items():
        folder = batch_folder(root, table, 0)
        if folder.exists():
            continue
        staging = stage(root)
        part = staging / "batch" / (f"{DATE}=1970-01-01" if (DATE, "date") in columns else "")
        part.mkdir(parents=True)
        in_files = tuple(column for column in columns if column[0] != DATE)
        pq.write_table(arrow_schema(in_files).empty_table(), part / "empty.parquet")
        put_in_place(staging / "batch", folder)
        shutil.rmtree(staging)


def batch_folder(root: Path, table: str, batch: int) -> Path:
    """Return where the rows of a batch lie in a table."""
    return root / table / f"batch={batch}"


def batch_folders(root: Path, batch: int) -> list[Path]:
    """Return where the rows of a batch lie in all tables."""
    return [batch_folder(root, table, batch) for table in TABLES]


def rows_by_batch(root: Path) -> dict[int, Rows]:
    """Return the rows of each batch that has a folder in any table, by the files' footers."""
    found: dict[int, Rows] = {}
    for table in TABLES:
        for folder in (root / table).glob("batch=*"):
            number = folder.name.removeprefix("batch=")
            if number.isdecimal() and number != "0":
                counts = found.setdefault(int(number), dict.fromkeys(TABLES, 0))
                counts[table] = count_rows(folder)
    return found


def count_rows(folder: Path) -> int:
    """Return the rows below a folder, 0 if there is none, DAMAGED if a file cannot be read."""
    try:
        return sum(pq.read_metadata(file).num_rows for file in _files(folder))
    except pa.ArrowInvalid:
        return DAMAGED


def key_ranges(folder: Path) -> tuple[Range, ...]:
    """Return the least and the greatest seq of each gateway, epoch and stream in bronze rows."""
    keys = ["gateway_id", "epoch", "stream"]
    rows = _read(folder, BRONZE, [*keys, "seq"])
    spans = rows.group_by(keys).aggregate([("seq", "min"), ("seq", "max")])
    return tuple(sorted(Range(**span) for span in spans.to_pylist()))


def landing_files(root: Path, batch: int) -> set[str]:
    """Return the landing files that the rows of a batch came from, as far as they are readable."""
    found: set[str] = set()
    for table in ("bronze", "quarantine"):
        try:
            rows = _read(batch_folder(root, table, batch), BRONZE, ["landing_file"])
        except pa.ArrowInvalid:
            continue
        found.update(pc.unique(rows["landing_file"]).to_pylist())
    return found


def reasons(root: Path) -> Counter[str]:
    """Return how many rows are in the quarantine for each reason."""
    column = _read(root / "quarantine", QUARANTINE, ["reason"])["reason"]
    return Counter(
        {count["values"]: count["counts"] for count in pc.value_counts(column).to_pylist()}
    )


def _read(folder: Path, columns: Columns, wanted: list[str]) -> pa.Table:
    schema = arrow_schema(tuple(column for column in columns if column[0] in wanted))
    parts = [pq.ParquetFile(file).read(columns=wanted) for file in _files(folder)]
    return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])


def _files(folder: Path) -> list[Path]:
    """List the Parquet files that readers of tables see."""
    return [
        path
        for path in sorted(folder.rglob("*.parquet"))
        if not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    ]
