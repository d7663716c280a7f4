"""One run: bring the tables up to the landing folder and say what is in them."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from pipeline import staging, state, tables
from pipeline.derive import derive
from pipeline.errors import JobError, PipelineError
from pipeline.landing import Listing, kind, list_landing
from pipeline.plan import Plan, make_plan
from pipeline.settings import Settings
from pipeline.spark_errors import cause
from pipeline.state import State, locked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_ENDED = "Spark's Java process ended (out of memory?)"


@dataclass(frozen=True)
class Totals:
    """The rows that are in the tables after a run, and what the run read."""

    bronze: int
    silver: int
    quarantined: int
    reasons: Counter[str]
    """Rows of the quarantine by reason."""
    files: int
    """Landing files read in this run."""
    left: dict[str, str] = field(default_factory=dict)
    """What lies in the landing folder and was not read, and why."""


def run_once(
    settings: Settings,
    open_session: "Callable[[], SparkSession]",
    *,
    verify: bool = False,
    gold: bool = True,
) -> Totals:
    """Read every landing file that is not in the tables yet; return what they then hold.

    Spark is started only when there are records to read. `verify` also counts the rows of every
    batch; without `gold` the gold tables are left for a later run. Raises PipelineError when it
    cannot begin, JobError when Spark gives up; batches that were committed by then stay.
    """
    if settings.tables.exists() and not settings.tables.is_dir():
        raise PipelineError(f"tables folder {settings.tables} is a file, not a folder")
    if "%" in str(settings.tables):  # the library takes it for an escape, whatever one writes
        raise PipelineError(f"tables folder {settings.tables} has a % in its path: rename it")
    with locked(settings.checkpoints):
        listing = list_landing(settings.landing)
        settings.tables.mkdir(parents=True, exist_ok=True)
        staging.clear(settings.tables)
        staging.clear(settings.checkpoints)
        tables.create(settings.tables)
        committed = state.load(settings.checkpoints)
        session = cache(open_session)
        plan = _plan(settings, committed, listing, verify=verify)
        if plan.forget:
            _forget(settings, committed, plan)
        if plan.batches:
            with spark_errors(settings):
                _run_batches(settings, plan, committed, session)
        if committed.compared < committed.last or (gold and committed.golden < committed.last):
            with spark_errors(settings):
                derive(settings, committed, session, gold=gold)
        if len(committed.loose) >= state.SNAPSHOT_EVERY:
            state.fold(settings.checkpoints, committed)
        return _totals(committed, plan, listing)


def _plan(settings: Settings, committed: State, listing: Listing, *, verify: bool) -> Plan:
    wrong = tables.damaged(settings.tables, committed, verify=verify)
    return make_plan(wrong, committed.new(listing.files), listing.files, committed.last)


def _forget(settings: Settings, committed: State, plan: Plan) -> None:
    for batch in plan.forget:
        tables.remove_batch(settings.tables, batch)
    left = tables.silver_islands(settings.tables)
    state.forget(settings.checkpoints, committed, plan.forget, left)


def _run_batches(
    settings: Settings, plan: Plan, committed: State, session: "Callable[[], SparkSession]"
) -> None:
    from pipeline.run_batch import run_batch

    tables.remove_batch(settings.tables, committed.last + 1)  # what a kill left of it
    for batch in plan.batches:
        committed.add(run_batch(session, settings, batch, committed))


@contextmanager
def spark_errors(settings: Settings) -> Iterator[None]:
    """Raise JobError, in one line, for whatever Spark raises."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise JobError(f"{JAVA_ENDED} (Spark's log: {settings.spark_log})") from error
    except (PySparkException, Py4JError) as error:
        raise JobError(f"{cause(str(error))} (Spark's log: {settings.spark_log})") from error


def _totals(committed: State, plan: Plan, listing: Listing) -> Totals:
    bronze, silver, quarantined = (
        committed.rows(table) for table in ("bronze", "silver", "quarantine")
    )
    read = sum(kind(name) == "records" for batch in plan.batches for name in batch.files)
    return Totals(bronze, silver, quarantined, committed.reasons, read, listing.left)
