from datetime import UTC, date, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import Observation

from pipeline import reasons
from pipeline.columns import BRONZE, SILVER, arrow_schema, names
from pipeline.silver import (
    DECODED,
    EARLIER,
    conflicts,
    decoded,
    firsts,
    judged,
    silver,
)
from tests.support.landing_files import EPOCH, GATEWAY, TIME, reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OLD, NEW = 6, 7
"""Batches: one that was committed, and the one that is done now."""


def row(
    seq: int, batch: int, file: str, line: int, received: int | None, content: bytes
) -> tuple[object, ...]:
    """Return a bronze row with its batch; times are seconds after TIME."""
    fields: dict[str, object] = dict.fromkeys(names(BRONZE)) | {
        "gateway_id": GATEWAY,
        "epoch": EPOCH,
        "stream": "main",
        "seq": seq,
        "time": TIME,
        "received": None if received is None else TIME + received * 1000,
        "topic": "sensors/n1/temperature",
        "payload": content,
        "landing_file": file,
        "line": line,
    }
    return (*fields.values(), batch)


ROWS = [
    row(1, NEW, "a", 1, 5, reading(1)),  # alone
    row(2, NEW, "a", 3, 5, reading(2.3)),  # the lower line of a file is the first
    row(2, NEW, "a", 2, 5, reading(2.2)),
    row(3, NEW, "a", 4, 9, reading(3.4)),  # what was received before is the first
    row(3, NEW, "b", 1, 8, reading(3.1)),
    row(4, NEW, "b", 2, None, reading(4.2)),  # a time of receipt comes before none
    row(4, NEW, "c", 1, 9, reading(4.1)),
    row(5, NEW, "b", 3, 7, reading(5.3)),  # the name decides between equals
    row(5, NEW, "c", 2, 7, reading(5.1)),
    row(6, OLD, "z", 1, 99, reading(6)),  # an earlier batch comes before everything
    row(6, NEW, "a", 5, 1, reading(6)),
    row(6, NEW, "a", 6, 1, reading(6.6)),
    row(7, NEW, "a", 7, 1, reading(7)),  # the same again is no conflict
    row(7, NEW, "a", 8, 1, reading(7)),
    row(8, OLD, "z", 2, 1, reading(8)),  # not asked for
]
SILVER_VALUES = {1: 1.0, 2: 2.2, 3: 3.1, 4: 4.1, 5: 5.3, 7: 7.0}
CONFLICTS = {
    (2, "a", 3, "the key came first in a, line 2"),
    (3, "a", 4, "the key came first in b, line 1"),
    (4, "b", 2, "the key came first in c, line 1"),
    (5, "c", 2, "the key came first in b, line 3"),
    (6, "a", 6, "the key came first in z, line 1"),
}


@pytest.fixture(scope="module")
def placed(spark: "SparkSession") -> "DataFrame":
    frames = {batch: spark.createDataFrame(decoded_rows(batch)) for batch in (OLD, NEW)}
    earlier = frames[OLD].select(names(EARLIER))
    return judged(frames[NEW].repartition(3, "digest").cache(), earlier)


def bronze_rows(batch: int, rows: list[tuple[object, ...]] = ROWS) -> pa.RecordBatch:
    """Return the rows of a batch with bronze's columns."""
    fields = [dict(zip(names(BRONZE), row, strict=False)) for row in rows if row[-1] == batch]
    return pa.RecordBatch.from_pylist(fields, arrow_schema(BRONZE))


def decoded_rows(batch: int, rows: list[tuple[object, ...]] = ROWS) -> pa.Table:
    return pa.Table.from_batches([decoded(bronze_rows(batch, rows))])


@pytest.mark.spark
def test_silver_keeps_the_first_row_of_each_key(placed: "DataFrame") -> None:
    conflicting = Observation()
    rows = silver(firsts(placed, conflicting), [], NEW).collect()
    assert {found.seq: found.value for found in rows} == SILVER_VALUES
    assert len(rows) == len(SILVER_VALUES)
    assert conflicting.get == {"rows": len(CONFLICTS)}


@pytest.mark.spark
def test_a_known_key_with_another_payload_is_a_conflict(
    spark: "SparkSession", placed: "DataFrame"
) -> None:
    bronze = spark.createDataFrame(pa.Table.from_batches([bronze_rows(NEW)]))
    rows = conflicts(placed, bronze).collect()
    assert {
        (found.seq, found.landing_file, found.line, found.detail) for found in rows
    } == CONFLICTS
    assert {found.reason for found in rows} == {reasons.KEY_CONFLICT}
    assert len(rows) == len(CONFLICTS)


@pytest.mark.spark
def test_silver_has_all_columns_typed(spark: "SparkSession") -> None:
    payload = reading(21.5, unit="°C", quality="good", time=TIME - 20 * 3_600_000)
    rows = [row(1, NEW, "a", 1, 1, payload), row(2, NEW, "a", 2, None, b"\xff")]
    frame = silver(spark.createDataFrame(decoded_rows(NEW, rows)), [], NEW)
    assert frame.columns == names(SILVER)
    first, second = sorted(frame.toArrow().to_pylist(), key=lambda found: found["seq"])
    assert first == {
        "gateway_id": GATEWAY,
        "epoch": EPOCH,
        "stream": "main",
        "seq": 1,
        "event_time": datetime(2025, 11, 20, 19, 46, 40, tzinfo=UTC),
        "time_source": "reading",
        "time_uncertainty_ms": None,
        "time": TIME,
        "received": TIME + 1000,
        "reading_time": TIME - 20 * 3_600_000,
        "node": "n1",
        "quantity": "temperature",
        "topic": "sensors/n1/temperature",
        "value": 21.5,
        "value_text": None,
        "unit": "°C",
        "quality": "good",
        "lateness_ms": 20 * 3_600_000 + 1000,
        "resent": None,
        "bytes": len(payload),
        "decode_error": None,
        "digest": sha256(payload).digest()[:8],
        "landing_file": "a",
        "line": 1,
        "batch": NEW,
        "event_date": date(2025, 11, 20),
    }
    assert second["event_date"] == date(2025, 11, 21)
    assert second["decode_error"] == "not UTF-8 at byte 1"
    assert (second["lateness_ms"], second["node"], second["value_text"]) == (None, None, None)


def test_decoded_fills_the_schema_without_spark() -> None:
    messages: list[dict[str, object]] = [
        {"seq": 1, "received": TIME + 5, "topic": "sensors/n1/a", "payload": reading("on")},
        {"seq": 2, "received": None, "topic": "else", "payload": b"\xff"},
    ]
    kinds = arrow_schema(BRONZE)
    batch = pa.RecordBatch.from_pylist(
        [
            {"gateway_id": GATEWAY, "epoch": EPOCH, "stream": "main", "time": TIME} | fields
            for fields in messages
        ],
        kinds,
    )
    rows = decoded(batch)
    assert rows.schema == arrow_schema(DECODED)
    assert rows.column("value_text").to_pylist() == ["on", None]
    assert decoded(batch.slice(0, 0)).num_rows == 0
