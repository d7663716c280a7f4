"""The history between the broker, the uplink rules and the database."""

import asyncio
from typing import TYPE_CHECKING

from gateway.access.access import EVERYTHING
from gateway.app.parts import Run, Storage
from gateway.background import background
from gateway.broker.broker import Broker
from gateway.broker.own_names import UPLINK_CLIENT
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.session import Session
from gateway.settings.storage import HistorySettings
from gateway.storage.history.history import History, RecordedRule
from gateway.storage.history.subscriptions import HistorySubscriptions

if TYPE_CHECKING:
    from gateway.uplink.rules.rules import RuleSet

ALL = "#"
"""The recorded topics: all except those that begin with `$`."""

PIECE = 200
"""Subscriptions that are recorded before other work continues."""


class Recorder:
    """An inline client that evaluates the rules, if any, and records accepted messages."""

    client_id = UPLINK_CLIENT
    inline = True
    access = EVERYTHING

    def __init__(self, history: History, rules: "RuleSet | None") -> None:
        self._history = history
        self.rules = rules

    @property
    def topic_filters(self) -> list[str]:
        """The subscriptions: the topics of the rules, and all that is recorded."""
        filters = [] if self.rules is None else self.rules.topic_filters
        return list(dict.fromkeys([*filters, ALL]))

    @property
    def refusal(self) -> str:
        """Why the rules refuse a message."""
        return "" if self.rules is None else self.rules.refusal

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        """Pass the message to the rules; a message that they refuse is not recorded."""
        if self.rules is None:
            self._history.add(message, ())
            return ReasonCode.SUCCESS
        code = self.rules.receive(message, topic_filters)
        if code < FAILURE and ALL in topic_filters:
            self._history.add(message, self.rules.numbers)
        return code


class Recording:
    """Passes messages to the rules, if there are any, and records them while the history is on."""

    def __init__(self, run: Run, storage: Storage, broker: Broker, config: HistorySettings) -> None:
        self.history = History(
            storage.database, storage.writer, run.counters, config.keep, config.maximum_bytes
        )
        self._epoch, self._start = run.epoch, storage.starts
        self._writer = storage.writer
        self._router = broker.router
        self._broker = broker
        self._sessions = HistorySubscriptions(storage.database, storage.writer, self.history)
        self._rules: RuleSet | None = None
        self._recorder: Recorder | None = None
        self._subscribed: tuple[Recorder | RuleSet, list[str]] | None = None
        self._begun = False
        self._clearing: asyncio.Task[None] | None = None
        run.stack.push_async_callback(self.close)

    async def begin(self, rules: "RuleSet | None" = None) -> None:
        """Start recording and passing messages to rules, or only the latter if already started."""
        if self._begun:
            self._join(rules)
            return
        self._begun, self._rules = True, rules
        await self.history.begin(self._epoch, self._start, recorded(rules))
        await self._sessions.begin()
        if self.history.keep:
            self._recorder = Recorder(self.history, rules)
            self._follow_sessions()
            for number, subscription in self._router.subscriptions():
                self._add(number, subscription)
        self.subscribe()

    def _join(self, rules: "RuleSet | None") -> None:
        self._rules = rules
        if self._recorder is not None:
            self._recorder.rules = rules
        self.subscribe()

    def subscribe(self) -> None:
        """Subscribe to the recorded topics, and to the topics of the present rules."""
        if self._rules is not None:
            self.history.record_rules(recorded(self._rules))
        client = self._recorder or self._rules
        filters = [] if client is None else client.topic_filters
        old, before = self._subscribed or (None, [])
        for each in before:
            if old is not None and (old is not client or each not in filters):
                number = self._router.find(old, each)
                if number is not None:
                    self._router.discard(number)
        if client is None:
            self._subscribed = None
            return
        known = before if old is client else []
        self._broker.subscribe_inline(client, [each for each in filters if each not in known])
        self._subscribed = client, list(filters)

    async def change(self, keep: int, maximum_bytes: int) -> None:
        """Use this period and size from now on; with 0 the records are deleted."""
        was_on, is_on = self.history.keep > 0, keep > 0
        if is_on and self._clearing is not None:
            await self._clearing
        self.history.change(keep, maximum_bytes)
        self._writer.hand_over()
        if was_on is is_on:
            return
        if is_on:
            self._recorder = Recorder(self.history, self._rules)
            self.subscribe()
            await self._record_sessions()
            return
        self._recorder = None
        self.subscribe()
        self._router.on_add.remove(self._add)
        self._router.on_discard.remove(self._discard)
        self._sessions.end()
        self._clearing = background(self._clear())

    async def close(self) -> None:
        """Stop; the next start deletes what remains to be deleted."""
        if self._clearing is not None:
            self._clearing.cancel()
            await asyncio.wait([self._clearing])

    async def _clear(self) -> None:
        """Delete the records in small pieces."""
        while await self.history.clear():
            await self._writer.wait_for(self._writer.batch)
        self._clearing = None

    def _follow_sessions(self) -> None:
        self._router.on_add.append(self._add)
        self._router.on_discard.append(self._discard)

    async def _record_sessions(self) -> None:
        """Record the existing subscriptions, a few at a time."""
        self._follow_sessions()
        for place, (number, each) in enumerate(list(self._router.subscriptions())):
            if not place % PIECE:
                await asyncio.sleep(0)
            if self._router.find(each.subscriber, each.topic_filter) == number:
                self._add(number, each)

    def _add(self, number: int, subscription: Subscription) -> None:
        """Record subscriptions of sessions.

        Those of the gateway's own parts are always the same.
        """
        if isinstance(subscription.subscriber, Session):
            self._sessions.add(number, subscription)

    def _discard(self, number: int, _: Subscription) -> None:
        self._sessions.discard(number)


def recorded(rules: "RuleSet | None") -> list[RecordedRule]:
    """Return the rules in the form of the history."""
    return [
        RecordedRule(
            each.place,
            each.rule.stream,
            each.rule.topic,
            None if each.rule.where is None else each.rule.where.text,
            each.rule.lane,
        )
        for each in (() if rules is None else rules.rules)
    ]
