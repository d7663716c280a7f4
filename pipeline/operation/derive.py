"""What is made from silver: corrected times, completeness and gold, for what batches touched."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline.clock.spans import Epoch
from pipeline.settings import Settings
from pipeline.tables import islands
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

    if state.compared < state.last or not state.compared:
        how.watch("ledger", 0, 1)
        commits = since(state, state.compared)
        corrected = _corrected(settings, state, session, commits)
        touched = _streams(commits)
        ledger_tables.make(settings.tables, state.islands, touched)
        gateways = None if touched is None else {key[0] for key in touched}
        boards.make(settings.tables, state.islands, gateways)
        state.compared = state.last
        state.corrected = tuple(sorted(corrected.union(state.corrected)))
        note_derived(settings.checkpoints, state)
        how.watch("ledger", 1, 1)
    if how.gold:
        gold_tables.create(settings.tables)
        dates = _dates(settings, state)
        if assets.moved(settings.tables, how.assets) or expected.changed(
            settings.tables, how.declared
        ):
            dates = gold_tables.all_dates(settings.tables, state.marks)
            state.corrected = tuple(sorted(dates))  # for the next run, if this one is killed
            note_derived(settings.checkpoints, state)
        assets.update(settings.tables, how.assets)
        expected.note(settings.tables, how.declared)
        state.made = gold_tables.make(
            session,
            settings.tables,
            dates,
            state.marks,
            state.made,
            assets=how.assets,
            queries=how.queries,
            declared=how.declared,
            watch=how.watch,
        )
        state.golden, state.corrected = state.last, ()
        note_derived(settings.checkpoints, state)


def _dates(settings: Settings, state: State) -> set[str]:
    """Return the event dates that were touched since the gold tables were made."""
    from pipeline.gold.make import all_dates

    commits = since(state, state.golden)
    if commits is None:
        return all_dates(settings.tables, state.marks)
    return {date for commit in commits for date in commit.dates}.union(state.corrected)


def _corrected(
    settings: Settings,
    state: State,
    session: "Callable[[], SparkSession]",
    commits: list[Commit] | None,
) -> set[str]:
    """Correct rows that came in an earlier batch than the clock records of their epochs."""
    from pipeline.clock.correct import correct

    if commits is None:
        epochs = {(row["gateway_id"], row["epoch"]) for row in _clocks(settings)}
    else:
        epochs = late_clocks(commits, state.islands)
    if not epochs or not state.rows("silver"):
        return set()
    return correct(session, settings.tables, state.islands, epochs)


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
    from pipeline.tables import delta

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
