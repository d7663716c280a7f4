"""Arrow columns as numpy arrays and back, also parts of columns and such in several chunks."""

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline.tables import arrays

NOON = datetime(2025, 11, 21, 12, tzinfo=UTC)
COLUMNS: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (pa.int64(), [3, None, -(2**62)], [3, 0, -(2**62)]),
    (pa.float64(), [1.5, None, -0.5], [1.5, 0.0, -0.5]),
    (pa.bool_(), [True, None, False, True], [True, False, False, True]),
    (pa.date32(), [date(1970, 1, 3), None], [2, 0]),
    (pa.timestamp("us", tz="UTC"), [NOON, None], [int(NOON.timestamp()) * 1_000_000, 0]),
    (pa.timestamp("ns", tz="UTC"), [NOON], [int(NOON.timestamp()) * 1_000_000]),
    (pa.int64(), [], []),
]


@pytest.mark.parametrize(("kind", "values", "wanted"), COLUMNS)
def test_values_and_which_are_there(
    kind: pa.DataType, values: list[Any], wanted: list[Any]
) -> None:
    whole = pa.array([*values[:1], *values], kind)
    for column in (
        pa.chunked_array([pa.array(values, kind)]),
        pa.chunked_array([whole.slice(len(values[:1]))]),
        pa.chunked_array([pa.array(values[:1], kind), pa.array(values[1:], kind)]),
    ):
        assert arrays.numbers(column).tolist() == wanted
        assert arrays.valid(column).tolist() == [value is not None for value in values]


def test_texts_are_codes_in_the_order_of_their_utf_8() -> None:
    texts = ["\U0001f600", "b", None, "\ue000", "b", ""]
    found = arrays.coded(pa.chunked_array([texts[:2], texts[2:]], pa.string()))
    assert found.values.to_pylist() == ["", "b", "\ue000", "\U0001f600"]
    assert found.codes.tolist() == [3, 1, -1, 2, 1, 0]
    assert found.take(np.array([2, 0])).to_pylist() == [None, texts[0]]


def test_texts_that_are_given() -> None:
    assert arrays.strings(["ä", "", "b"]).to_pylist() == ["ä", "", "b"]
    assert arrays.strings([]).to_pylist() == []
    assert arrays.dates(np.array([0, 2])).to_pylist() == [date(1970, 1, 1), date(1970, 1, 3)]


def test_columns_have_nulls_where_nothing_is() -> None:
    there = np.array([True, False, True])
    assert arrays.integers(np.array([1, 2, 3]), there).to_pylist() == [1, None, 3]
    assert arrays.doubles(np.array([1.5, 2, 3]), there).to_pylist() == [1.5, None, 3.0]
    assert arrays.moments(np.array([0, 1, 2]), ~there)[1].as_py() == datetime(
        1970, 1, 1, microsecond=1, tzinfo=UTC
    )
    lists = pa.ListArray.from_arrays(
        arrays.offsets(np.array([2, 0, 1]), there), arrays.integers(np.array([7, 8, 9]))
    )
    assert lists.to_pylist() == [[7, 8], None, [9]]


def test_figures_of_runs() -> None:
    begins = arrays.runs(np.array([4, 4, 5, 5, 5]), np.array([0, 0, 0, 1, 1]))
    values, where = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([True, True, False, True, False])
    assert begins.tolist() == [0, 2, 3]
    assert arrays.spread(np.array([6, 7, 8]), begins, 5).tolist() == [6, 6, 7, 8, 8]
    assert arrays.last_place(where, begins).tolist() == [1, -1, 3]
    assert arrays.count(where, begins).tolist() == [2, 0, 1]
    assert arrays.total(values, where, begins).tolist() == [3.0, 0.0, 4.0]
    assert arrays.highest(values, where, begins).tolist() == [2.0, -np.inf, 4.0]
    assert arrays.lowest(values, where, begins).tolist() == [1.0, np.inf, 4.0]
    assert not len(arrays.runs(np.array([])))
