"""One run: bring the tables up to the landing folder and say what is in them."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline import staging, tables
from pipeline.checkpoint import Commit, forget_commit, locked, read_commits
from pipeline.errors import JobError, PipelineError
from pipeline.landing import Listing, list_landing
from pipeline.plan import Plan, make_plan
from pipeline.run_batch import run_batch
from pipeline.settings import Settings
from pipeline.spark_errors import cause


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


def run_once(settings: Settings, open_session: Callable[[], SparkSession]) -> Totals:
    """Read every landing file that is not in the tables yet; return what they then hold.

    Spark is started only when there is something to do. Raises PipelineError when it cannot
    begin, JobError when Spark gives up; batches that were committed by then stay.
    """
    _check_folder(settings.tables)
    with locked(settings.checkpoints):
        listing = list_landing(settings.landing)
        settings.tables.mkdir(parents=True, exist_ok=True)
        staging.clear(settings.tables)
        tables.create(settings.tables)
        commits = read_commits(settings.checkpoints)
        plan = _plan(settings, commits, listing)
        _forget(settings, plan)
        if plan.batches:
            _run_batches(settings, plan, commits, open_session)
        return _totals(settings.tables, plan, listing)


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise PipelineError(f"tables folder {folder} is a file, not a folder")


def _plan(settings: Settings, commits: dict[int, Commit], listing: Listing) -> Plan:
    found = tables.rows_by_batch(settings.tables)
    return make_plan(commits, found, listing.files, partial(tables.landing_files, settings.tables))


def _forget(settings: Settings, plan: Plan) -> None:
    for batch in plan.forget:
        staging.discard(settings.tables, tables.batch_folders(settings.tables, batch))
        forget_commit(settings.checkpoints, batch)


def _run_batches(
    settings: Settings,
    plan: Plan,
    commits: dict[int, Commit],
    open_session: Callable[[], SparkSession],
) -> None:
    spark = open_session()
    done = {number: commit for number, commit in commits.items() if number not in plan.forget}
    with _spark_errors(settings):
        for batch in plan.batches:
            earlier = [commit for number, commit in done.items() if number < batch.number]
            done[batch.number] = run_batch(spark, settings, batch, earlier)


@contextmanager
def _spark_errors(settings: Settings) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise JobError(f"{cause(str(error))} (Spark's log: {settings.spark_log})") from error


def _totals(root: Path, plan: Plan, listing: Listing) -> Totals:
    rows = tables.rows_by_batch(root).values()
    bronze, silver, quarantined = (
        sum(counts[table] for counts in rows) for table in ("bronze", "silver", "quarantine")
    )
    files = sum(len(batch.files) for batch in plan.batches)
    return Totals(bronze, silver, quarantined, tables.reasons(root), files, listing.left)
