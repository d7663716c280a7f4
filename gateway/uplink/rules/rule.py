"""Evaluates one uplink rule, with its memory and figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.counters import Counters
from gateway.hashes import sha256
from gateway.mqtt.message import Message, OverBudgetError
from gateway.routing import over_budget
from gateway.routing.budget import SAMPLED, Budget
from gateway.storage.history.row import RuleResult
from gateway.storage.state.rule_states import RuleKey, RuleState, RuleStates
from gateway.where.rule import RuleWhere

COUNTED = (
    *("evaluated", "passed", "filtered", "null", "over_budget", "bytes_saved", "state_overflow"),
)
"""Counters of each rule, from zero on."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One `[[uplink.rule]]`; without `where` it accepts every message of its topic filter.

    `lane` is `live`, or `backlog` for messages that are always sent after live ones.
    `commit_within` is for how many seconds a publisher's answer may wait for the fleet's PUBACK
    before the message is written; None for the uplink's own. `uplinks` are the bits of those that
    it is for (`storage/outbox/uplinks.py`). If messages are to `retain` at the fleet, one that
    clears a topic is accepted whatever `where` says.
    """

    topic: str
    where: RuleWhere | None = None
    stream: str = "main"
    lane: str = "live"
    commit_within: float | None = None
    uplinks: int = 1
    retain: bool = False

    def clears(self, message: Message) -> bool:
        """Return whether the message clears its topic's retained message, here and at the fleet."""
        return self.retain and message.retain and not message.payload


DEFAULT_RULES = (Rule("sensors/#"),)
"""The rules of a configuration without any."""


def key_of(rules: Sequence[Rule], index: int) -> RuleKey | None:
    """Return the key of a rule's stored state, None for a rule without memory."""
    rule = rules[index]
    if rule.where is None or not rule.where.slots:
        return None
    repeat = sum(
        other.where is not None
        and (other.stream, other.topic, other.where.text)
        == (rule.stream, rule.topic, rule.where.text)
        for other in rules[:index]
    )
    return RuleKey(rule.stream, rule.topic, rule.where.text, repeat)


def name_of(index: int, stream: str, topic: str, where: str | None) -> str:
    """Return the ledger's name of a rule: `<index>@<version>`.

    The version is the beginning of a hash of the rule: it is the same after each start until the
    rule's topic, expression or stream changes.
    """
    text = f"{stream}\0{topic}\0{where or ''}"
    return f"{index}@{sha256(text.encode()).hexdigest()[:8]}"


class ActiveRule:
    """A rule with its memory, the state of it on disk, and its figures under `rules/<index>`.

    A message is evaluated first and recorded only when it is certain to be accepted. Its memory of
    a message that passes is written in the batch of the outbox row. Its memory of others is not
    written until `save`, which saves a write for each message. The state on disk is marked so,
    once, and after a crash the rule starts empty, with a new rule epoch. A rule with only `SENT`,
    `DEADBAND` and `EVERY` remembers what it forwarded, so it loses nothing in a crash.
    """

    def __init__(
        self,
        index: int,
        rule: Rule,
        counters: Counters,
        budget: Budget,
        state: RuleState | None = None,
        place: int | None = None,
    ) -> None:
        self.rule = rule
        where = None if rule.where is None else rule.where.text
        self.name = name_of(index, rule.stream, rule.topic, where)
        self.index = index
        self._set_place(index if place is None else place)
        self.where = rule.where
        self.state = state
        self._counters = counters
        self._budget = budget
        self.unsaved: set[str] = set()
        self.over_budget = False  # for the last message
        self._prefix = f"tidegate/rules/{index}/"
        evaluated = f"{self._prefix}evaluated"
        self.passed = (evaluated, f"{self._prefix}passed")
        self._filtered = (evaluated, f"{self._prefix}filtered")
        for name in COUNTED:
            counters.add(f"{self._prefix}{name}", 0)
        self._restore()
        self._show()

    def _set_place(self, place: int) -> None:
        self.place = place
        """Its index in the history of this run."""
        # of a rule without memory; to make one takes longer than all else that `record` does
        self.results = {each: RuleResult(place, 0, each) for each in (True, False, None)}

    @property
    def figures(self) -> dict[str, int | float]:
        """The rule's counters by name, and the microseconds of an evaluation."""
        values = self._counters.values
        names = (*COUNTED, "microseconds", "topics")
        found = {name: values.get(self._prefix + name) for name in names}
        return {
            name: float(value) if name == "microseconds" else int(value)
            for name, value in found.items()
            if value is not None
        }

    def evaluate(self, message: Message) -> bool | None:
        """Return whether the rule accepts the message, None if its expression is NULL.

        It is NULL, and the rule `over_budget`, if it needs more than the message's remaining work.
        """
        where = self.where
        self.over_budget = False
        if where is None or (self.rule.retain and self.rule.clears(message)):
            return True
        limit, result = message.work_left, None
        try:
            message.spend(where.steps)
            result = where.evaluate(message)
        except OverBudgetError:
            self._exceed(where, message)
        if not where.figures.evaluated % SAMPLED:
            used, remaining = limit - message.work_left, message.work_left
            self._budget.sample(where, message, f"uplink.rule[{self.index}]", used)
            message.work_left = remaining
            microseconds = f"{where.figures.mean / 1000:.1f}"
            self._counters.set(f"{self._prefix}microseconds", microseconds)
        where.figures.evaluated += 1
        return result

    def evaluate_first(self, message: Message) -> bool | None:
        """Return whether the rule would accept the message as the first of its topic."""
        if self.where is None or self.rule.clears(message):
            return True
        try:
            message.spend(self.where.steps)
            return self.where.evaluate_first(message)
        except OverBudgetError:
            return None

    def _exceed(self, where: RuleWhere, message: Message) -> None:
        """Count that the expression is NULL because of its cost."""
        self.over_budget = True
        self._counters.add(f"{self._prefix}over_budget")
        budget = self._budget
        owner = f"uplink.rule[{self.index}]"
        budget.over.note(owner, over_budget.RULES, where.text, message, budget.now)

    def record(self, message: Message, result: bool | None) -> RuleResult:
        """Count the message and remember it; `result` is what `evaluate` returned."""
        self._counters.add_each(self.passed if result else self._filtered)
        if result is None:
            self._counters.add(f"{self._prefix}null")
        if self.where is not None and self.where.slots:
            return self._remember(self.where, message, result)
        return self.results[result]

    @property
    def same(self) -> tuple[str, str, str | None]:
        """What identifies a rule in another configuration."""
        where = self.rule.where
        return self.rule.stream, self.rule.topic, None if where is None else where.text

    def follow(self, before: "ActiveRule", figures: dict[str, int | float]) -> None:
        """Continue with the memory and the figures of the same rule of an earlier configuration."""
        if self.rule.lane == before.rule.lane:
            self._set_place(before.place)
        self.where, self.state, self.unsaved = before.where, before.state, before.unsaved
        self._show()
        for name, value in figures.items():
            shown = f"{value:.1f}" if name == "microseconds" else value
            self._counters.set(self._prefix + name, shown)

    def forget(self, states: RuleStates) -> None:
        """Delete its memory: the rule was removed."""
        if self.state is not None:
            states.forget(self.state)

    def count_saved(self, message: Message) -> None:
        """Count the bytes of a message that no rule of the stream accepted; this was the last."""
        saved = len(message.payload) + len(message.topic.encode())
        self._counters.add(f"{self._prefix}bytes_saved", saved)
        self._counters.add("tidegate/rules/bytes_saved", saved)

    def save(self) -> None:
        """Add unwritten memory to the pending batch, before a stop."""
        if self.where is None or self.state is None:
            return
        for topic in self.unsaved:
            self.state.save(topic, self.where.memory.get(topic))
        self.unsaved.clear()
        self.state.set_complete(complete=True)

    def _remember(self, where: RuleWhere, message: Message, result: bool | None) -> RuleResult:
        overflows = where.memory.overflows
        # the fleet has nothing of the topic: the next message is its first
        if self.rule.clears(message):
            where.memory.forget(message.topic)
            self._save_row(where, message, result)
        elif where.record(message, result):
            self._save_row(where, message, result)
        self._counters.set(f"{self._prefix}topics", len(where.memory))
        self._counters.set(f"{self._prefix}state_overflow", where.memory.overflows)
        epoch = 0 if self.state is None else self.state.epoch
        return RuleResult(self.place, epoch, result, where.memory.overflows > overflows)

    def _save_row(self, where: RuleWhere, message: Message, result: bool | None) -> None:
        if self.state is None:
            return
        row = where.memory.get(message.topic)
        if result is True or row is None:
            self.unsaved.discard(message.topic)
            self.state.save(message.topic, row, message.commit_within)
        else:
            self.unsaved.add(message.topic)
            self.state.set_complete(complete=False, commit_within=message.commit_within)

    def _restore(self) -> None:
        if self.where is None or self.state is None:
            return
        for topic, row in self.state.rows.items():
            if len(row) == self.where.slots:  # otherwise it is from a different expression
                self.where.memory.remember(topic, row)
        self.state.rows.clear()

    def _show(self) -> None:
        self._counters.set(f"{self._prefix}topic", self.rule.topic)
        self._counters.set(f"{self._prefix}where", "" if self.where is None else self.where.text)
        for name in ("evaluated", "passed", "filtered", "null", "over_budget", "bytes_saved"):
            self._counters.set(self._prefix + name, 0)
        if self.where is not None:
            self._counters.set(f"{self._prefix}microseconds", "0.0")
        if self.where is not None and self.where.slots:
            self._counters.set(f"{self._prefix}epoch", self.state.epoch if self.state else 0)
            self._counters.set(f"{self._prefix}topics", len(self.where.memory))
            self._counters.set(f"{self._prefix}state_overflow", 0)
