"""A made-up fleet on the disk: `landing/`, and `truth/` with what the tables must then say."""

import json
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.simulate.gateway import Gateway, Truth
from pipeline.simulate.gold import write_gold

ROWS = 48
"""Messages of a gateway in a day unless said otherwise."""

SILVER = pa.schema(
    [
        *((name, pa.string()) for name in ("gateway_id", "epoch")),
        *((name, pa.int64()) for name in ("seq", "ms", "received", "bytes")),
        *((name, pa.string()) for name in ("node", "quantity", "instance")),
        ("value", pa.float64()),
        *((name, pa.string()) for name in ("text", "unit")),
        ("bad", pa.bool_()),
    ]
)
"""Key, event time and receipt in ms, and what a reading says."""
LACKING = pa.schema(
    [*(SILVER.field(name) for name in ("gateway_id", "epoch", "seq")), ("rule", pa.bool_())]
)
"""Numbers that did not arrive, and whether a rule left them out."""


def simulate(out: Path, gateways: int, days: int, seed: int, rows: int = ROWS) -> tuple[int, int]:
    """Write a fleet; return its records and its numbers. The same seed gives the same fleet.

    `truth/silver.parquet` has the rows that silver must have, other files those of the gold tables,
    and `truth/totals.json` the rest. Each core makes one gateway at a time in its memory.
    """
    whole = Truth()
    numbers = 0
    folder = out / "truth"
    folder.mkdir(parents=True, exist_ok=True)
    one_gateway = partial(_one_gateway, out / "landing", seed, days, rows)
    with (
        pq.ParquetWriter(folder / "silver.parquet", SILVER, compression="zstd") as silver,
        pq.ParquetWriter(folder / "lacking.parquet", LACKING, compression="zstd") as lacking,
        ProcessPoolExecutor(mp_context=get_context("spawn")) as cores,
    ):
        for truth in cores.map(one_gateway, range(gateways)):
            silver.write_table(_rows(truth.silver, SILVER))
            lacking.write_table(_rows(truth.lacking, LACKING))
            numbers += len(truth.silver)
            whole.bronze += truth.bronze
            whole.reasons.update(truth.reasons)
            whole.outcomes.update(truth.outcomes)
            whole.boards += truth.boards
    write_gold(folder)
    _write_totals(folder / "totals.json", whole, numbers)
    return whole.bronze, numbers


def _one_gateway(landing: Path, seed: int, days: int, rows: int, index: int) -> Truth:
    truth = Truth()
    chance = random.Random(f"{seed}/{index}")  # noqa: S311 - nothing is secret here
    gateway = Gateway(index, chance, truth)
    for file, content in gateway.live(days, rows).files.items():
        path = landing / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return truth


def _rows(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _write_totals(file: Path, truth: Truth, numbers: int) -> None:
    totals = {
        "bronze": truth.bronze,
        "silver": numbers,
        "reasons": {name: count for name, count in sorted(truth.reasons.items()) if count},
        "outcomes": {name: count for name, count in sorted(truth.outcomes.items()) if count},
        "boards": sorted(truth.boards),
    }
    file.write_text(json.dumps(totals, indent=1) + "\n", encoding="utf-8")
