"""The table `runs`: a row for each run that did something."""

import time
from datetime import UTC, datetime
from pathlib import Path

from pipeline import delta
from pipeline.columns import Columns
from pipeline.once import Totals

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
)


def note_run(root: Path, totals: Totals, seconds: float) -> None:
    """Add a row for a run that ended now, unless it read nothing."""
    if not totals.files:
        return
    table = root / "runs"
    delta.create(table, RUNS)
    last = delta.read(table).sort_by("started").to_pylist()[-1:]
    before = last[0] if last else {"bronze": 0, "silver": 0, "quarantined": 0}
    now = {"bronze": totals.bronze, "silver": totals.silver, "quarantined": totals.quarantined}
    row: dict[str, object] = {
        "started": datetime.fromtimestamp(time.time() - seconds, UTC),
        "seconds": seconds,
        "landing_files": totals.files,
        **{f"new_{name}": count - before[name] for name, count in now.items()},
        **now,
    }
    delta.append(table, RUNS, [row])
