"""The table `runs`: a row for each run that read something, or failed."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from pipeline.tables import delta
from pipeline.tables.columns import Columns
from pipeline.tables.delta import Where

RUNS: Columns = (
    ("started", "timestamp"),
    ("seconds", "double"),
    ("landing_files", "bigint"),
    ("new_bronze", "bigint"),
    ("new_silver", "bigint"),
    ("new_quarantined", "bigint"),
    ("bronze", "bigint"),
    ("silver", "bigint"),
    ("quarantined", "bigint"),
    ("error", "string"),
)


def note_run(
    root: Where,
    begun: float,
    files: int,
    before: Mapping[str, int],
    now: Mapping[str, int],
    error: Exception | None,
) -> None:
    """Add a row for a run that ends now, unless it neither read nor failed.

    `begun` is of the monotonic clock; `before` and `now` are rows by table.
    """
    if not files and error is None:
        return
    seconds = time.monotonic() - begun
    row: dict[str, object] = {
        "started": datetime.fromtimestamp(time.time() - seconds, UTC),
        "seconds": seconds,
        "landing_files": files,
        "error": None if error is None else str(error),
    }
    for table, name in (("bronze",) * 2, ("silver",) * 2, ("quarantine", "quarantined")):
        row[name] = now[table]
        row[f"new_{name}"] = now[table] - before[table]
    delta.create(root / "runs", RUNS)
    delta.append(root / "runs", RUNS, [row])
