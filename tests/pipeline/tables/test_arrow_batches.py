import pyarrow as pa
import pytest

from pipeline.tables import arrow_batches
from pipeline.tables.arrow_batches import record_batches
from tests.support.table import table

SCHEMA = pa.schema([("number", pa.int64()), ("content", pa.binary())])


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_batches, "BATCH_ROWS_MAX", 3)
    monkeypatch.setattr(arrow_batches, "BATCH_BYTES_MAX", 10)


CASES: list[tuple[list[bytes | None], list[int]]] = [
    ([], []),
    ([None], [1]),
    ([None] * 3, [3]),
    ([None] * 7, [3, 3, 1]),
    ([b"12345", b"12345", b"1"], [2, 1]),
    ([b"1" * 100, b"1"], [1, 1]),
    ([b"1" * 9, None, b"1"], [3]),
]


@table(("contents", "sizes"), CASES, ids=range(len(CASES)))
def test_a_batch_ends_at_its_bounds(contents: list[bytes | None], sizes: list[int]) -> None:
    rows = list(enumerate(contents))
    batches = list(record_batches(rows, SCHEMA))
    assert [batch.num_rows for batch in batches] == sizes
    assert [tuple(row.values()) for batch in batches for row in batch.to_pylist()] == rows
    assert all(batch.schema == SCHEMA for batch in batches)
