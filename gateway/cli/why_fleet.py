"""How far a numbered message came on its way to the fleet."""

from gateway.storage.history.history import RecordedRule
from gateway.storage.history.outcome_reader import Number
from gateway.storage.history.reader import HistoryReader
from gateway.storage.history.row import Numbered
from gateway.storage.outbox.row import (
    OutboxRow,
    Outcome,
)


def outcome(
    history: HistoryReader,
    number: Number,
    numbered: Numbered | None,
    rules: dict[int, RecordedRule],
) -> list[str]:
    """Return lines on what became of it; `numbered` is None where the history has no row of it."""
    if numbered is None:
        return _ends(history, number)
    takers = [each.place for each in numbered.results if each.result is True]
    if not takers:
        return ["filtered: no rule of the stream took it"]
    lane = rules[takers[0]].lane if takers[0] in rules else "unknown"
    places = ", ".join(map(str, takers))
    taken = f"taken by rule {places}, lane {lane}, committed with its row of the outbox"
    return [taken, *_ends(history, number)]


def _ends(history: HistoryReader, number: Number) -> list[str]:
    outcomes = history.outcomes
    waiting, uplinks = outcomes.waiting(number), outcomes.uplinks(number)
    told = [_end(*each) for each in outcomes.ledger(number)]
    if waiting is not None:
        told.append(_waits(history, waiting) + (f" (uplink {uplinks})" if uplinks else ""))
        return told
    rejection = outcomes.rejection(number)
    if rejection is not None:
        name = ".".join(map(str, number))
        return [f"rejected ({rejection}): `tidegate uplink rejected show {name}` has it"]
    return told or ["left the outbox: the fleet has acknowledged it, or its end in the ledger"]


def _end(uplink: str, outcome: str, reason: str) -> str:
    where = f"uplink {uplink}" if uplink else "left the outbox"
    if outcome == Outcome.DELIVERED:
        return f"{where}: the fleet has acknowledged it"
    return f"{where}: {outcome}, {reason}" if reason else f"{where}: {outcome}"


def _waits(history: HistoryReader, row: OutboxRow) -> str:
    text = f"waits in the outbox, lane {row.lane}: the fleet has not acknowledged it yet"
    if history.earlier_epoch(row.epoch):
        return f"{text}; it waited over a restart and goes up with resent = 1"
    return f"{text}; it goes up with resent = 1 if it was sent before or waited for the link"
