"""A made-up fleet on the disk: `landing/`, and `truth/` with what the tables must then say."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.simulate.gateway import Gateway, Truth

ROWS = 48
"""Messages of a gateway in a day unless said otherwise."""

KEYS = pa.schema(
    [("gateway_id", pa.string()), ("epoch", pa.string()), ("seq", pa.int64()), ("ms", pa.int64())]
)


def simulate(out: Path, gateways: int, days: int, seed: int, rows: int = ROWS) -> Truth:
    """Write a fleet and return the truth; the same seed gives the same fleet.

    `truth/silver.parquet` has key and event time of each row that silver must have, and
    `truth/totals.json` the rest.
    """
    truth = Truth()
    for index in range(gateways):
        chance = random.Random(f"{seed}/{index}")  # noqa: S311 - nothing is secret here
        landed = Gateway(f"g{index:06d}", chance, truth).live(days, rows)
        for name, content in landed.files.items():
            path = out / "landing" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    _write_truth(out / "truth", truth)
    return truth


def _write_truth(folder: Path, truth: Truth) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    columns = list(zip(*truth.silver, strict=True)) or [(), (), (), ()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, KEYS.types, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=KEYS), folder / "silver.parquet")
    totals = {
        "bronze": truth.bronze,
        "silver": len(truth.silver),
        "reasons": {name: count for name, count in sorted(truth.reasons.items()) if count},
        "outcomes": {name: count for name, count in sorted(truth.outcomes.items()) if count},
    }
    (folder / "totals.json").write_text(json.dumps(totals, indent=1) + "\n", encoding="utf-8")
