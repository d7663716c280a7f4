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


def simulate(out: Path, gateways: int, days: int, seed: int, rows: int = ROWS) -> tuple[int, int]:
    """Write a fleet; return its records and its numbers. The same seed gives the same fleet.

    `truth/silver.parquet` has key and event time of each row that silver must have, and
    `truth/totals.json` the rest. One gateway at a time is in memory.
    """
    whole = Truth()
    numbers = 0
    folder = out / "truth"
    folder.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(folder / "silver.parquet", KEYS, compression="zstd") as silver:
        for index in range(gateways):
            truth = _one_gateway(out / "landing", f"g{index:06d}", f"{seed}/{index}", days, rows)
            silver.write_table(_keys(truth))
            numbers += len(truth.silver)
            whole.bronze += truth.bronze
            whole.reasons.update(truth.reasons)
            whole.outcomes.update(truth.outcomes)
    _write_totals(folder / "totals.json", whole, numbers)
    return whole.bronze, numbers


def _one_gateway(landing: Path, name: str, seed: str, days: int, rows: int) -> Truth:
    truth = Truth()
    chance = random.Random(seed)  # noqa: S311 - nothing is secret here
    for file, content in Gateway(name, chance, truth).live(days, rows).files.items():
        path = landing / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return truth


def _keys(truth: Truth) -> pa.Table:
    columns = list(zip(*truth.silver, strict=True)) or [()] * len(KEYS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, KEYS.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=KEYS)


def _write_totals(file: Path, truth: Truth, numbers: int) -> None:
    totals = {
        "bronze": truth.bronze,
        "silver": numbers,
        "reasons": {name: count for name, count in sorted(truth.reasons.items()) if count},
        "outcomes": {name: count for name, count in sorted(truth.outcomes.items()) if count},
    }
    file.write_text(json.dumps(totals, indent=1) + "\n", encoding="utf-8")
