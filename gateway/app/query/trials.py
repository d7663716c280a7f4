"""Edited uplink rules that run beside the present ones: `rule/try`, `rule/trial`."""

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.app.parts import Core, Run
from gateway.app.query.topics import payload_of
from gateway.app.responder import SHOWN, Answer, Request, RequestError, Responder
from gateway.broker.client import Client
from gateway.broker.own_names import UPLINK_CLIENT
from gateway.config.errors import ConfigurationError
from gateway.errors import TidegateError
from gateway.mqtt.publication import Publication
from gateway.settings.declaration import TABLES_MAX

if TYPE_CHECKING:
    from gateway.app.query.rule_edit import Check, NamedRule, RuleEdit
    from gateway.uplink.rules.rule import Rule
    from gateway.uplink.rules.rules import RuleSet
    from gateway.uplink.rules.trial import Side, Trial

logger = logging.getLogger(__name__)

MAXIMUM_TRIALS = 4
"""Concurrent trials; an ended one is removed for a new one."""

USUAL_SECONDS, MAXIMUM_SECONDS = 60, 3_600
"""The default and the longest duration of a trial."""

OWNER_SECONDS = 0.5
"""Seconds between two checks whether the client of a trial is still connected."""

MAXIMUM_NAME = 80
"""Characters of a trial's name."""

DAY = 86_400.0

CHANGED = "the rules were changed"
OVER = "its time is over"


class RunningTrial:
    """A trial with its owner and its time; it has ended once it has a `reason`."""

    def __init__(
        self, name: str, client_id: str, owner: Client, edit: "RuleEdit", trial: "Trial"
    ) -> None:
        self.name = name
        self.client_id = client_id
        self.owner = owner
        self.edit = edit
        self.trial = trial
        self.reason = ""
        self.seconds = 0
        self.began = self.ended = 0.0
        self.over = asyncio.Event()


class RuleTrials:
    """Tries rules on live messages on request; without a trial no message is evaluated.

    A message that a rule is for is evaluated before it is numbered: rules then remember only
    earlier messages. One that no rule is for is evaluated when it is delivered.
    """

    def __init__(
        self,
        run: Run,
        core: Core,
        responder: Responder,
        check: "Check",
    ) -> None:
        self._check = check
        self._run = run
        self._core = core
        self._rules: RuleSet | None = None
        self._trials: dict[str, RunningTrial] = {}
        self._others: list[Trial] = []
        self._tasks: set[asyncio.Task[None]] = set()
        edit = ("uplink", "rule", "set", "remove", "at")
        responder.know("rule/try", self._try, "name", *edit, "seconds", "wait")
        responder.know("rule/trial", self._report, "name", "end")
        run.stack.callback(self._stop)

    def follow(self, rules: "RuleSet") -> None:
        """Try rules beside these."""
        self._rules = rules

    def end_all(self) -> None:
        """End all trials: the rules beside which they run change."""
        for each in self._trials.values():
            self._end(each, CHANGED)

    async def _try(self, request: Request) -> Answer:
        name = request.text("name") or request.client_id[:MAXIMUM_NAME]
        seconds = request.whole("seconds", 1, MAXIMUM_SECONDS, USUAL_SECONDS)
        wait = request.flag("wait")
        edit, new = await self._edit(request)
        owner = self._core.broker.clients.get(request.client_id)
        if owner is None:
            raise RequestError("the trial's client is not connected any more")
        self._evict(name, request.client_id)
        trial = self._make(edit, new)
        running = RunningTrial(name, request.client_id, owner, edit, trial)
        running.seconds = seconds
        self._begin(running)
        if wait:
            await request.wait_for(running.over.wait())
        return {"trial": self._shown(running)}

    async def _edit(self, request: Request) -> "tuple[RuleEdit, Rule | None]":
        """Return the requested edit, and the rule after it."""
        from gateway.app.query.rule_edit import RuleChange, edit_rule, rule_names

        configuration = self._run.configuration

        change = RuleChange(
            request.text("uplink"),
            request.text("rule"),
            request.table("set"),
            request.flag("remove"),
            request.whole("at", 0, TABLES_MAX, TABLES_MAX),
        )

        def check() -> "tuple[RuleEdit, Rule | None]":
            edit = edit_rule(configuration, change, self._check)
            return edit, _rule_of(edit.new)

        try:
            # in a thread: it compiles expressions, and reads files that the uplinks name
            edit, new = await request.wait_for(asyncio.to_thread(check))
        except (ConfigurationError, TidegateError) as error:
            raise RequestError(str(error)) from None
        there = [] if self._rules is None else self._rules.rules
        names = [each.name for each in rule_names(configuration.uplinks)]
        if names != [each.name for each in there]:  # in the middle of a reload
            raise RequestError("the rules are being changed; try again")
        return edit, new

    def _evict(self, name: str, client_id: str) -> None:
        """End the owner's trial of this name, or remove an ended one."""
        if len(name) > MAXIMUM_NAME:
            raise RequestError(f"name has {len(name)} characters, not at most {MAXIMUM_NAME}")
        same = self._trials.get(name)
        if same is not None and same.client_id != client_id:
            raise RequestError(f"trial {name!r} is one of client {same.client_id[:SHOWN]!r}")
        if same is not None:
            self._forget(same)
        over = [each for each in self._trials.values() if each.reason]
        if len(self._trials) >= MAXIMUM_TRIALS and over:
            self._forget(over[0])
        if len(self._trials) >= MAXIMUM_TRIALS:
            known = ", ".join(repr(each) for each in self._trials)
            raise RequestError(f"{MAXIMUM_TRIALS} trials run already: {known}; end one of them")

    def _make(self, edit: "RuleEdit", new: "Rule | None") -> "Trial":
        from gateway.uplink.rules.trial import Side, Trial

        active = [] if self._rules is None else self._rules.rules
        # with what each remembers, also from an earlier configuration
        there = [replace(each.rule, where=each.where) for each in active]
        before = after = old = None
        if edit.old is not None:
            old = there[edit.old.place]
            before = Side(old, there[: edit.old.place], edited=False)
        if edit.new is not None and new is not None:
            others = [each for each in there if each is not old]
            after = Side(new, others[: edit.new.place], edited=True)
        filters = [] if self._rules is None else self._rules.topic_filters
        return Trial(before, after, filters, self._core.broker.budget)

    def _begin(self, running: RunningTrial) -> None:
        rules, trial = self._rules, running.trial
        if rules is None:
            raise RequestError("nothing is sent: there is no [uplink]")
        line = "trial %.80r of a rule for %d s, requested by client %.80r"
        logger.info(line, running.name, running.seconds, running.client_id)
        running.began = self._run.clock.monotonic()
        self._trials[running.name] = running
        rules.before_numbers.append(trial.evaluate)
        if trial.new is not None and trial.new.rule.topic not in rules.topic_filters:
            self._others.append(trial)
            self._core.broker.watch = self._evaluate
        task = asyncio.get_running_loop().create_task(self._watch(running))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self, running: RunningTrial) -> None:
        """End a trial when its time is over, and remove it when its owner has disconnected."""
        clients = self._core.broker.clients
        while clients.get(running.client_id) is running.owner:
            remaining = running.began + running.seconds - self._run.clock.monotonic()
            if remaining <= 0:
                self._end(running, OVER)
            await asyncio.sleep(min(remaining, OWNER_SECONDS) if remaining > 0 else OWNER_SECONDS)
            if self._trials.get(running.name) is not running:
                return
        self._forget(running)

    def _evaluate(self, publication: Publication, first: int, count: int) -> None:
        """Evaluate messages that no rule is for."""
        if publication.client_id == UPLINK_CLIENT:  # it came down, and no rule sends it up
            return
        for number in range(first, first + count):
            topic = publication.topic_of(number)
            for trial in self._others:
                if trial.wants(topic):
                    trial.evaluate_other(publication.message(number))

    def _end(self, running: RunningTrial, reason: str) -> None:
        """Stop evaluating messages; results stay."""
        if running.reason:
            return
        running.reason = reason
        running.ended = self._run.clock.monotonic()
        running.over.set()
        if self._rules is not None:
            self._rules.before_numbers.remove(running.trial.evaluate)
        if running.trial in self._others:
            self._others.remove(running.trial)
            if not self._others:
                self._core.broker.watch = None

    def _forget(self, running: RunningTrial) -> None:
        self._end(running, OVER)
        if self._trials.get(running.name) is running:
            del self._trials[running.name]

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for each in list(self._trials.values()):
            self._forget(each)

    async def _report(self, request: Request) -> Answer:
        name = request.text("name") or request.client_id[:MAXIMUM_NAME]
        running = self._trials.get(name)
        if running is None:
            known = ", ".join(repr(each) for each in self._trials) or "none"
            raise RequestError(f"there is no trial {name[:MAXIMUM_NAME]!r}; there are: {known}")
        if request.flag("end"):
            self._end(running, f"ended by client {request.client_id[:MAXIMUM_NAME]!r}")
        return {"trial": self._shown(running)}

    def _shown(self, running: RunningTrial) -> dict[str, object]:
        now = running.ended if running.reason else self._run.clock.monotonic()
        elapsed = max(0.001, now - running.began)
        trial, edit = running.trial, running.edit
        return {
            "name": running.name,
            "client": running.client_id,
            "state": "over" if running.reason else "running",
            "reason": running.reason,
            "seconds": running.seconds,
            "elapsed_seconds": round(elapsed, 1),
            "messages": trial.messages,
            "old": self._side(edit.old, trial.old, elapsed),
            "new": self._side(edit.new, trial.new, elapsed),
            "only_old": trial.only_old,
            "only_new": trial.only_new,
            "untracked": trial.untracked,
            "differences": [
                {
                    "number": each.number,
                    "time": each.received_at,
                    "topic": each.topic,
                    **payload_of(each.payload, each.size),
                    "taken_by": "new" if each.by_new else "old",
                }
                for each in trial.differences
            ],
        }

    def _side(
        self, named: "NamedRule | None", side: "Side | None", elapsed: float
    ) -> dict[str, object] | None:
        if named is None or side is None:
            return None
        rule, worst = named.placed.rule, side.worst
        names = self._run.configuration.uplinks
        return {
            "rule": named.name,
            "uplinks": [names[place].name or "" for place in named.placed.uplinks],
            "topic": rule.topic,
            "where": rule.where,
            "stream": rule.stream,
            "lane": rule.lane,
            "target": rule.target,
            "retain": rule.retain,
            "qos": rule.qos,
            "messages": side.messages,
            "bytes": side.bytes,
            "bytes_a_day": round(side.bytes * DAY / elapsed),
            "null": side.null,
            "over_budget": side.over_budget,
            "gap": None if worst is None else {"topic": worst[0], "seconds": round(worst[1], 3)},
        }


def _rule_of(named: "NamedRule | None") -> "Rule | None":
    if named is None:
        return None
    from gateway.uplink.rules.rule import Rule
    from gateway.where.rule import compile_rule

    rule = named.placed.rule
    where = None if rule.where is None else compile_rule(rule.where)
    return Rule(rule.topic, where, rule.stream, rule.lane, None, named.placed.bits, rule.retain)
