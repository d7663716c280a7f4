"""What the uplink rules said of a message, and each part of what they asked."""

from collections.abc import Iterator

from gateway.cli.where_explain import tree
from gateway.mqtt.message import Message
from gateway.storage.history.history import RecordedRule
from gateway.storage.history.reader import HistoryReader
from gateway.storage.history.row import HistoryRow, Numbered, RuleResult
from gateway.where.compile import COMPILER
from gateway.where.evaluation.predicates import topic_matches
from gateway.where.explain import Explanation, explain
from gateway.where.language.expression import TopicMatches
from gateway.where.language.spelling import spell_value

Earlier = list[tuple[Message, bool]]
"""Messages that a rule remembers, oldest first, each with whether it was forwarded."""


def recorded_rules(history: HistoryReader, row: HistoryRow, numbered: Numbered) -> Iterator[str]:
    """Give lines for each rule that was asked when the message came."""
    rules = history.rules(row.start)
    for result in numbered.results:
        rule = rules.get(result.place)
        if rule is None:  # its start is older than what the history knows of rules
            yield f"rule {result.place}: {spell_value(result.result)}"
            continue
        yield f"rule {result.place} on {rule.topic}: {spell_value(result.result)}"
        if rule.expression is not None:
            earlier = _earlier(history.of_topic(row.message.topic, row.id), result.rule_epoch)
            explanation = explain(rule.expression, row.message, earlier)
            yield from _parts(rule.expression, explanation, result, len(earlier))


def present_rules(history: HistoryReader, message: Message) -> Iterator[str]:
    """Give lines for each rule that would be asked if the message came now."""
    start = history.last_start()
    matching = [
        rule
        for _, rule in sorted(history.rules(start).items())
        if topic_matches(TopicMatches(rule.topic), COMPILER)(message)
    ]
    if not matching:
        yield f"no uplink rule is for {message.topic}"
    for stream in dict.fromkeys(rule.stream for rule in matching):
        yield from _stream(history, message, start, [r for r in matching if r.stream == stream])


def _stream(
    history: HistoryReader, message: Message, start: int, rules: list[RecordedRule]
) -> Iterator[str]:
    for rule in rules:
        result, lines = _present(history, message, start, rule)
        yield f"rule {rule.place} on {rule.topic}: {spell_value(result)}"
        yield from lines
        if result:
            yield f"would be taken by rule {rule.place}, lane {rule.lane}, stream {rule.stream}"
            return
    yield f"would be filtered: no rule of the stream {rules[0].stream} takes it"


def _present(
    history: HistoryReader, message: Message, start: int, rule: RecordedRule
) -> tuple[bool | None, list[str]]:
    if rule.expression is None:
        return True, []
    rows = history.of_topic(message.topic, None)
    epoch = next(
        (
            result.rule_epoch
            for row in reversed(rows)
            if row.start == start
            for result in _results(row)
            if result.place == rule.place
        ),
        0,
    )
    earlier = _earlier(rows, epoch)
    explanation = explain(rule.expression, message, earlier)
    result = RuleResult(rule.place, epoch, explanation.result)
    return explanation.result, list(_parts(rule.expression, explanation, result, len(earlier)))


def _earlier(rows: list[HistoryRow], epoch: int) -> Earlier:
    """Return what the rule of this epoch saw; rules that remember nothing have none."""
    if not epoch:
        return []
    return [
        (row.message, result.result is True)
        for row in rows
        for result in _results(row)
        if result.rule_epoch == epoch and not result.overflow
    ]


def _results(row: HistoryRow) -> Iterator[RuleResult]:
    for numbered in row.numbers:
        yield from numbered.results


def _parts(
    expression: str, explanation: Explanation, result: RuleResult, remembered: int
) -> Iterator[str]:
    if explanation.result is result.result:
        yield from (f"  {line}" for line in tree(explanation))
    else:
        yield f"  {expression}"
        yield "  cannot be shown in parts: what it remembered is no longer in the history"
    if explanation.stateful:
        yield f"  remembers {remembered} earlier messages here, rule epoch {result.rule_epoch}"
    if result.overflow:
        yield "  but had no room to remember this one (state_overflow)"
