"""The table `islands`: which numbers silver has, read by gateway."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.tables import delta, islands
from pipeline.tables.arrays import strings
from pipeline.tables.columns import BATCH, ISLANDS, arrow_schema, names
from pipeline.tables.delta import Where

TABLE = "islands"
COLUMNS = (*ISLANDS, BATCH)
AT_ONCE = 500_000
"""Islands that are put together at one time, some 50 MB."""

Epochs = Collection[tuple[str, str]]
"""Gateways and epochs."""


def of_epochs(root: Where, epochs: Epochs) -> pa.Table:
    """Return the islands of these gateways' epochs."""
    gateways = {gateway for gateway, _ in epochs}
    return merged(part.filter(are_of(part, epochs)) for part in of_gateways(root, gateways))


def of_gateways(root: Where, gateways: Collection[str]) -> Iterator[pa.Table]:
    """Yield the islands of these gateways, of several batches apart, some at one time."""
    return delta.near(root / TABLE, names(ISLANDS), "gateway_id", gateways)


def are_of(rows: pa.Table, epochs: Epochs, gateway: str = "gateway_id") -> pa.ChunkedArray:
    """Say which rows are of these gateways' epochs."""
    named = pc.binary_join_element_wise(rows[gateway], rows["epoch"], "/")
    return pc.is_in(named, value_set=strings(["/".join(each) for each in epochs]))


def add(root: Where, found: pa.Table, batch: int) -> None:
    """Add the islands of a batch."""
    if found.num_rows:
        delta.append_table(root / TABLE, _of_batch(found, batch), batch)


def overwrite(root: Where, found: pa.Table) -> None:
    """Put islands in the place of all that the table has."""
    delta.overwrite(root / TABLE, _of_batch(found, None))


def replace(root: Where, epochs: Epochs, found: pa.Table) -> None:
    """Put islands in the place of those of these epochs; all batches count."""
    table = root / TABLE
    for portion in portions([(table, "gateway_id")], {gateway for gateway, _ in epochs}, AT_ONCE):
        stay = (part.filter(pc.invert(are_of(part, epochs))) for part in of_gateways(root, portion))
        new = found.filter(pc.is_in(found["gateway_id"], value_set=strings(portion)))
        delta.overwrite_parts(table, _of_batch(merged([*stay, new]), None), "gateway_id", portion)


def tidy(root: Where, many: int) -> None:
    """Put the islands of batches together, if the table has many files; all batches count."""
    table = root / TABLE
    if len(delta.files(table)) < many:
        return
    loose = [each for each in delta.files(table) if each.get("min.batch") is not None]
    gateways = {
        gateway
        for each in loose
        for part in delta.parts(table, each, ["gateway_id"])
        for gateway in pc.unique(part["gateway_id"]).to_pylist()
    }
    for portion in portions([(table, "gateway_id")], gateways, AT_ONCE):
        together = _of_batch(merged(of_gateways(root, portion)), None)
        delta.overwrite_parts(table, together, "gateway_id", portion)
    delta.cluster(table, "gateway_id")


def portions(
    sources: Iterable[tuple[Where, str]], values: Collection[str] | None, at_once: int
) -> Iterator[list[str]]:
    """Yield texts in order, so many at a time as some columns have rows of; all of them for None.

    `sources` are tables, and the column of each; a text that has more rows comes by itself.
    """
    sizes = Counter(dict.fromkeys(values or (), 0))
    for table, name in sources:
        parts = (
            delta.scan(table, [name]) if values is None else delta.near(table, [name], name, values)
        )
        for part in parts:
            for found in pc.value_counts(part[name]).to_pylist():
                sizes[found["values"]] += found["counts"]
    portion: list[str] = []
    held = 0
    for value in sorted(sizes):
        if portion and held + sizes[value] > at_once:
            yield portion
            portion, held = [], 0
        portion.append(value)
        held += sizes[value]
    if portion:
        yield portion


def merged(parts: Iterable[pa.Table]) -> pa.Table:
    """Return islands of several parts, those that touch as one."""
    return islands.merged(pa.concat_tables([pa.Table.from_batches([], islands.SCHEMA), *parts]))


def _of_batch(found: pa.Table, batch: int | None) -> pa.Table:
    column = pa.nulls(found.num_rows, pa.int64())
    if batch is not None:
        column = pc.fill_null(column, batch)
    return found.append_column(BATCH[0], column).cast(arrow_schema(COLUMNS))
