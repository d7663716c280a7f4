"""What is made from silver: corrected times, completeness and gold, for what batches touched."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from pipeline.clock.spans import Epoch
from pipeline.settings import Settings
from pipeline.tables import delta, on_disk, silver_numbers
from pipeline.tables.state import State

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
            state.note()

    if state.compared < state.last or not state.compared:
        how.watch("ledger", 0, 1)
        corrected = _correct(settings, state, session, note)
        touched = _streams(state)
        if touched is not None:  # gaps have the times of the rows around them
            touched |= {(gateway, epoch, "") for gateway, epoch in corrected}
        ledger_tables.make(settings.tables, touched, note)
        gateways = None if touched is None else {key[0] for key in touched}
        boards.make(settings.tables, gateways)
        state.compared = state.last
        state.note()
        how.watch("ledger", 1, 1)
    if how.gold:
        outdated = is_outdated(settings, how)
        gold_tables.create(settings.tables)
        dates = _dates(settings, state)
        if outdated:
            dates = gold_tables.all_dates(settings.tables)
            note(dates)
        assets.update(settings.tables, how.assets)
        expected.note(settings.tables, how.declared)
        state.made = gold_tables.make(
            session,
            settings.tables,
            dates,
            state.made,
            beside=gold_tables.Beside(
                how.assets, how.queries, how.declared, _reports(settings, state)
            ),
            watch=how.watch,
            note=note,
        )
        state.golden, state.corrected = state.last, ()
        state.note()


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

    if not state.golden:
        return all_dates(settings.tables)
    found = {str(day) for row in state.since(state.golden, ("dates",)) for day in row["dates"]}
    return found.union(state.corrected)


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
    note: Callable[[set[str]], None],
) -> set[Epoch]:
    """Correct rows that came in an earlier batch than the clock records of their epochs.

    Returns these epochs.
    """
    from pipeline.clock.correct import correct

    listed = (row["epochs"] for row in state.since(state.compared, ("epochs",)))
    epochs = {(each["gateway_id"], each["epoch"]) for found in listed for each in found}
    if epochs and state.rows["silver"]:
        correct(session, settings.tables, epochs, note)
        if not state.trimmed:  # else silver lacks numbers that it had
            found = on_disk.silver_islands(settings.tables, epochs)
            silver_numbers.replace(settings.tables, epochs, found)
    return epochs


def _streams(state: State) -> set[tuple[str, str, str]] | None:
    """Return the streams that were touched since they were compared, None for all of them."""
    if not state.compared:
        return None
    listed = (row["streams"] for row in state.since(state.compared, ("streams",)))
    return {
        (each["gateway_id"], each["epoch"], each["stream"]) for found in listed for each in found
    }
