"""Writes the rows that messages of runs share."""

from collections.abc import Iterable

from gateway.storage import session_rows
from gateway.storage.gathering import Add
from gateway.storage.session_changes import Changes
from gateway.storage.session_journal import SessionJournal


def write_runs(add: Add, journal: SessionJournal, changes: Changes) -> None:
    """Add what writes new rows."""
    for row in changes.runs.values():
        add(session_rows.OWE_RUN, row.values(journal.number))


def write_begun_runs(add: Add, changed: Iterable[tuple[SessionJournal, Changes]]) -> None:
    """Add what writes of which rows a part is gone, and deletes those of which nothing is left.

    Belongs before what writes deliveries: one that was of a run may get the place of its row.
    """
    for journal, changes in changed:
        for row in changes.begun_runs.values():
            add(session_rows.PART_OF_RUN, row.part_values(journal.number))
        for first, last in joined(changes.gone_runs):
            add(session_rows.DONE, (journal.number, first, last))


def joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges of numbers, those that follow upon each other as one, rising."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first == found[-1][1] + 1:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found
