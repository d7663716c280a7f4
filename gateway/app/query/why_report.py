"""Explains the outcome of one message at rules, fleet and subscribers, by evaluating again."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from gateway.errors import TidegateError
from gateway.mqtt.message import Message
from gateway.mqtt.topics import split_shared
from gateway.storage.history.history import RecordedRule
from gateway.storage.history.outcome_reader import Number
from gateway.storage.history.reader import HistoryReader
from gateway.storage.history.row import HistoryRow, Numbered, RuleResult
from gateway.storage.history.subscriptions import RecordedSubscription
from gateway.storage.outbox.row import (
    OutboxRow,
    Outcome,
)
from gateway.uplink.rules.rule import name_of
from gateway.where.compile import COMPILER
from gateway.where.evaluation.closures import topic_matches
from gateway.where.explain import Explanation, explain, tree
from gateway.where.language.errors import WhereError
from gateway.where.language.expression import TopicMatches
from gateway.where.language.spelling import spell_value

_ANSWERS = {1: "PUBACK", 2: "PUBREC"}

CLEARING = "it clears the topic, and a rule with retain = true accepts that whatever its where says"


Earlier = list[tuple[Message, bool]]
"""Messages that a rule remembers, oldest first, each with whether it was forwarded."""


def report_of_number(history: HistoryReader, number: Number) -> list[str]:
    """Return lines that explain why a message did or did not reach fleet and subscribers.

    Raises TidegateError if neither the history nor the outbox has the message.
    """
    row = history.find(number)
    if row is None:
        return _of_outbox(history, number)
    (numbered,) = (each for each in row.numbers if each.stream == number[1])
    return _of_row(history, row, [numbered])


def report_of_topic(history: HistoryReader, topic: str) -> list[str]:
    """Return the same of the last message of a topic; raise TidegateError if there is none."""
    row = history.last_of(topic)
    if row is None:
        raise TidegateError(f"{topic!r} has no message in the history")
    names = [f"number {row.epoch}.{each.stream}.{each.number}" for each in row.numbers]
    return [*names, *_of_row(history, row, row.numbers)]


def report_of_message(history: HistoryReader, message: Message) -> list[str]:
    """Return the same for a message that was not sent, as if it arrived now."""
    return [
        f"{_what(message)}: what would become of it now",
        *present_rules(history, message),
        *subscribers(history, message, None),
    ]


def _of_row(history: HistoryReader, row: HistoryRow, numbers: Sequence[Numbered]) -> list[str]:
    report = _headline(row.message)
    rules = history.rules(row.start)
    if not numbers:
        report.append(f"no uplink rule was for {row.message.topic}")
    for numbered in numbers:
        number = row.epoch, numbered.stream, numbered.number
        report += recorded_rules(history, row, numbered)
        report += outcome(history, number, numbered, rules)
    return [*report, *subscribers(history, row.message, row.id)]


def _of_outbox(history: HistoryReader, number: Number) -> list[str]:
    waiting = history.outcomes.waiting(number)
    if waiting is None:
        name = ".".join(map(str, number))
        raise TidegateError(f"{name} is not in the history: too old, or never given")
    message = waiting.message
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
    left = f"its {answer} could be sent" if answer else "QoS 0 has no acknowledgement"
    return [
        f"{_what(message)}, accepted {when:%Y-%m-%d %H:%M:%S.%f}",
        f"on disk: {left}",
    ]


def _what(message: Message) -> str:
    retain = ", RETAIN" if message.retain else ""
    sender = f", from {message.client_id!r}" if message.client_id is not None else ""
    return f"{message.topic}, {len(message.payload)} bytes, QoS {message.qos}{retain}{sender}"


def outcome(
    history: HistoryReader,
    number: Number,
    numbered: Numbered | None,
    rules: dict[int, RecordedRule],
) -> list[str]:
    """Return lines on its outcome; `numbered` is None if the history has no row of it."""
    if numbered is None:
        return _ends(history, number)
    takers = [each.place for each in numbered.results if each.result is True]
    if not takers:
        return ["filtered: no rule of the stream took it"]
    lane = rules[takers[0]].lane if takers[0] in rules else "unknown"
    names = ", ".join(_name(rules.get(place)) for place in takers)
    accepted = f"accepted by {names}, lane {lane}, committed with its row of the outbox"
    return [accepted, *_ends(history, number)]


def _name(rule: RecordedRule | None) -> str:
    """Return a rule's name in the ledger without its index, which a reload may have changed."""
    if rule is None:
        return "a rule that the history no longer has"
    name = name_of(0, rule.stream, rule.topic, rule.expression)
    return f"rule {name.removeprefix('0')}"


def _ends(history: HistoryReader, number: Number) -> list[str]:
    outcomes = history.outcomes
    waiting, uplinks = outcomes.waiting(number), outcomes.uplinks(number)
    reasons = [_end(*each) for each in outcomes.ledger(number)]
    if waiting is not None:
        reasons.append(_waits(history, waiting) + (f" (uplink {uplinks})" if uplinks else ""))
        return reasons
    rejection = outcomes.rejection(number)
    if rejection is not None:
        name = ".".join(map(str, number))
        return [f"rejected ({rejection}): `tidegate uplink rejected show {name}` has it"]
    return reasons or [
        "deleted from the outbox: the fleet has acknowledged it, or its end in the ledger"
    ]


def _end(uplink: str, outcome: str, reason: str) -> str:
    where = f"uplink {uplink}" if uplink else "deleted from the outbox"
    if outcome == Outcome.DELIVERED:
        return f"{where}: the fleet has acknowledged it"
    return f"{where}: {outcome}, {reason}" if reason else f"{where}: {outcome}"


def _waits(history: HistoryReader, row: OutboxRow) -> str:
    text = f"waits in the outbox, lane {row.lane}: the fleet has not acknowledged it yet"
    if history.earlier_epoch(row.epoch):
        return f"{text}; it waited over a restart and will be sent with resent = 1"
    return f"{text}; it will be sent with resent = 1 if it was sent before or waited for the link"


def recorded_rules(history: HistoryReader, row: HistoryRow, numbered: Numbered) -> Iterator[str]:
    """Yield lines for each rule that was evaluated when the message arrived."""
    rules = history.rules(row.start)
    for result in numbered.results:
        rule = rules.get(result.place)
        if rule is None:  # its start is older than the history's rules
            yield f"{_name(None)}: {spell_value(result.result)}"
            continue
        yield f"{_name(rule)} on {rule.topic}: {spell_value(result.result)}"
        if rule.expression is not None:
            earlier = _earlier(history.of_topic(row.message.topic, row.id), result.rule_epoch)
            explanation = explain(rule.expression, row.message, earlier)
            if result.result and explanation.result is not True and _clears(row.message):
                yield f"  {CLEARING}"
            else:
                yield from _parts(rule.expression, explanation, result, len(earlier))


def present_rules(history: HistoryReader, message: Message) -> Iterator[str]:
    """Yield lines for each rule that would be evaluated if the message arrived now."""
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
        yield f"{_name(rule)} on {rule.topic}: {spell_value(result)}"
        yield from lines
        if result:
            yield f"would be accepted by {_name(rule)}, lane {rule.lane}, stream {rule.stream}"
            return
    yield f"would be filtered: no rule of the stream {rules[0].stream} takes it"
    if _clears(message):
        yield f"  but {CLEARING}"


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
    """Return what the rule of this epoch saw; rules without memory have none.

    Cleared values are forgotten.
    """
    earlier: list[tuple[Message, bool]] = []
    for row in rows if epoch else ():
        for result in _results(row):
            if result.rule_epoch != epoch or result.overflow:
                continue
            if result.result and _clears(row.message):
                earlier.clear()
            else:
                earlier.append((row.message, result.result is True))
    return earlier


def _clears(message: Message) -> bool:
    return message.retain and not message.payload


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
        yield "  but had no space to remember this one (state_overflow)"


def subscribers(history: HistoryReader, message: Message, at: int | None) -> Iterator[str]:
    """Yield lines for each subscription on the message's topic.

    `at` is the message's row of the history; None for a message that was not sent, which meets the
    present subscriptions.
    """
    there_were = history.subscriptions(at)
    matching = [each for each in there_were if _matches(each, message)]
    yield f"subscriptions: {len(matching)} of {len(there_were)} are for {message.topic}"
    if message.retain and at is not None:
        yield "RETAIN: who subscribed later may have got it, too, if its filter passed it"
    shown: set[tuple[str, bool]] = set()
    for subscription in matching:
        passed, verdict, lines = _evaluate(subscription, message)
        yield (
            f"client {subscription.client_id!r} on {subscription.topic_filter},"
            f" QoS {subscription.qos}: {verdict}"
        )
        key = (subscription.expression or "", subscription.identity)
        yield from () if key in shown else lines
        shown.add(key)
        if passed and at is not None:
            yield f"  {_delivery_state(history, subscription, message)}"


def _matches(subscription: RecordedSubscription, message: Message) -> bool:
    _, topic_filter = split_shared(subscription.topic_filter)
    return topic_matches(TopicMatches(topic_filter), COMPILER)(message) is True


def _evaluate(subscription: RecordedSubscription, message: Message) -> tuple[bool, str, list[str]]:
    """Return whether the message passed, the verdict, and the parts of the expression."""
    if subscription.no_local and subscription.client_id == message.client_id:
        return False, "not sent, No Local: the client published it itself", []
    share_name, _ = split_shared(subscription.topic_filter)
    passed = "passes" if share_name is None else "passes, one member of the group gets it"
    if subscription.expression is None:
        return True, f"no $where, {passed}", []
    try:
        explanation = explain(subscription.expression, message, identity=subscription.identity)
    except WhereError as error:
        return False, "nothing is delivered, its $where is not accepted", [f"  {error}"]
    lines = [f"  {line}" for line in tree(explanation)]
    if explanation.result is not True:
        return False, f"{spell_value(explanation.result)}, filtered", lines
    return True, f"TRUE, {passed}", lines


def _delivery_state(
    history: HistoryReader, subscription: RecordedSubscription, message: Message
) -> str:
    if min(subscription.qos, message.qos) == 0:
        return "at QoS 0 nobody acknowledges it"
    outcomes, client_id = history.outcomes, subscription.client_id
    waiting = outcomes.undelivered(client_id, message)
    if waiting is None:
        if outcomes.has_session(client_id):
            return "not pending for its stored session any more: acknowledged, expired or dropped"
        return "its session is not stored: nobody knows here whether it was acknowledged"
    if waiting.packet_id is None:
        return "waits in its session's queue"
    answer = "PUBCOMP" if waiting.released else _ANSWERS[min(subscription.qos, message.qos)]
    return f"sent with packet identifier {waiting.packet_id}, {answer} has not come yet"
