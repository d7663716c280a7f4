"""What is made from silver: corrected times, completeness and gold, for what batches touched."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline.clock.spans import Epoch
from pipeline.settings import Settings
from pipeline.tables import delta, islands
from pipeline.tables.state import Commit, State, note_derived, since

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.operation.once import How


def derive(
    settings: Settings, state: State, session: "Callable[[], SparkSession]", how: "How"
) -> None:
    """Bring what is made from silver up to it; a kill on the way leaves it to the next run.

    Everything is made anew for the streams and dates that new batches touched, and put in place
    of what was there, so doing it again gives the same.
    """
    from pipeline.gold import assets, expected
    from pipeline.gold import make as gold_tables
    from pipeline.ledger import boards
    from pipeline.ledger import make as ledger_tables

    def note(dates: set[str]) -> None:
        """Remember dates whose gold is to be made, in case that this run is killed."""
        if not dates.issubset(state.corrected):
            state.corrected = tuple(sorted(dates.union(state.corrected)))
            note_derived(settings.checkpoints, state)

    if state.compared < state.last or not state.compared:
        how.watch("ledger", 0, 1)
        commits = since(state, state.compared)
        _correct(settings, state, session, commits, note)
        touched = _streams(commits)
        ledger_tables.make(settings.tables, state.islands, touched, note)
        gateways = None if touched is None else {key[0] for key in touched}
        boards.make(settings.tables, state.islands, gateways)
        state.compared = state.last
        note_derived(settings.checkpoints, state)
        how.watch("ledger", 1, 1)
    if how.gold:
        outdated = is_outdated(settings, how)
        gold_tables.create(settings.tables)
        dates = _dates(settings, state)
        if outdated:
            dates = gold_tables.all_dates(settings.tables, state)
            note(dates)
        assets.update(settings.tables, how.assets)
        expected.note(settings.tables, how.declared)
        state.made = gold_tables.make(
            session,
            settings.tables,
            dates,
            state,
            state.made,
            assets=how.assets,
            queries=how.queries,
            declared=how.declared,
            reports=_reports(settings, state),
            watch=how.watch,
            note=note,
        )
        state.golden, state.corrected = state.last, ()
        note_derived(settings.checkpoints, state)


def is_outdated(settings: Settings, how: "How") -> bool:
    """Say whether gold was made with other expectations, kinds, time zones or `was`, or is gone."""
    from pipeline.gold import assets, expected

    if not delta.exists(settings.tables / expected.TABLE):
        return True
    return assets.moved(settings.tables, how.assets) or expected.changed(
        settings.tables, how.declared
    )


def _dates(settings: Settings, state: State) -> set[str]:
    """Return the event dates that were touched since the gold tables were made."""
    from pipeline.gold.make import all_dates

    commits = since(state, state.golden)
    if commits is None:
        return all_dates(settings.tables, state)
    return {date for commit in commits for date in commit.dates}.union(state.corrected)


def _reports(settings: Settings, state: State) -> dict[str, datetime]:
    """Return when the newest ledger of each gateway came that gold does not know of yet."""
    batches = range(state.golden + 1, state.last + 1)
    columns = ["gateway_id", "reported"]
    rows = delta.read_parts(settings.tables / "ledger", columns, "batch", batches)
    newest = rows.group_by("gateway_id").aggregate([("reported", "max")]).to_pylist()
    return {row["gateway_id"]: row["reported_max"] for row in newest if row["reported_max"]}


def _correct(
    settings: Settings,
    state: State,
    session: "Callable[[], SparkSession]",
    commits: list[Commit] | None,
    note: Callable[[set[str]], None],
) -> None:
    """Correct rows that came in an earlier batch than the clock records of their epochs."""
    from pipeline.clock.correct import correct

    if commits is None:
        epochs = {(row["gateway_id"], row["epoch"]) for row in _clocks(settings)}
    else:
        epochs = late_clocks(commits, state.islands)
    if epochs and state.rows("silver"):
        correct(session, settings.tables, state.islands, epochs, note)


def late_clocks(commits: list[Commit], known: pa.Table) -> set[Epoch]:
    """Return the epochs with rows in silver of earlier batches than their last clock record.

    `known` are silver's islands. The rows of that batch itself and of later ones got their times
    with the record.
    """
    later: Counter[Epoch] = Counter()
    timed: dict[Epoch, int] = {}
    for commit in reversed(commits):
        for island in commit.islands:
            later[island.gateway_id, island.epoch] += island.last - island.first + 1
        for epoch in commit.epochs:
            timed.setdefault(epoch, later[epoch])
    held: Counter[Epoch] = Counter()
    for island in islands.each(
        islands.of_epochs(known, pa.array([each for _, each in timed], pa.string()))
    ):
        held[island.gateway_id, island.epoch] += island.last - island.first + 1
    return {epoch for epoch, count in timed.items() if held[epoch] > count}


def _clocks(settings: Settings) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = delta.read(
        settings.tables / "clocks", ["gateway_id", "epoch"]
    ).to_pylist()
    return rows


def _streams(commits: list[Commit] | None) -> set[tuple[str, str, str]] | None:
    if commits is None:
        return None
    reported = {tuple(stream) for commit in commits for stream in commit.streams}
    arrived = {island[:3] for commit in commits for island in commit.islands}
    return {(gateway, epoch, stream) for gateway, epoch, stream in reported | arrived}
