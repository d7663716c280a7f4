from pathlib import Path

import pytest

from gateway.routing.trie.columns import (
    BYTES,
    LARGE,
    LEAST,
    SHORTS,
    WORDS,
    Kind,
    capacity_for,
    resized,
    zeros,
)
from tests.support.table import table


@table(("kind", "most"), [(WORDS, 2**32 - 1), (SHORTS, 65_535), (BYTES, 255)])
@table("size", [1, LARGE - 1, LARGE, 3 * LARGE])
def test_a_column_holds_numbers_of_its_kind(kind: Kind, most: int, size: int) -> None:
    column = zeros(size, kind)
    assert (len(column), sum(column), column.format) == (size, 0, kind)
    column[size - 1] = most
    with pytest.raises((OverflowError, ValueError)):
        column[0] = most + 1
    longer = resized(column, size + LARGE, size)
    assert (len(longer), longer[size - 1], sum(longer), longer.format) == (
        size + LARGE,
        most,
        most,
        kind,
    )
    assert list(resized(longer, size, size)[-1:]) == [most]
    longer[0] = 1
    assert size == 1 or column[0] == 0


def test_room_costs_little_or_nothing() -> None:
    assert capacity_for(0) == LEAST
    assert capacity_for(LARGE - 1) < (LARGE - 1) * 1.07
    assert capacity_for(LARGE) == 2 * LARGE


def resident() -> int:
    """Return the kilobytes of memory that this process occupies."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Rss:")).split()[1])


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no /proc to ask")
def test_places_that_were_not_written_to_take_no_memory() -> None:
    before = resident()
    column = zeros(16 * 1024 * 1024)
    assert resident() - before < 4 * 1024
    column[: 4 * 1024 * 1024] = zeros(4 * 1024 * 1024)  # zeros that are written
    assert 16 * 1024 <= resident() - before < 24 * 1024
    column = resized(column, 8 * 1024 * 1024, 1024 * 1024)
    assert 4 * 1024 <= resident() - before < 8 * 1024
    column = zeros(1)
    assert resident() - before < 4 * 1024
    assert len(column) == 1
