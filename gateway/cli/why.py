"""`tidegate why`: explains the outcome of one message at rules, fleet and subscribers."""

from collections.abc import Callable
from pathlib import Path

from gateway.app.query.why_report import report_of_message, report_of_number, report_of_topic
from gateway.cli.where_history import no_history
from gateway.cli.where_message import read_message
from gateway.storage.history.outcome_reader import Number
from gateway.storage.history.reader import HistoryReader, open_history


def why(number: Number, data: Path) -> int:
    """Print why the message with this number did or did not reach fleet and subscribers.

    Returns 0, or 3 without a history. Raises TidegateError if neither the history nor the outbox
    has the message.
    """
    return _print(data, lambda history: report_of_number(history, number))


def why_last_of(topic: str, data: Path) -> int:
    """Print the same for the last message of a topic."""
    return _print(data, lambda history: report_of_topic(history, topic))


def why_not_sent(file: Path, data: Path) -> int:
    """Print the same for the message in `file`, as if it arrived now; return 0 or 3."""
    message = read_message(file)
    return _print(data, lambda history: report_of_message(history, message))


def _print(data: Path, report: Callable[[HistoryReader], list[str]]) -> int:
    with open_history(data) as history:
        if history is None or not history.on:
            return no_history()
        lines = report(history)
    for line in lines:
        print(line)
    return 0
