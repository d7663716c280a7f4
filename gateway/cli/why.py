"""`tidegate why`: what the uplink rules made of one message, asked again."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from gateway.cli.where_explain import tree
from gateway.cli.where_history import no_history
from gateway.errors import TidegateError
from gateway.routing.where.explain import explain
from gateway.routing.where.message import Message
from gateway.routing.where.spelling import spell_value
from gateway.storage.history import RecordedRule
from gateway.storage.history_reader import HistoryReader, Number, open_history
from gateway.storage.history_row import Numbered, RuleResult


def why(number: Number, data: Path) -> int:
    """Print why the message of this number did or did not go up; return 0, or 3 without history.

    Raises TidegateError if the history does not hold the message.
    """
    with open_history(data) as history:
        if history is None or not history.on:
            return no_history()
        row = history.find(number)
        if row is None:
            name = ".".join(map(str, number))
            raise TidegateError(f"{name} is not in the history: too old, or never given")
        (numbered,) = (each for each in row.numbers if each.stream == number[1])
        rules = history.rules(row.start)
        report = [_headline(row.message), *_asked(row.message, numbered, rules)]
        report += _fate(history, number, numbered, rules)
    for line in report:
        print(line)
    return 0


def _headline(message: Message) -> str:
    when = datetime.fromtimestamp((message.received_at or 0) / 1000).astimezone()
    retain = ", RETAIN" if message.retain else ""
    return (
        f"{message.topic}, {len(message.payload)} bytes, QoS {message.qos}{retain},"
        f" accepted {when:%Y-%m-%d %H:%M:%S.%f}"
    )


def _asked(message: Message, numbered: Numbered, rules: dict[int, RecordedRule]) -> Iterator[str]:
    for result in numbered.results:
        rule = rules.get(result.place)
        if rule is None:  # its start is older than what the history knows of rules
            yield f"rule {result.place}: {spell_value(result.result)}"
            continue
        yield f"rule {result.place} on {rule.topic}: {spell_value(result.result)}"
        if rule.expression is not None:
            yield from _parts(rule.expression, message, result)


def _parts(expression: str, message: Message, result: RuleResult) -> Iterator[str]:
    explanation = explain(expression, message)
    if explanation.stateful:
        yield f"  {expression}"
        yield f"  remembers earlier messages, rule epoch {result.rule_epoch}"
        if result.overflow:
            yield "  but had no room to remember this one (state_overflow)"
    else:
        yield from (f"  {line}" for line in tree(explanation))


def _fate(
    history: HistoryReader, number: Number, numbered: Numbered, rules: dict[int, RecordedRule]
) -> list[str]:
    last = numbered.results[-1]
    if last.result is not True:
        return ["filtered: no rule of the stream took it"]
    lane = rules[last.place].lane if last.place in rules else "unknown"
    taken = f"taken by rule {last.place}, lane {lane}, committed with its row of the outbox"
    refusal = history.refusal(number)
    if history.waits(number):
        return [taken, "waits in the outbox: the fleet has not acknowledged it yet"]
    if refusal is not None:
        return [taken, f"refused by the fleet with 0x{refusal:02X}"]
    return [taken, "acknowledged by the fleet: it has left the outbox"]
