import pytest

from pipeline.tables.columns import (
    BRONZE,
    KEY,
    QUARANTINE,
    SILVER,
    Columns,
    arrow_schema,
    ddl,
    names,
)

TABLES = {"bronze": BRONZE, "quarantine": QUARANTINE, "silver": SILVER}


def test_the_key_stands_first_in_every_table() -> None:
    for columns in TABLES.values():
        assert tuple(names(columns)[:4]) == KEY


def test_quarantine_adds_to_bronze() -> None:
    assert names(QUARANTINE) == [*names(BRONZE), "reason", "detail", "raw"]


@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES)
def test_every_column_is_told_to_spark_and_to_arrow(columns: Columns) -> None:
    assert arrow_schema(columns).names == names(columns)
    assert ddl(columns).startswith("gateway_id string, epoch string, stream string, seq bigint, ")
    assert len(set(names(columns))) == len(columns)
