"""Which rows of a batch silver leaves out, because another row came first under their key.

Keys are compared here, in Arrow, so that only rows that are left out are sent to tasks, and no row
has to be sorted or sent from one task to another for it.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.tables.columns import KEY, SILVER, Columns, arrow_schema

ORDER = ("received", "landing_file", "line")
"""What makes a row of a batch the first of its key: the time of receipt (none stands last), then
the file's name and the line."""


def _columns(*names: str) -> Columns:
    kinds = dict(SILVER)
    return tuple((name, kinds[name]) for name in names)


AT_ONCE = 1_000_000
"""Earlier rows that are in memory at one time, but for the last part: some 100 MB."""

ARRIVED = _columns(*KEY, *ORDER, "digest")
"""What is read of a batch's rows."""
EARLIER = _columns(*KEY, "digest", "landing_file", "line")
"""What is read of silver's rows that came before them."""
FIRST = {"digest": "first_digest", "landing_file": "first_file", "line": "first_line"}
LEFT_OUT = pa.schema(
    [
        ("landing_file", pa.string()),
        ("line", pa.int64()),
        ("first_digest", pa.binary()),
        ("first_file", pa.string()),
        ("first_line", pa.int64()),
        ("conflicts", pa.bool_()),
    ]
)
"""A row that silver leaves out, the row that came first, and whether their payloads differ."""


def left_out(arrived: pa.Table, earlier: Iterable[pa.Table]) -> pa.Table:
    """Return LEFT_OUT for those rows (ARRIVED) that are not the first of their key.

    `earlier` are parts of silver (EARLIER), read one after another; a row in them comes before
    all that arrived, and only rows of one message share a key.
    """
    known = _sharing(arrived, earlier)
    counted = arrived.select(KEY).group_by(list(KEY)).aggregate([([], "count_all")])
    repeated = counted.filter(pc.greater(counted["count_all"], 1)).select(KEY)
    keys = pa.concat_tables([repeated, known.select(KEY)])
    if not keys.num_rows:
        return LEFT_OUT.empty_table()
    contested = arrived.join(keys, list(KEY), join_type="left semi")
    judged = contested.join(_first(contested, known), list(KEY), join_type="inner")
    same_file = pc.equal(judged["landing_file"], judged["first_file"])
    same_line = pc.equal(judged["line"], judged["first_line"])
    # A file that changed is read again: a row of silver may have come from this very place.
    first = pc.and_not(pc.and_(same_file, same_line), judged["earlier"])
    differs = pc.not_equal(judged["digest"], judged["first_digest"])
    differing = judged.append_column("conflicts", differs).filter(pc.invert(first))
    return differing.select(LEFT_OUT.names).cast(LEFT_OUT)


def _sharing(arrived: pa.Table, earlier: Iterable[pa.Table]) -> pa.Table:
    """Return the earlier rows whose key arrived."""
    keys = arrived.select(KEY)
    shared = [part.join(keys, list(KEY), join_type="left semi") for part in _together(earlier)]
    known = pa.concat_tables([arrow_schema(EARLIER).empty_table(), *shared])
    heads = known.group_by(known.schema.names, use_threads=False)  # a message may have several rows
    return heads.aggregate([])


def _together(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield parts joined to some of many rows each: all that arrived is hashed for each of them."""
    held: list[pa.Table] = []
    rows = 0
    for part in parts:
        held.append(part)
        rows += part.num_rows
        if rows >= AT_ONCE:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if held:
        yield pa.concat_tables(held)


def _first(contested: pa.Table, known: pa.Table) -> pa.Table:
    """Return the first row of each key, under the names of FIRST, and whether it came `earlier`."""
    ordered = contested.sort_by([(name, "ascending") for name in (*KEY, *ORDER)])
    grouped = ordered.group_by(list(KEY), use_threads=False)  # threads would lose the order
    heads = grouped.aggregate([(name, "first") for name in FIRST])
    heads = heads.select([*KEY, *(f"{name}_first" for name in FIRST)])
    of_batch = heads.rename_columns([*KEY, *FIRST.values()])
    before = known.select([*KEY, *FIRST]).rename_columns([*KEY, *FIRST.values()])
    later = of_batch.join(before.select(KEY), list(KEY), join_type="left anti")
    return pa.concat_tables(
        [
            _marked(before, earlier=True),
            _marked(later.select(before.column_names).cast(before.schema), earlier=False),
        ]
    )


def _marked(rows: pa.Table, *, earlier: bool) -> pa.Table:
    return rows.append_column("earlier", pa.repeat(pa.scalar(earlier), rows.num_rows))
