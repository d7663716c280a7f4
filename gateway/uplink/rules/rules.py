"""Numbers messages, evaluates the rules, and adds accepted messages to the outbox."""

from collections.abc import Callable, Mapping, Sequence

from gateway.access.access import EVERYTHING
from gateway.broker.own_names import UPLINK_CLIENT
from gateway.counters import Counters
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode
from gateway.mqtt.topics import topic_matches
from gateway.routing.budget import EVALUATION, Budget
from gateway.storage.history.row import Numbered, RuleResult
from gateway.storage.ledger.ledger import Ledger
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.row import BACKLOG, OutboxRow, Outcome
from gateway.storage.state.rule_states import RuleKey, RuleState
from gateway.uplink.rules.rule import DEFAULT_RULES, ActiveRule, Rule, key_of

UNPROMISED = 1.0
"""Seconds for which a message may stay unwritten if no acknowledgement depends on it."""

OVER_BUDGET = ":over_budget"
"""Follows the name of the rule that filtered a message in the ledger, if one of the evaluated rules
would have cost too much."""

KNOWN_FILTERS = 1_024
"""Sets of topic filters whose rules are cached; when there are more, the cache is cleared."""

ACCEPTED = ("tidegate/rules/matched", "tidegate/rules/accepted")
FILTERED = ("tidegate/rules/matched", "tidegate/rules/filtered")
"""Counters of messages in a stream."""

# CPython 3.11 takes 50 ns to find a member of an enumeration
_SUCCESS, _QUOTA_EXCEEDED = ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED

NO_STATES: Mapping[RuleKey, RuleState] = {}
"""The restored states of a gateway that stores none."""


class Verdict:
    """The results of one stream's rules for a message: each evaluated rule with its result.

    For each uplink they are evaluated in order, until one is TRUE. `uplinks` are those that get the
    message; `rule` is the first that accepted it for one. `over_budget` are those for which a rule
    would have cost too much. `results`, if any, are those of every message of these topic filters:
    none of the rules has an expression. Then `counted` are all the counters of a message.
    """

    __slots__ = ("counted", "evaluated", "over_budget", "results", "rule", "stream", "uplinks")

    def __init__(
        self,
        stream: str,
        rules: Sequence[ActiveRule],
        message: Message,
        evaluate: Callable[[ActiveRule, Message], bool | None] = ActiveRule.evaluate,
    ) -> None:
        self.stream = stream
        self.evaluated: list[tuple[ActiveRule, bool | None]] = []
        self.uplinks = self.over_budget = 0
        self.rule: Rule | None = None
        self.results: list[RuleResult] | None = None
        self.counted: tuple[str, ...] = ()
        for active in rules:
            rule = active.rule
            if not rule.uplinks & ~self.uplinks:
                continue  # each of its uplinks gets the message already
            result = True if rule.where is None else evaluate(active, message)
            self.evaluated.append((active, result))
            if active.over_budget:
                self.over_budget |= rule.uplinks
            if result is True:
                self.uplinks |= rule.uplinks
                self.rule = self.rule or rule

    def fix(self) -> None:
        """Let it be the verdict of every message that these rules get."""
        self.results = [active.results[result] for active, result in self.evaluated]
        counted = [name for active, _ in self.evaluated for name in active.passed]
        self.counted = (*ACCEPTED, *counted)

    def last_for(self, uplink: int) -> ActiveRule:
        """Return the rule that was evaluated last for an uplink, or for any if none was for it."""
        own = (active for active, _ in reversed(self.evaluated) if active.rule.uplinks & uplink)
        return next(own, self.evaluated[-1][0])


_Rules = tuple[str, list[ActiveRule], Verdict | None]
"""A stream, its rules for some topic filters, and their verdict if it is that of every message."""


class BroughtUp:
    """The retained messages that were added (`RuleSet.bring_up`) and wait in the outbox."""

    __slots__ = ("_by_topic", "_listens", "_outbox", "_rows")

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._rows: dict[int, OutboxRow] = {}
        self._by_topic: dict[str, list[OutboxRow]] = {}
        self._listens = False

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def rows(self) -> list[OutboxRow]:
        """Those that wait."""
        return list(self._rows.values())

    def waiting(self, uplink: int) -> int:
        """Return how many wait for an uplink."""
        return sum(1 for row in self._rows.values() if row.uplinks & uplink)

    def add(self, row: OutboxRow) -> None:
        """Add a row to the outbox; one suffices for each topic, stream and uplink."""
        for each in [*self._by_topic.get(row.message.topic, ())]:
            if (each.stream, each.uplinks) == (row.stream, row.uplinks):
                self._outbox.supersede(each)
        self._outbox.add(row)
        if row.id:
            if not self._listens:  # most gateways never add any
                self._listens = True
                self._outbox.on_outcome.append(self._ended)
            self._rows[row.id] = row
            self._by_topic.setdefault(row.message.topic, []).append(row)

    def has(self, message: Message, stream: str, uplinks: int) -> bool:
        """Return whether this very message waits already."""
        return any(
            (each.time, each.stream, each.uplinks) == (message.received_at, stream, uplinks)
            for each in self._by_topic.get(message.topic, ())
        )

    def supersede(self, topic: str) -> None:
        """Remove unsent rows of a topic: another message of it is retained now."""
        for row in [*self._by_topic.get(topic, ())]:
            self._outbox.supersede(row)

    def refused(self, refused: OutboxRow, uplink: int) -> None:
        """Remove unsent rows of a message that this uplink's fleet has rejected."""
        for row in [*self._by_topic.get(refused.message.topic, ())]:
            if row.time == refused.time and row.uplinks == uplink:
                self._outbox.supersede(row)

    def _ended(self, rows: Sequence[OutboxRow], _outcome: Outcome, _reason: str) -> None:
        for ended in rows:
            row = self._rows.pop(ended.id, None)
            if row is not None:
                left = self._by_topic[row.message.topic]
                left.remove(row)
                if not left:
                    del self._by_topic[row.message.topic]


class RuleSet:
    """The inline client between the broker and the outbox.

    The broker subscribes it to `topic_filters` and calls `receive` with each matching message,
    once, with the filters that matched. In each stream that has a rule for one of them the message
    gets the next number, from 1 in each `epoch`. Then the stream's rules are evaluated in order,
    and the first whose `where` is TRUE accepts it, separately for each uplink. A message that no
    rule accepts uses up a number, too: the ledger explains every gap
    (docs/understand/fleet-interface.md).

    `states` is what `RuleStates.restore` found of the rules with memory. `budget` measures
    expressions. `commit_within` is for how many seconds an answer may wait for the fleet's PUBACK
    before the row is written, 0 for none. `ledger`, if any, records every outcome; `before_numbers`
    are called with each message before it gets its first number.
    """

    __slots__ = (
        "_budget",
        "_by_filters",
        "_commit_within",
        "_counters",
        "_epoch",
        "_last",
        "_ledger",
        "_numbered",
        "_outbox",
        "_places",
        "_streams",
        "_uplinks",
        "before_numbers",
        "brought_up",
    )

    client_id = UPLINK_CLIENT
    inline = True
    access = EVERYTHING

    @property
    def numbers(self) -> list[Numbered]:
        """The numbers of the last message, for the history: without one, nobody makes them."""
        return [Numbered(each, number, tuple(results)) for each, number, results in self._numbered]

    @property
    def refusal(self) -> str:
        """Why `receive` refuses a message that it may accept later."""
        return self._outbox.refusal

    def __init__(
        self,
        rules: Sequence[Rule],
        outbox: Outbox,
        counters: Counters,
        epoch: str,
        states: Mapping[RuleKey, RuleState] = NO_STATES,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        commit_within: float = 0.0,
    ) -> None:
        self._commit_within = commit_within
        self._outbox = outbox
        self._counters = counters
        self._epoch = epoch
        self._ledger = ledger
        self.before_numbers: list[Callable[[Message], None]] = []
        self.brought_up = BroughtUp(outbox)
        self._numbered: list[tuple[str, int, list[RuleResult]]] = []  # of the last message
        self._streams: dict[str, list[ActiveRule]] = {}
        self._by_filters: dict[tuple[str, ...], list[_Rules]] = {}
        self._last: dict[str, int] = {}
        self._uplinks: dict[str, int] = {}
        self._budget = budget or Budget()
        self._places = 0
        self._begin(rules or DEFAULT_RULES, states)

    def _begin(self, rules: Sequence[Rule], states: Mapping[RuleKey, RuleState]) -> None:
        for index, rule in enumerate(rules):
            key = key_of(rules, index)
            state = None if key is None else states.get(key)
            place = self._places + index
            active = ActiveRule(index, rule, self._counters, self._budget, state, place)
            self._streams.setdefault(rule.stream, []).append(active)
            self._last.setdefault(rule.stream, 0)
            self._uplinks[rule.stream] = self._uplinks.get(rule.stream, 0) | rule.uplinks
        self._places += len(rules)

    def change(
        self, rules: Sequence[Rule], states: Mapping[RuleKey, RuleState]
    ) -> list[ActiveRule]:
        """Apply these rules from the next message on; return the removed ones.

        Streams continue with their numbers, also one that returns. A rule that existed before, with
        the same stream, topic and expression, continues with its memory; `states` are those of the
        others.
        """
        before: dict[object, list[tuple[ActiveRule, dict[str, int | float]]]] = {}
        for active in self.rules:
            before.setdefault(active.same, []).append((active, active.figures))
        self._streams, self._by_filters, self._uplinks = {}, {}, {}
        self._begin(rules or DEFAULT_RULES, states)
        for active in self.rules:
            known = before.get(active.same)
            if known:
                active.follow(*known.pop(0))
        return [active for known in before.values() for active, _ in known]

    @property
    def rules(self) -> list[ActiveRule]:
        """The rules in the order of the configuration."""
        every = (active for rules in self._streams.values() for active in rules)
        return sorted(every, key=lambda active: active.index)

    @property
    def topic_filters(self) -> list[str]:
        """The topic filters to subscribe to, each once, in the order of the rules."""
        topics = (active.rule.topic for rules in self._streams.values() for active in rules)
        return list(dict.fromkeys(topics))

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        """Add `message` to the outbox once for each stream with a rule that accepts it.

        Returns QUOTA_EXCEEDED, with no number used and nothing remembered, if a rule accepts it and
        the outbox is full; the publisher may try again later. A message that came down a link gets
        no number. The message's own properties are not trusted for that.
        """
        if message.client_id == UPLINK_CLIENT:  # it came down: sending it up again would be a loop
            self._numbered = []
            return _SUCCESS
        for check in self.before_numbers:
            check(message)
        message.work_left = EVALUATION  # for the rules of all streams
        # first all verdicts: a full outbox must leave no number used and no rule's memory changed
        verdicts: list[tuple[Verdict, OutboxRow | None]] = []
        rows = []
        known = self._by_filters.get(tuple(topic_filters))
        for stream, rules, fixed in known or self._matching(message, topic_filters):
            verdict = fixed or Verdict(stream, rules, message)
            row = None
            if verdict.rule is not None:
                number, lane = self._last[stream] + 1, verdict.rule.lane
                row = OutboxRow(message, self._epoch, stream, number, lane)
                row.uplinks = verdict.uplinks
                rows.append(row)
            verdicts.append((verdict, row))
        if work := EVALUATION - message.work_left:
            self._budget.spend(work)
        if rows and not self._outbox.admits(rows):
            return _QUOTA_EXCEEDED
        commit_within = message.commit_within
        barrier = None if commit_within is None else message.barrier
        if message.retain and self.brought_up:
            # it was retained before this one, and would replace it at the fleet
            self.brought_up.supersede(message.topic)
        self._numbered = numbered = []
        for verdict, row in verdicts:
            numbered.append(self._number(message, verdict))
            if row is not None and verdict.rule is not None:
                wait = self._wait(message, verdict.rule)
                self._outbox.add(row, commit_within, wait, barrier)
        return _SUCCESS

    def bring_up(self, message: Message, uplinks: int) -> int | None:
        """Add a retained message to the outbox, by rules of these uplinks that retain.

        Return to how many streams it was added, None if the outbox has no capacity now. It has a
        number of its own, and rules treat it as the first of its topic; their memory and counters
        are unchanged.
        """
        topic_filters = [each for each in self.topic_filters if topic_matches(each, message.topic)]
        if message.client_id == UPLINK_CLIENT:
            return 0
        message.work_left = EVALUATION
        verdicts = []
        for stream, rules, _ in self._matching(message, topic_filters):
            if not any(each.rule.retain and each.rule.uplinks & uplinks for each in rules):
                continue
            verdict = Verdict(stream, rules, message, ActiveRule.evaluate_first)
            if verdict.rule is None or not verdict.uplinks & uplinks:
                continue
            if self.brought_up.has(message, stream, verdict.uplinks & uplinks):
                continue  # and may be about to be rejected
            row = OutboxRow(message, self._epoch, stream, self._last[stream] + 1, BACKLOG)
            row.uplinks = verdict.uplinks = verdict.uplinks & uplinks
            verdicts.append((verdict, row))
            if not self._outbox.fits(row):
                return None
        for verdict, row in verdicts:
            self._number_again(verdict, row)
        return len(verdicts)

    def _number_again(self, verdict: Verdict, row: OutboxRow) -> None:
        """Add a retained message with the next number of a stream."""
        stream = verdict.stream
        self._last[stream] = row.seq
        if self._ledger is not None:
            self._ledger.numbered(stream, row.seq)
            if without := self._uplinks[stream] & ~verdict.uplinks:
                self._note_filtered(self._ledger, verdict, row.seq, without)
        self.brought_up.add(row)

    def _matching(self, message: Message, topic_filters: list[str]) -> "list[_Rules]":
        """Find each stream that has rules for these filters, with those rules, for the cache."""
        found: list[_Rules] = []
        for stream, rules in self._streams.items():
            matching = [each for each in rules if each.rule.topic in topic_filters]
            fixed = None
            if matching and all(each.rule.where is None for each in matching):
                fixed = Verdict(stream, matching, message)
                fixed.fix()
            if matching:
                found.append((stream, matching, fixed))
        if len(self._by_filters) >= KNOWN_FILTERS:
            self._by_filters.clear()
        self._by_filters[tuple(topic_filters)] = found
        return found

    def save(self) -> None:
        """Add the rules' unwritten memory to the pending batch, before a stop."""
        for rules in self._streams.values():
            for active in rules:
                active.save()

    def _wait(self, message: Message, rule: Rule) -> float:
        """Return for how many seconds the message may stay unwritten while the fleet accepts."""
        wait = self._commit_within if rule.commit_within is None else rule.commit_within
        if not wait:
            return 0.0
        if message.commit_within is None or not message.qos:
            return max(wait, UNPROMISED)
        if message.barrier is None:  # its answer waits for the disk in any case
            return 0.0
        return max(wait, message.commit_within)

    def _number(self, message: Message, verdict: Verdict) -> tuple[str, int, list[RuleResult]]:
        stream = verdict.stream
        # filtered messages get a number, too: the ledger explains every gap
        number = self._last[stream] = self._last[stream] + 1
        results = verdict.results
        if results is not None:
            self._counters.add_each(verdict.counted)
        else:
            results = [active.record(message, result) for active, result in verdict.evaluated]
            self._counters.add_each(ACCEPTED if verdict.uplinks else FILTERED)
        if verdict.uplinks:
            if self._ledger is not None:
                self._ledger.numbered(stream, number)
        else:
            verdict.evaluated[-1][0].count_saved(message)
        without = self._uplinks[stream] & ~verdict.uplinks
        if without and self._ledger is not None:
            self._note_filtered(self._ledger, verdict, number, without)
        return stream, number, results

    def _note_filtered(self, ledger: Ledger, verdict: Verdict, number: int, uplinks: int) -> None:
        while uplinks:
            uplink = uplinks & -uplinks
            uplinks &= ~uplink
            rule = verdict.last_for(uplink).name
            if verdict.over_budget & uplink:
                rule += OVER_BUDGET
            ledger.filtered(verdict.stream, number, rule, uplink)
