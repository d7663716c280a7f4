"""Rows to Arrow record batches of bounded size, for Spark's mapInArrow."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

BATCH_ROWS_MAX = 10_000
BATCH_BYTES_MAX = 16 * 1024 * 1024
"""Bytes in binary columns after which a batch is closed; one row may pass it by itself."""


def record_batches(
    rows: Iterable[tuple[object, ...]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of the schema, in order; no rows give no batch."""
    heavy = [place for place, kind in enumerate(schema.types) if pa.types.is_binary(kind)]
    gathered: list[tuple[object, ...]] = []
    size = 0
    for row in rows:
        gathered.append(row)
        for place in heavy:
            value = row[place]
            if isinstance(value, bytes):
                size += len(value)
        if len(gathered) >= BATCH_ROWS_MAX or size >= BATCH_BYTES_MAX:
            yield _batch(gathered, schema)
            gathered, size = [], 0
    if gathered:
        yield _batch(gathered, schema)


def _batch(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
