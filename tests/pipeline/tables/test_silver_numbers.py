from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.tables import delta, islands, on_disk, silver_numbers
from pipeline.tables.islands import Island

SPANS = st.tuples(
    st.sampled_from(["barn", "mill"]), st.sampled_from(["aa", "ab"]), st.integers(0, 8)
)
"""A gateway, an epoch, and which ten numbers."""


def table(*spans: tuple[str, str, int]) -> pa.Table:
    listed = [Island(*span[:2], "m", 10 * span[2], 10 * span[2] + 9, 1, 2) for span in spans]
    return islands.merged(islands.table_of(listed))


@given(st.lists(SPANS, unique=True, max_size=12), st.integers(2, 5))
@settings(max_examples=15, deadline=None)
def test_islands_are_the_same_however_they_are_put_together(
    tmp_path_factory: pytest.TempPathFactory, spans: list[tuple[str, str, int]], many: int
) -> None:
    root = tmp_path_factory.mktemp("tables")
    on_disk.create(root)
    for batch, span in enumerate(spans, 1):
        silver_numbers.add(root, table(span), batch)
        silver_numbers.tidy(root, many)
        assert len(delta.files(root / "islands")) < many + 1
    for epochs in ({("barn", "aa")}, {("barn", "ab"), ("mill", "aa")}, set[tuple[str, str]]()):
        expected = table(*(span for span in spans if span[:2] in epochs))
        assert silver_numbers.of_epochs(root, epochs) == expected
    barn = silver_numbers.merged(silver_numbers.of_gateways(root, ["barn"]))
    assert barn == table(*(span for span in spans if span[0] == "barn"))


@pytest.mark.parametrize("values", [None, {"a", "c", "z"}])
def test_portions_have_so_many_rows_or_one_text(tmp_path: Path, values: set[str] | None) -> None:
    on_disk.create(tmp_path)
    for epoch, rows in zip("abcd", (3, 1, 2, 5), strict=True):
        spans = [("barn", epoch, 2 * place) for place in range(rows)]
        silver_numbers.add(tmp_path, table(*spans), 1)
    source = [(tmp_path / "islands", "epoch")]
    expected = [["a", "b"], ["c"], ["d"]] if values is None else [["a"], ["c", "z"]]
    assert list(silver_numbers.portions(source, values, 4)) == expected
