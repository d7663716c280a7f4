from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.tables.islands import (
    each,
    folded,
    holders,
    islands_of,
    merged,
    numbers,
    spans_of,
    table_of,
    twice,
)

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["barn", "shed"]), st.sampled_from(["aa", "ab"]), st.sampled_from("xy"),
        st.integers(1, 12) | st.just(2**63 - 1),
    ),
    max_size=25,
)  # fmt: skip
NAMES = ["gateway_id", "epoch", "stream", "seq"]


def table(rows: list[tuple[str, str, str, int]]) -> pa.Table:
    listed = [dict(zip(NAMES, row, strict=True)) | {"event_ms": row[3] // 2} for row in rows]
    kinds = [*((name, pa.string()) for name in NAMES[:3]), ("seq", pa.int64())]
    return pa.Table.from_pylist(listed, schema=pa.schema([*kinds, ("event_ms", pa.int64())]))


def keys_of(spans: pa.Table) -> list[tuple[str, str, str, int]]:
    return [(*one[:3], n) for one in each(spans) for n in range(one.first, one.last + 1)]


@pytest.mark.uncovered
@given(ROWS, ROWS)
def test_islands_hold_exactly_the_numbers_that_came(
    rows: list[tuple[str, str, str, int]], others: list[tuple[str, str, str, int]]
) -> None:
    found = islands_of(table(rows))
    listed = list(each(found))
    spread = keys_of(found)
    assert spread == sorted(set(rows))
    assert keys_of(folded(spans_of(table(rows))))[: len(spread)] == spread
    assert numbers(found) == len(spread)
    for one in listed:
        assert (*one[:3], one.last + 1) not in spread
        assert (one.first_time, one.last_time) == (one.first // 2, one.last // 2)
    more = islands_of(table(others))
    assert keys_of(twice(pa.concat_tables([found, more]))) == sorted(set(rows) & set(others))
    counted = Counter(rows + others)
    assert keys_of(twice(spans_of(table(rows + others)))) == sorted(
        row for row, count in counted.items() if count > 1
    )
    parts = pa.concat_tables([folded(spans_of(table(each))) for each in (rows, others)])
    assert keys_of(twice(folded(parts))) == sorted(
        row for row, count in counted.items() if count > 1
    )
    assert table_of(listed) == found
    for row, place in zip(others, holders(table(others), listed).tolist(), strict=True):
        by = [
            n for n, one in enumerate(listed) if one[:3] == row[:3] and one[3] <= row[3] <= one[4]
        ]
        assert by == ([place] if place >= 0 else [])
    together = islands_of(table(rows + others))
    assert merged(pa.concat_tables([found, more])) == together
