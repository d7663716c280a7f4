"""Silver's rows of some messages again, from bronze, as payloads are read now."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit

from pipeline.backtest.spark_sql import topic_matches
from pipeline.batches.judge import LEFT_OUT
from pipeline.batches.silver import DECODED, DECODED_FOLDER, Judged, decoded, write_silver
from pipeline.clock.known import corrections_for
from pipeline.ledger import make as ledger
from pipeline.operation.begin import begin, recount
from pipeline.operation.derive import derive
from pipeline.operation.full_disk import working
from pipeline.operation.once import How, note_mapping, spark_errors
from pipeline.place import Place
from pipeline.records.declarations import FleetMapping
from pipeline.records.payloads import Payloads
from pipeline.settings import Settings
from pipeline.tables import cycles, delta, islands, on_disk, silver_numbers
from pipeline.tables.columns import BATCH, BRONZE, DIGEST_BYTES, KEY, SILVER, ddl, names
from pipeline.tables.spark_files import FILE, read_files, write_rows
from pipeline.tables.state import State
from pipeline.tables.task_files import Written, discard, of

PLACE = (*KEY, "landing_file", "line")


@dataclass(frozen=True)
class Selection:
    """Which messages; all where nothing is named."""

    gateway: str | None = None
    topic: str | None = None
    """A topic filter."""
    first: date | None = None
    last: date | None = None
    """Event dates, both included."""


class Done(NamedTuple):
    """What was done."""

    messages: int
    rows: int
    """Those of the messages in silver."""
    dates: int
    """Event dates that were touched."""


def reprocess(
    settings: Settings, open_session: Callable[[], SparkSession], chosen: Selection, how: How
) -> Done:
    """Read the payloads of messages again; return what was done.

    Silver's files with such rows are replaced in one step. Before it the touched dates are noted,
    so whatever is killed on the way, the next run makes gold of what silver has. A message whose
    row in bronze was deleted stays as it is.
    """
    with working(settings):
        committed, _ = begin(settings)
        with spark_errors(settings):
            note_mapping(committed, how.declared)
            how.watch("messages", 0, 1)
            done = _replace(settings, open_session(), committed, chosen, how.declared.mapping)
            how.watch("messages", 1, 1)
            derive(settings, committed, open_session, how)
    return done


def _replace(
    settings: Settings,
    spark: SparkSession,
    committed: State,
    chosen: Selection,
    mappings: Sequence[FleetMapping],
) -> Done:
    root = settings.tables
    near, rows = _near(spark, root, chosen)
    if not near:
        return Done(0, 0, 0)
    read = _write_again(spark, root, rows.where(_condition(chosen)), mappings)
    found = on_disk.read_columns(root, read, DECODED, [*KEY, "part"])
    listed = [{"path": each.name, "num_records": each.rows} for each in read]
    again = read_files(spark, root / DECODED_FOLDER, listed, DECODED)
    epochs = islands.epochs_of(found)
    corrections = corrections_for(root, silver_numbers.of_epochs(root, epochs))
    now = int(time.time() * 1000)
    judged = Judged(LEFT_OUT.empty_table(), (), corrections, now)
    added = of(write_silver(spark, root, read, judged), "silver")
    dates = _dates(rows.where(_condition(chosen))) | _written(root, added)
    rest = rows.join(again.select(*KEY).distinct(), list(KEY), "left_anti").select(names(SILVER))
    added += write_rows(rest, root, "silver")
    discard(root, read)
    compared = committed.compared
    committed.recount = not committed.trimmed  # else silver lacks numbers that it had
    _note(committed, dates, 0)
    delta.commit(root / "silver", added, near)
    recount(root, committed)
    if compared == committed.last:  # the times around gaps may be others
        ledger.make(root, None)
    _note(committed, dates, compared)
    messages = pc.sum(pc.equal(found["part"], 0)).as_py() or 0
    return Done(messages, found.num_rows, len(dates))


def _dates(rows: DataFrame) -> set[str]:
    return {str(row.event_date or "") for row in rows.select("event_date").distinct().collect()}


def _written(root: Place, files: Sequence[Written]) -> set[str]:
    """Return the event dates of silver's rows in new files."""
    days = on_disk.read_columns(root, files, SILVER, ["event_date"])["event_date"]
    return {str(day or "") for day in pc.unique(days).to_pylist()}


def _note(committed: State, dates: set[str], compared: int) -> None:
    """Note that gold of some dates has to be made, and how far ledgers are compared."""
    committed.corrected = tuple(sorted(dates.union(committed.corrected)))
    committed.compared = compared
    committed.note()


def _near(
    spark: SparkSession, root: Place, chosen: Selection
) -> tuple[list[dict[str, Any]], DataFrame]:
    """Return those files of silver that have chosen rows (delta.files), and all rows of them."""
    silver = root / "silver"
    listed = [e for e in delta.files(silver) if e["num_records"] and _may_have(e, chosen)]
    rows = read_files(spark, silver, listed, (*SILVER, FILE)).where(_condition(chosen))
    having = {row.file for row in rows.select("file").distinct().collect()}
    near = [each for each in listed if each["path"] in having]
    return near, read_files(spark, silver, near, SILVER)


def _may_have(file: dict[str, Any], chosen: Selection) -> bool:
    """Say whether a file may have chosen rows, by what the log says."""
    low, high = file.get("min.gateway_id"), file.get("max.gateway_id")
    gateway = chosen.gateway
    if gateway is not None and low is not None and high is not None and not low <= gateway <= high:
        return False
    first, last = file.get("min.event_date"), file.get("max.event_date")
    if first is None or last is None:
        return chosen.first is None and chosen.last is None
    return bool((chosen.first or last) <= last and first <= (chosen.last or first))


def _condition(chosen: Selection) -> Column:
    tests = [lit(True)]  # noqa: FBT003 - a literal of Spark's
    if chosen.gateway is not None:
        tests.append(col("gateway_id") == chosen.gateway)
    if chosen.topic is not None:
        tests.append(topic_matches(chosen.topic))
    if chosen.first is not None:
        tests.append(col("event_date") >= lit(chosen.first))
    if chosen.last is not None:
        tests.append(col("event_date") <= lit(chosen.last))
    return reduce(lambda one, other: one & other, tests)


def _write_again(
    spark: SparkSession,
    root: Place,
    chosen: DataFrame,
    mappings: Sequence[FleetMapping],
) -> list[Written]:
    """Write the rows that bronze's payloads of the chosen ones give now; return the files."""
    first = chosen.where("coalesce(part, 0) = 0")
    batches = [row.batch for row in first.select("batch").distinct().collect()]
    near = delta.within(delta.files(root / "bronze"), "batch", batches)
    bronze = read_files(spark, root / "bronze", near, BRONZE)
    # A file that changed was read again: bronze may have a place twice, with two payloads.
    same = expr(f"substring(unhex(sha2(payload, 256)), 1, {DIGEST_BYTES}) = digest")
    rows = bronze.join(first.select(*PLACE, "digest", "batch"), list(PLACE)).where(same)
    messages = rows.dropDuplicates(list(KEY)).select(*names(BRONZE), BATCH[0])

    def read(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cycles.look_rarely()
        payloads = Payloads(mappings)
        for part in parts:
            yield decoded(part, payloads)

    return write_rows(messages.mapInArrow(read, ddl(DECODED)), root, DECODED_FOLDER)
