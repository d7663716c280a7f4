"""One run: bring the tables up to the landing folder and say what is in them."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pipeline.batches.plan import Batch, Files, Plan, make_plan
from pipeline.errors import JobError, PipelineError
from pipeline.landing.listing import Listing, kind, list_landing
from pipeline.operation.begin import begin, recount
from pipeline.operation.derive import derive, is_outdated
from pipeline.operation.full_disk import ERRORS, working
from pipeline.operation.runs import note_run
from pipeline.operation.spark_errors import cause
from pipeline.records.declared import NOTHING, Declared
from pipeline.settings import Settings, Watch, unwatched
from pipeline.tables import change_feed, delta, on_disk, silver_numbers, state
from pipeline.tables.damage import Doubled, damaged, doubled
from pipeline.tables.state import State

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pipeline.operation.lineage import Lineage

REMAPPED = (
    "the mappings of --readings changed: messages that are in the tables stay as they were read; "
    "`tidegate-pipeline reprocess` reads them again"
)
JAVA_ENDED = "Spark's Java process ended (out of memory?)"


READS = 3
"""How often a reader begins, while others put new files in the place of those that it reads."""
_GONE = "FileNotFoundError"
"""What the error of a task says that finds no file."""

T = TypeVar("T")


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
    doubled: Doubled | None = None
    """Keys that silver has more than once, if it was asked to verify."""
    remapped: bool = False
    """Whether silver has rows of runs before whose mappings were others."""


@dataclass(frozen=True)
class How:
    """How a run is done, and who hears of it."""

    verify: bool = False
    """Whether the rows of every batch are counted first, and keys looked for that came twice."""
    gold: bool = True
    """Whether the gold tables are made, too; a later run makes what is left."""
    assets: "pa.Table | None" = None
    """What people call gateways, and their time zones (gold.assets.ASSETS)."""
    queries: Mapping[str, str] = field(default_factory=dict)
    """Gold tables of one's own, by name (gold.queries)."""
    declared: Declared = NOTHING
    """Which payloads are readings, and what is expected of them."""
    stopping: Callable[[], bool] = lambda: False
    """Asked between batches: whether the run shall end with what it has committed."""
    watch: Watch = unwatched
    """Told what is going on, and how much of it is done."""
    change_feed: bool = False
    """Whether the tables get the change data feed (tables.change_feed)."""
    lineage: "Lineage | None" = None
    """Who gets reports of the run (operation.lineage)."""


PLAINLY = How()


def make_how(
    *,
    gold: bool = True,
    verify: bool = False,
    readings: Path | None = None,
    assets: Path | None = None,
    gold_sql: Path | None = None,
    change_feed: bool = False,
    openlineage: str | None = None,
) -> How:
    """Return how a run is done, with the content of the files and of the folder of queries."""
    from pipeline.gold.assets import read_assets
    from pipeline.gold.queries import read_queries

    lineage = None
    if openlineage is not None:
        from pipeline.operation.lineage import Lineage

        lineage = Lineage(openlineage)
    declared = NOTHING
    if readings is not None:
        from pipeline.records.declarations import read_declared

        declared = read_declared(readings)
    return How(
        gold=gold,
        verify=verify,
        assets=None if assets is None else read_assets(assets),
        queries={} if gold_sql is None else read_queries(gold_sql),
        declared=declared,
        change_feed=change_feed,
        lineage=lineage,
    )


def run_once(
    settings: Settings, open_session: "Callable[[], SparkSession]", how: How = PLAINLY
) -> Totals:
    """Read every landing file that is not in the tables yet; return what they then hold.

    Spark is started only when there are records to read, or keys to verify. Raises PipelineError
    when it cannot begin, JobError when Spark gives up or a disk is full; batches that were
    committed by then stay.
    """
    folder = settings.tables.folder
    if folder is not None and folder.is_file():
        raise PipelineError(f"tables folder {folder} is a file, not a folder")
    if "%" in settings.tables.name:  # the library takes it for an escape, whatever one writes
        raise PipelineError(f"tables folder {settings.tables} has a % in its path: rename it")
    with working(settings):
        begun = time.monotonic()
        committed, listing, plan = _prepare(settings, verify=how.verify)
        if how.change_feed:
            change_feed.turn_on(settings.tables)
        remapped = note_mapping(committed, how.declared)
        before = _counts(committed)
        done: list[Batch] = []
        error: Exception | None = None
        twice = None
        session = cache(open_session)
        try:
            _bring_up(settings, plan, committed, session, how, done)
            twice = _doubled(settings, session) if how.verify else None
            if len(done) == len(plan.batches):
                state.note_settled(settings.tables, listing.settled)
        except ERRORS as failed:
            error = failed
        totals = replace(_totals(committed, done, listing), doubled=twice, remapped=remapped)
        try:
            note_run(settings.tables, begun, totals.files, before, _counts(committed), error)
        finally:
            if error is not None:  # it goes before what the note met, on a full disk for instance
                raise error
        return totals


def _prepare(settings: Settings, *, verify: bool) -> tuple[State, Listing, Plan]:
    """Return what was committed and what is to be done; what a kill left is tidied up."""
    root = settings.tables
    settled = {} if verify else state.settled(root)
    listing = list_landing(settings.landing, settled)
    committed, newest = begin(settings, verify=verify)
    wrong = damaged(root, committed, newest, verify=verify)
    if wrong and settled:
        listing = list_landing(settings.landing)
    fresh = committed.new(listing.files)
    plan = make_plan(wrong, fresh, listing.files, committed.last, settings.batch)
    if plan.forget:
        committed.forget(plan.forget)
        on_disk.remove_batches(root, plan.forget)
    recount(root, committed)
    _note_reread(committed, fresh)
    return committed, listing, plan


def _note_reread(committed: State, fresh: Files) -> None:
    """Note it before a file is read that a batch has read already, as it was before."""
    if fresh and not committed.reread and committed.knows_any(fresh):
        committed.reread = True
        committed.note()


def note_mapping(committed: State, declared: Declared) -> bool:
    """Note by which mappings payloads are read; say whether there are rows by other ones."""
    before, now = committed.mapped, declared.mapped()
    if before == now:
        return False
    committed.mapped = now
    committed.note()
    return before is not None and committed.rows["silver"] > 0


def _bring_up(
    settings: Settings,
    plan: Plan,
    committed: State,
    session: "Callable[[], SparkSession]",
    how: How,
    done: list[Batch],
) -> None:
    """Do the batches, then what is made from silver; `done` gets each batch that is committed."""
    if plan.batches or _is_behind(settings, committed, how):
        with spark_errors(settings):
            _run_batches(settings, plan, committed, session, how, done)
            _derive(settings, committed, session, how)
    if done:
        state.tidy(settings.tables)
        silver_numbers.tidy(settings.tables, state.FILES_MANY)


def _doubled(settings: Settings, session: "Callable[[], SparkSession]") -> Doubled | None:
    if not delta.has_rows(settings.tables / "silver"):
        return None
    with spark_errors(settings):
        return doubled(session(), settings.tables)


def _is_behind(settings: Settings, committed: State, how: How) -> bool:
    """Say whether what is made from silver lacks rows or other times, or is to be another now."""
    gold = committed.golden < committed.last or bool(committed.corrected)
    if committed.compared < committed.last or (how.gold and gold):
        return True
    return how.gold and committed.golden > 0 and is_outdated(settings, how)


def _derive(
    settings: Settings, committed: State, session: "Callable[[], SparkSession]", how: How
) -> None:
    if _is_behind(settings, committed, how) and not how.stopping():
        derive(settings, committed, session, how)


def _run_batches(
    settings: Settings,
    plan: Plan,
    committed: State,
    session: "Callable[[], SparkSession]",
    how: How,
    done: list[Batch],
) -> None:
    if not plan.batches:
        return
    from pipeline.batches.run_batch import run_batch
    from pipeline.batches.sizes import rows_of

    whole = sum(_size(batch) for batch in plan.batches)
    for batch in plan.each(lambda files: rows_of(session, settings, files), settings.batch.rows):
        if how.stopping():
            return
        how.watch("landing files", sum(map(_size, done)), whole)
        committed.add(run_batch(session, settings, batch, committed, how.declared.mapping))
        done.append(batch)
    how.watch("landing files", whole, whole)


def _size(batch: Batch) -> int:
    return sum(mark.size for mark in batch.files.values())


def read_only(settings: Settings, work: Callable[[], T]) -> T:
    """Return what work on the tables gives, which holds up nobody.

    Files may go while it reads them, when `compact` joins them; then it begins again.
    """
    for _ in range(READS - 1):
        try:
            with spark_errors(settings):
                return work()
        except JobError as error:
            if _GONE not in str(error.__cause__):
                raise
        except FileNotFoundError:
            continue
    with spark_errors(settings):
        return work()


@contextmanager
def spark_errors(settings: Settings) -> Iterator[None]:
    """Raise JobError, in one line, for whatever Spark raises."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise JobError(f"{JAVA_ENDED}{_log(settings)}") from error
    except (PySparkException, Py4JError) as error:
        raise JobError(f"{cause(str(error))}{_log(settings)}") from error


def _log(settings: Settings) -> str:
    """Return where Spark's log is; a session of somebody else has it elsewhere."""
    return f" (Spark's log: {settings.spark_log})" if settings.spark_log.exists() else ""


def _counts(committed: State) -> dict[str, int]:
    return {table: committed.rows[table] for table in state.TABLES}


def _totals(committed: State, done: list[Batch], listing: Listing) -> Totals:
    rows = _counts(committed)
    read = sum(kind(name) == "records" for batch in done for name in batch.files)
    return Totals(
        rows["bronze"], rows["silver"], rows["quarantine"], committed.reasons, read, listing.left
    )
