"""How far a numbered message came on its way to the fleet."""

from gateway.storage.history.history import RecordedRule
from gateway.storage.history.outcome_reader import Number
from gateway.storage.history.reader import HistoryReader
from gateway.storage.history.row import Numbered
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.storage.outbox.outcome import Outcome


def outcome(
    history: HistoryReader,
    number: Number,
    numbered: Numbered | None,
    rules: dict[int, RecordedRule],
) -> list[str]:
    """Return lines on what became of it; `numbered` is None where the history has no row of it."""
    if numbered is None:
        return [_end(history, number)]
    last = numbered.results[-1]
    if last.result is not True:
        return ["filtered: no rule of the stream took it"]
    lane = rules[last.place].lane if last.place in rules else "unknown"
    taken = f"taken by rule {last.place}, lane {lane}, committed with its row of the outbox"
    return [taken, _end(history, number)]


def _end(history: HistoryReader, number: Number) -> str:
    outcomes = history.outcomes
    waiting = outcomes.waiting(number)
    if waiting is not None:
        return _waits(history, waiting)
    refusal = outcomes.refusal(number)
    if refusal is not None:
        return f"refused by the fleet with 0x{refusal:02X}"
    told = outcomes.ledger(number)
    if told is None:
        return "left the outbox: the fleet has acknowledged it, or its end in the ledger"
    if told[0] == Outcome.DELIVERED:
        return "left the outbox: the fleet has acknowledged it"
    return f"left the outbox: {told[0]}, {told[1]}" if told[1] else f"left the outbox: {told[0]}"


def _waits(history: HistoryReader, row: OutboxRow) -> str:
    text = f"waits in the outbox, lane {row.lane}: the fleet has not acknowledged it yet"
    if history.earlier_epoch(row.epoch):
        return f"{text}; it waited over a restart and goes up with resent = 1"
    return f"{text}; it goes up with resent = 1 if it was sent before or waited for the link"
