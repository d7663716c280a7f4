from collections.abc import Sequence
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.functions import lit

from pipeline.batches.judge import LEFT_OUT
from pipeline.batches.silver import DECODED, conflicts, decoded, firsts, silver
from pipeline.records import reasons
from pipeline.records.payloads import Payloads
from pipeline.tables.columns import BRONZE, SILVER, arrow_schema, names
from tests.support.disk.landing_files import EPOCH, GATEWAY, TIME, reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 7


def bronze_rows(rows: Sequence[tuple[int, int | None, bytes]]) -> pa.RecordBatch:
    """Return bronze's rows of number, seconds after TIME when it was received, and payload."""
    nothing = dict.fromkeys(names(BRONZE))
    same = {"gateway_id": GATEWAY, "epoch": EPOCH, "stream": "main", "time": TIME}
    same |= {"topic": "sensors/n1/temperature", "landing_file": "a"}
    fields = [
        nothing
        | same
        | {
            "seq": seq,
            "received": None if received is None else TIME + received * 1000,
            "payload": content,
            "line": line,
        }
        for line, (seq, received, content) in enumerate(rows, 1)
    ]
    return pa.RecordBatch.from_pylist(fields, arrow_schema(BRONZE))


def decoded_rows(rows: Sequence[tuple[int, int | None, bytes]]) -> pa.Table:
    return pa.Table.from_batches([decoded(bronze_rows(rows), Payloads(()))])


@pytest.mark.spark
def test_rows_that_are_left_out_go_to_the_quarantine_if_they_conflict(
    spark: "SparkSession",
) -> None:
    rows = [(1, 5, reading(1)), (2, 5, reading(2)), (2, 6, reading(2)), (2, 7, reading(3))]
    out = [("a", 3, b"", "a", 2, False), ("a", 4, b"", "b", 9, True)]
    columns = [
        pa.array(column, kind)
        for column, kind in zip(zip(*out, strict=False), LEFT_OUT.types, strict=False)
    ]
    losing = spark.createDataFrame(pa.table(columns, schema=LEFT_OUT))
    kept = firsts(spark.createDataFrame(decoded_rows(rows)), losing).collect()
    assert sorted((row.seq, row.line) for row in kept) == [(1, 1), (2, 2)]
    bronze = spark.createDataFrame(pa.Table.from_batches([bronze_rows(rows)]))
    (reported,) = conflicts(bronze, losing).collect()
    assert (reported.seq, reported.line, bytes(reported.payload)) == (2, 4, reading(3))
    assert (reported.reason, reported.detail, reported.raw) == (
        reasons.KEY_CONFLICT,
        "the key came first in b, line 9",
        None,
    )


@pytest.mark.spark
def test_silver_has_all_columns_typed(spark: "SparkSession") -> None:
    payload = reading(21.5, unit="°C", quality="good", time=TIME - 20 * 3_600_000)
    rows = [(1, 1, payload), (2, None, b"\xff")]
    frame = silver(spark.createDataFrame(decoded_rows(rows)), [], lit(BATCH), TIME + 86_400_000)
    assert frame.columns == names(SILVER)
    first, second = sorted(frame.toArrow().to_pylist(), key=lambda found: found["seq"])
    assert first == {
        "gateway_id": GATEWAY,
        "epoch": EPOCH,
        "stream": "main",
        "seq": 1,
        "part": 0,
        "event_time": datetime(2025, 11, 20, 19, 46, 40, tzinfo=UTC),
        "time_source": "reading",
        "time_uncertainty_ms": None,
        "time": TIME,
        "received": TIME + 1000,
        "reading_time": TIME - 20 * 3_600_000,
        "node": "n1",
        "quantity": "temperature",
        "instance": None,
        "topic": "sensors/n1/temperature",
        "value": 21.5,
        "value_text": None,
        "unit": "°C",
        "value_exact": None,
        "quality": "good",
        "lateness_ms": 20 * 3_600_000 + 1000,
        "resent": None,
        "bytes": len(payload),
        "decode_error": None,
        "digest": sha256(payload).digest()[:8],
        "landing_file": "a",
        "line": 1,
        "batch": BATCH,
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
    rows = decoded(batch, Payloads(()))
    assert rows.schema == arrow_schema(DECODED)
    assert rows.column("value_text").to_pylist() == ["on", None]
    assert decoded(batch.slice(0, 0), Payloads(())).num_rows == 0
