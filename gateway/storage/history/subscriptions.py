"""The subscriptions that existed when a message of the history was accepted."""

import sqlite3
from typing import NamedTuple

from gateway.routing.subscriptions.subscription import Subscription
from gateway.storage.engine.database import Database
from gateway.storage.engine.many_rows import insert_statement
from gateway.storage.engine.writer import Writer
from gateway.storage.history.history import History

ENDED_SUBSCRIPTIONS = 10_000
"""Ended subscriptions that are stored for the messages of their time; the oldest are deleted."""

TRIM_SUBSCRIPTIONS = 64
"""Ends of subscriptions between two deletions of unneeded rows."""

COMMIT_WITHIN = 1.0
"""Seconds until pending rows are written, if no message of the history is earlier."""

COLUMNS = ("client_id", "topic_filter", "qos", "no_local", "expression", "identity")

_INSERT = insert_statement("history_subscriptions", ("id", "since", *COLUMNS))
_UNTIL = "UPDATE history_subscriptions SET until = ? WHERE id = ?"
_END_ALL = "UPDATE history_subscriptions SET until = ? WHERE until IS NULL"
_DELETE_ALL = "DELETE FROM history_subscriptions"
_LAST = "SELECT coalesce(max(id), 0) FROM history_subscriptions"
_TRIM_AGE = (
    "DELETE FROM history_subscriptions WHERE until < coalesce((SELECT min(id) FROM history), ?)"
)
_TRIM = (
    "DELETE FROM history_subscriptions WHERE until < (SELECT until FROM history_subscriptions"
    " WHERE until IS NOT NULL ORDER BY until DESC LIMIT 1 OFFSET ?)"
)


class RecordedSubscription(NamedTuple):
    """A subscription of the history; without `identity` its `$where` saw no publisher."""

    client_id: str
    topic_filter: str
    qos: int
    no_local: bool
    expression: str | None
    identity: bool


class HistorySubscriptions:
    """Records when subscriptions begin and end, in numbers of the history's rows.

    A subscription is known by the number that the router gave it. Beginnings and ends are held in
    memory until the writer closes a batch. So no answer waits for them, and a subscription that
    ended before is never written. The router bounds how many there are.
    """

    def __init__(self, database: Database, writer: Writer, history: History) -> None:
        self._database = database
        self._writer = writer
        self._history = history
        self._last = 0
        self._ends_since_trim = 0
        self._present: dict[int, tuple[int, int]] = {}  # row id and since, by the router's number
        self._begun: dict[int, tuple[object, ...]] = {}  # rows not written yet, by id
        self._ended: list[tuple[int, int]] = []  # until and row id, not written yet

    async def begin(self) -> None:
        """Mark those of an earlier run as ended, or delete them if history is off.

        The writer retries this until the disk accepts it: a temporary error must not end the start.
        Raises sqlite3.Error.
        """
        last, bound = self._history.last, ENDED_SUBSCRIPTIONS
        self._last = await self._database.writer.query(_LAST, (), _number)
        statements: list[tuple[str, tuple[object, ...]]] = [(_DELETE_ALL, ())]
        if self._history.keep:
            statements = [(_END_ALL, (last,)), (_TRIM_AGE, (last + 1,)), (_TRIM, (bound,))]
        for statement, row in statements:
            self._writer.add(statement, row)
        self._writer.hand_over()
        self._writer.before_batch.append(self._add_rows)

    def end(self) -> None:
        """Add the deletion of all to the batch: the history is off."""
        self._present.clear()
        self._begun.clear()
        self._ended.clear()
        self._writer.add(_DELETE_ALL, ())

    def add(self, number: int, subscription: Subscription) -> None:
        """Store the beginning of a subscription, unless it is known."""
        if number in self._present:
            return
        self._last += 1
        since, where = self._history.last, subscription.where
        self._begun[self._last] = (
            self._last,
            since,
            subscription.subscriber.client_id,
            subscription.topic_filter,
            subscription.qos,
            subscription.no_local,
            None if where is None else where.text,
            where is None or where.identity,
        )
        self._present[number] = self._last, since
        self._writer.schedule_commit(COMMIT_WITHIN)

    def discard(self, number: int) -> None:
        """Store the end of a subscription; one that met no message has no row."""
        row, since = self._present.pop(number, (0, 0))
        if self._history.last == since and self._begun.pop(row, ()):
            return
        if row:
            self._ended.append((self._history.last, row))
            self._writer.schedule_commit(COMMIT_WITHIN)

    def _add_rows(self) -> None:
        if not self._begun and not self._ended:  # as before most commits
            return
        for row in self._begun.values():
            self._writer.add(_INSERT, row, COMMIT_WITHIN)
        for row in self._ended:
            self._writer.add(_UNTIL, row, COMMIT_WITHIN)
        self._ends_since_trim += len(self._ended)
        self._begun.clear()
        self._ended.clear()
        if self._ends_since_trim >= TRIM_SUBSCRIPTIONS:
            self._ends_since_trim = 0
            self._writer.add(_TRIM_AGE, (self._history.last + 1,), COMMIT_WITHIN)
            self._writer.add(_TRIM, (ENDED_SUBSCRIPTIONS,), COMMIT_WITHIN)


def _number(cursor: sqlite3.Cursor) -> int:
    return int(cursor.fetchone()[0])
