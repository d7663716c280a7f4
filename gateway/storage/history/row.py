"""A message of the history with the results of the uplink rules, as a row of SQLite."""

import json
from typing import Any, NamedTuple

from gateway.mqtt.message import Message
from gateway.storage.engine.message_columns import MESSAGE_COLUMNS, message_values, to_message
from gateway.storage.outbox.row import OutboxRow, row_size

HISTORY_COLUMNS = ("id", "start", "rules", "payload_is_json", "epoch", *MESSAGE_COLUMNS)


class RuleResult(NamedTuple):
    """The result of one rule for a message that reached it.

    `place` is the rule's index in the configuration, `result` is None for NULL, and `overflow`
    means that nothing could be remembered of the topic (where-language, section 13).
    """

    place: int
    rule_epoch: int
    result: bool | None
    overflow: bool = False


class Numbered(NamedTuple):
    """The number of a message in a stream, with the rules that it reached there."""

    stream: str
    number: int
    results: tuple[RuleResult, ...]


class HistoryRow(NamedTuple):
    """One message as the gateway accepted it in its `start`, and its numbers of that epoch."""

    id: int
    start: int
    epoch: str
    message: Message
    numbers: tuple[Numbered, ...]


def size_of(message: Message) -> int:
    """Return the bytes that the message counts for in the history."""
    return row_size(OutboxRow(message, "", "", 0, ""))


def to_history_columns(row: HistoryRow) -> tuple[object, ...]:
    """Return the values of HISTORY_COLUMNS."""
    is_json = row.message.payload_is_json()
    rules = json.dumps([_numbered(each) for each in row.numbers], separators=(",", ":"))
    return (row.id, row.start, rules, is_json, row.epoch, *message_values(row.message))


def from_history_columns(values: tuple[Any, ...]) -> HistoryRow:
    """Return the row of values from `to_history_columns`."""
    identifier, start, rules, _, epoch, *columns = values
    message = to_message(columns)
    numbers = tuple(
        Numbered(stream, number, tuple(RuleResult(*result) for result in results))
        for stream, number, results in json.loads(rules)
    )
    return HistoryRow(identifier, start, epoch, message, numbers)


def _numbered(numbered: Numbered) -> list[object]:
    results = [
        [each.place, each.rule_epoch, each.result, each.overflow] for each in numbered.results
    ]
    return [numbered.stream, numbered.number, results]
