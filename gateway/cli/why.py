"""`tidegate why`: what rules, fleet and subscribers made of one message, asked again."""

from datetime import datetime
from pathlib import Path

from gateway.cli.where_history import no_history
from gateway.cli.where_message import read_message
from gateway.cli.why_fleet import outcome
from gateway.cli.why_rules import present_rules, recorded_rules
from gateway.cli.why_subscribers import subscribers
from gateway.errors import TidegateError
from gateway.mqtt.message import Message
from gateway.storage.history.outcome_reader import Number
from gateway.storage.history.reader import HistoryReader, open_history
from gateway.storage.outbox.row import message_of_row

_ANSWERS = {1: "PUBACK", 2: "PUBREC"}


def why(number: Number, data: Path) -> int:
    """Print why the message of this number did or did not reach fleet and subscribers.

    Returns 0, or 3 without a history. Raises TidegateError if neither the history nor the outbox
    holds the message.
    """
    with open_history(data) as history:
        if history is None or not history.on:
            return no_history()
        report = _of_number(history, number)
    for line in report:
        print(line)
    return 0


def why_not_sent(file: Path, data: Path) -> int:
    """Print the same for the message that `file` describes, as if it came now; return 0 or 3."""
    message = read_message(file)
    with open_history(data) as history:
        if history is None or not history.on:
            return no_history()
        report = [
            f"{_what(message)}: what would become of it now",
            *present_rules(history, message),
        ]
        report += subscribers(history, message, None)
    for line in report:
        print(line)
    return 0


def _of_number(history: HistoryReader, number: Number) -> list[str]:
    row = history.find(number)
    if row is None:
        return _of_outbox(history, number)
    (numbered,) = (each for each in row.numbers if each.stream == number[1])
    return [
        *_headline(row.message),
        *recorded_rules(history, row, numbered),
        *outcome(history, number, numbered, history.rules(row.start)),
        *subscribers(history, row.message, row.id),
    ]


def _of_outbox(history: HistoryReader, number: Number) -> list[str]:
    waiting = history.outcomes.waiting(number)
    if waiting is None:
        name = ".".join(map(str, number))
        raise TidegateError(f"{name} is not in the history: too old, or never given")
    message = message_of_row(waiting)
    return [
        *_headline(message),
        "older than the history: rules and subscriptions are those of now",
        *present_rules(history, message),
        *outcome(history, number, None, {}),
        *subscribers(history, message, None),
    ]


def _headline(message: Message) -> list[str]:
    when = datetime.fromtimestamp((message.received_at or 0) / 1000).astimezone()
    answer = _ANSWERS.get(message.qos)
    left = f"its {answer} was free to leave" if answer else "QoS 0 has no acknowledgement"
    return [
        f"{_what(message)}, accepted {when:%Y-%m-%d %H:%M:%S.%f}",
        f"on disk: {left}",
    ]


def _what(message: Message) -> str:
    retain = ", RETAIN" if message.retain else ""
    sender = f", from {message.client_id!r}" if message.client_id is not None else ""
    return f"{message.topic}, {len(message.payload)} bytes, QoS {message.qos}{retain}{sender}"
