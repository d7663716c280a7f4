"""Compares an edited uplink rule with the present one: which live messages each accepts."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from gateway.mqtt.message import Message, OverBudgetError
from gateway.mqtt.topics import topic_matches
from gateway.routing.budget import EVALUATION, Budget
from gateway.uplink.rules.rule import Rule

DIFFERENCES = 20
"""Remembered messages on which the rules differ: the last ones."""

PAYLOAD_BYTES = 256
"""Bytes of such a message's payload that are stored."""

TOPIC_LETTERS = 256
"""Characters of its topic that are stored."""

MAXIMUM_TOPICS = 10_000
"""Topics whose gaps are known; messages on further ones are counted as `untracked`."""

MAXIMUM_TOPIC = 1_024
"""Characters of such a topic."""

KNOWN_TOPICS = 4_096
"""Topics whose rules are cached; the first is evicted when there are more."""


class Difference(NamedTuple):
    """A message that only one of two rules accepted; `number` counts them from 1."""

    number: int
    topic: str
    payload: bytes
    size: int
    received_at: int
    by_new: bool


class Gap:
    """The longest time that a topic had no accepted message, until now."""

    __slots__ = ("last", "longest")

    def __init__(self, now: float) -> None:
        self.last = now
        self.longest = 0.0


class Side:
    """One of two rules in its place after others of its stream, and its results.

    An `edited` rule remembers its own results, in addition to those of the other.
    """

    def __init__(self, rule: Rule, earlier: Sequence[Rule], *, edited: bool) -> None:
        self.rule = rule
        self._earlier = [
            each for each in earlier if each.stream == rule.stream and each.uplinks & rule.uplinks
        ]
        self._edited = edited
        self._gaps: dict[str, Gap] = {}
        self.messages = self.bytes = self.null = self.over_budget = 0

    @property
    def worst(self) -> tuple[str, float] | None:
        """The topic with the longest gap between accepted messages, and its seconds."""
        if not self._gaps:
            return None
        topic = max(self._gaps, key=lambda name: self._gaps[name].longest)
        return topic, self._gaps[topic].longest

    def accepts(self, message: Message, other: "Side | None") -> bool:
        """Return whether the rule accepts a message of its topics, for any of its uplinks."""
        free = self.rule.uplinks
        for each in self._earlier:
            if each.uplinks & free and topic_matches(each.topic, message.topic):
                if _result(each, message) is True:
                    free &= ~each.uplinks
                if not free:
                    return False
        where = self.rule.where
        if where is None:
            return True
        if self._edited and other is not None and other.rule.where is not None:
            where.inherit(other.rule.where, message.topic)
        result = _result(self.rule, message)
        self.null += result is None
        self.over_budget += result is None and message.work_left < 0
        if self._edited and self.rule.clears(message):
            where.memory.forget(message.topic)
        elif self._edited:
            where.record(message, result)
        return result is True

    def count(self, message: Message) -> None:
        """Count an accepted message."""
        self.messages += 1
        self.bytes += len(message.payload) + len(message.topic.encode())

    def note_gap(self, message: Message, *, accepted: bool) -> bool:
        """Note the topic's time without a message; False beyond MAXIMUM_TOPICS."""
        gap = self._gaps.get(message.topic)
        if gap is None:
            if len(self._gaps) >= MAXIMUM_TOPICS or len(message.topic) > MAXIMUM_TOPIC:
                return False
            gap = self._gaps[message.topic] = Gap(message.arrived)
        gap.longest = max(gap.longest, message.arrived - gap.last)
        if accepted:
            gap.last = message.arrived
        return True


class Trial:
    """Evaluates two rules for each message; one of them may be None.

    Nothing is sent, numbered or counted elsewhere for it. `filters` are the topic filters of all
    rules: `evaluate` is called with messages that match one of them, before they are numbered, and
    `evaluate_other` with all others.
    """

    def __init__(
        self, old: Side | None, new: Side | None, filters: Sequence[str], budget: Budget
    ) -> None:
        self.old = old
        self.new = new
        self._filters = filters
        self._budget = budget
        self._known: dict[str, tuple[bool, bool, bool]] = {}
        self.messages = 0
        self.untracked = 0
        self.only_old = self.only_new = 0
        self.differences: deque[Difference] = deque(maxlen=DIFFERENCES)

    def evaluate(self, message: Message) -> None:
        """Evaluate both rules for a message that is about to be numbered."""
        for_old, for_new, numbered = self._kind(message.topic)
        if numbered and (for_old or for_new):
            self._compare(message, for_old=for_old, for_new=for_new)

    def wants(self, topic: str) -> bool:
        """Return whether `evaluate_other` needs messages of a topic."""
        _, for_new, numbered = self._kind(topic)
        return for_new and not numbered

    def evaluate_other(self, message: Message) -> None:
        """Evaluate the new rule for a message that no present rule is for."""
        self._compare(message, for_old=False, for_new=True)

    def _kind(self, topic: str) -> tuple[bool, bool, bool]:
        """Return whether the old rule, the new one, and any present rule is for a topic."""
        known = self._known.get(topic)
        if known is None:
            old, new = (
                side is not None and topic_matches(side.rule.topic, topic)
                for side in (self.old, self.new)
            )
            numbered = any(topic_matches(each, topic) for each in self._filters)
            known = old, new, numbered
            if len(topic) <= MAXIMUM_TOPIC:
                self._known[topic] = known
                if len(self._known) > KNOWN_TOPICS:
                    del self._known[next(iter(self._known))]
        return known

    def _compare(self, message: Message, *, for_old: bool, for_new: bool) -> None:
        old, new = self.old, self.new
        self.messages += 1
        by_old = for_old and old is not None and self._accepts(old, new, message)
        by_new = for_new and new is not None and self._accepts(new, old, message)
        tracked = True
        for side, accepted in ((old, by_old), (new, by_new)):
            if side is not None:
                if accepted:
                    side.count(message)
                tracked = side.note_gap(message, accepted=accepted)
        self.untracked += not tracked
        if by_old is not by_new:
            self._note(message, by_new=by_new)

    def _accepts(self, side: Side, other: Side | None, message: Message) -> bool:
        message.work_left = EVALUATION
        accepted = side.accepts(message, other)
        self._budget.spend(EVALUATION - max(0, message.work_left))
        return accepted

    def _note(self, message: Message, *, by_new: bool) -> None:
        self.only_new += by_new
        self.only_old += not by_new
        self.differences.append(
            Difference(
                self.only_new + self.only_old,
                message.topic[:TOPIC_LETTERS],
                bytes(message.payload[:PAYLOAD_BYTES]),
                len(message.payload),
                message.received_at or 0,
                by_new,
            )
        )


def _result(rule: Rule, message: Message) -> bool | None:
    """Return a rule's result, without counting it; NULL if it would cost too much."""
    if rule.where is None or rule.clears(message):
        return True
    try:
        message.spend(rule.where.steps)
        return rule.where.evaluate(message)
    except OverBudgetError:
        return None
