"""The table `ledger`: its statements, and its rows as ranges."""

import sqlite3
from typing import Any

from gateway.storage.engine.connection import Row
from gateway.storage.ledger.range import LedgerRange, parse_reason
from gateway.storage.outbox.outcome import Outcome

INSERT = (
    "INSERT INTO ledger (epoch, stream, first, uplink, last, outcome, reason, id)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_THIS = "WHERE epoch = ? AND stream = ? AND first = ? AND uplink = ?"
UPDATE = f"UPDATE ledger SET last = ?, outcome = ?, reason = ? {_THIS}"  # noqa: S608 - fixed
DELETE = f"DELETE FROM ledger {_THIS}"  # noqa: S608 - fixed
TOTALS = "SELECT uplink, count(*), max(id) FROM ledger GROUP BY uplink"
PAGE = (
    "SELECT epoch, stream, first, uplink, last, outcome, reason, id FROM ledger"
    " WHERE (epoch, stream, first, uplink) > (?, ?, ?, ?) AND uplink = ? AND id <= ?"
    " ORDER BY epoch, stream, first LIMIT ?"
)
ADOPT = "UPDATE OR IGNORE ledger SET uplink = ? WHERE uplink IN ('', ?)"
FORGET = "DELETE FROM ledger WHERE uplink NOT IN (SELECT value FROM json_each(?))"

Key = tuple[str, str, int, str]

START: Key = ("", "", 0, "")
"""A key before all others."""


def key_of(each: LedgerRange) -> Key:
    """Return the primary key of a range."""
    return each.epoch, each.stream, each.first, each.uplink


def inserted(each: LedgerRange) -> Row:
    """Return the values for INSERT."""
    return (*key_of(each), each.last, each.outcome.value, each.reason, each.id)


def updated(each: LedgerRange) -> Row:
    """Return the values for UPDATE."""
    return (each.last, each.outcome.value, each.reason, *key_of(each))


def ranges(cursor: sqlite3.Cursor) -> list[LedgerRange]:
    """Return the rows of PAGE."""
    return [_range(values) for values in cursor]


def _range(values: tuple[Any, ...]) -> LedgerRange:
    epoch, stream, first, uplink, last, outcome, reason, identifier = values
    reasons = parse_reason(reason, last - first + 1)
    return LedgerRange(epoch, stream, first, last, Outcome(outcome), reasons, identifier, uplink)
