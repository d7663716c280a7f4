"""`tidegate where test` and `tidegate why`: questions to the gateway's history."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from gateway.app.query.why import NO_HISTORY as NO_HISTORY_TEXT
from gateway.app.query.why_report import report_of_message, report_of_number, report_of_topic
from gateway.cli.where.message import read_message
from gateway.clock import Clock
from gateway.mqtt.message import Message
from gateway.storage.history.outcome_reader import Number
from gateway.storage.history.reader import HistoryReader, open_history
from gateway.where.compile import COMPILER
from gateway.where.evaluation.closures import topic_matches
from gateway.where.language.expression import And, Expression, TopicMatches
from gateway.where.rule import RuleWhere
from gateway.where.sqlite.to_sqlite import to_sqlite

NO_HISTORY = 3
"""Exit status without a history."""

BARS = 12
"""Lines of the histogram."""

BAR_WIDTH = 40
"""Characters of its longest bar."""

UNITS = ("B", "KiB", "MiB", "GiB")


@dataclass(slots=True)
class Outcome:
    """The result for the messages of a window in time (ms since 1970)."""

    begin: int
    end: int
    messages: int = 0
    size: int = 0
    passed_size: int = 0
    passed_times: list[int] = field(default_factory=list)

    def silence(self) -> tuple[int, int]:
        """Return the longest time in which nothing passed, as begin and end."""
        times = [self.begin, *sorted(self.passed_times), self.end]
        return max(pairwise(times), key=lambda pair: pair[1] - pair[0])

    def histogram(self) -> list[tuple[int, int]]:
        """Return the begin of BARS equal parts of the window, each with the number that passed."""
        span = max(self.end - self.begin, 1)
        counts = [0] * BARS
        for time in self.passed_times:
            counts[min(max(time - self.begin, 0) * BARS // span, BARS - 1)] += 1
        return [(self.begin + index * span // BARS, count) for index, count in enumerate(counts)]


def no_history() -> int:
    """Report that history is off; return NO_HISTORY."""
    print(f"tidegate: {NO_HISTORY_TEXT}", file=sys.stderr)
    return NO_HISTORY


def try_on_history(where: RuleWhere, topic_filter: str, seconds: int, data: Path) -> int:
    """Print what `where` passes of the last `seconds`; return 0, or 3 without a history."""
    now = Clock().wall_ms()
    with open_history(data) as history:
        if history is None or not history.on:
            return no_history()
        earliest = now - 1000 * seconds
        begin = max(earliest, min(history.oldest() or now, now))
        outcome = try_in_sqlite(where.expression, topic_filter, history, begin, now)
        if outcome is None:
            messages = (row.message for row in history.since(begin))
            outcome = try_on(where, topic_filter, messages, begin, now)
    for line in lines(outcome):
        print(line)
    if begin > earliest:
        print(f"the history begins at {_time(begin)}")
    return 0


def try_in_sqlite(
    expression: Expression, topic_filter: str, history: HistoryReader, begin: int, end: int
) -> Outcome | None:
    """Let SQLite filter; None if it cannot, as for functions with memory."""
    reached = TopicMatches(topic_filter)
    passing = to_sqlite(And(operands=(reached, expression)))
    if passing.residual is not None:
        return None
    outcome = Outcome(begin, end)
    for _, size in history.sizes(begin, to_sqlite(reached)):
        outcome.messages += 1
        outcome.size += size
    for time, size in history.sizes(begin, passing):
        outcome.passed_size += size
        outcome.passed_times.append(time)
    return outcome


def try_on(
    where: RuleWhere, topic_filter: str, messages: Iterable[Message], begin: int, end: int
) -> Outcome:
    """Evaluate `where` on each message of the topic filter, with an empty memory."""
    matches = topic_matches(TopicMatches(topic_filter), COMPILER)
    outcome = Outcome(begin, end)
    for message in messages:
        if not matches(message):
            continue
        size = len(message.payload) + len(message.topic.encode())
        outcome.messages += 1
        outcome.size += size
        result = where.evaluate(message)
        where.record(message, result)
        if result is True:
            outcome.passed_size += size
            outcome.passed_times.append(message.received_at or 0)
    return outcome


def lines(outcome: Outcome) -> list[str]:
    """Return the report, times in the local zone."""
    passed = len(outcome.passed_times)
    since, until = outcome.silence()
    bars = outcome.histogram()
    highest = max(count for _, count in bars) or 1
    return [
        f"messages: {passed} of {outcome.messages} would pass ({_share(passed, outcome.messages)})",
        (
            f"bytes: {_size(outcome.passed_size)} of {_size(outcome.size)}"
            f" ({_share(outcome.passed_size, outcome.size)})"
        ),
        f"longest silence: {_duration(until - since)}, from {_time(since)} to {_time(until)}",
        *(
            f"{_time(begin)} {'#' * -(-count * BAR_WIDTH // highest):<{BAR_WIDTH}} {count}"
            for begin, count in bars
        ),
    ]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def _size(count: int) -> str:
    amount, place = float(count), 0
    while amount >= 1024 and place < len(UNITS) - 1:
        amount, place = amount / 1024, place + 1
    return f"{count} B" if place == 0 else f"{amount:.1f} {UNITS[place]}"


def _duration(milliseconds: int) -> str:
    seconds = milliseconds // 1000
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return (
        f"{hours} h {minutes:02} m {seconds % 60:02} s"
        if hours
        else f"{minutes} m {seconds % 60:02} s"
    )


def _time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000).astimezone():%Y-%m-%d %H:%M:%S}"


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
