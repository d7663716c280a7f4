"""The history between the broker, the uplink rules and the database."""

from typing import TYPE_CHECKING, NamedTuple

from gateway.access.access import EVERYTHING
from gateway.app.parts import Core, Run, Storage
from gateway.broker.broker import Broker
from gateway.broker.own_names import UPLINK_CLIENT
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.session import Session
from gateway.storage.history.history import History, RecordedRule
from gateway.storage.history.subscriptions import HistorySubscriptions

if TYPE_CHECKING:
    from gateway.uplink.rules.rules import RuleSet

ALL = "#"
"""What is recorded: every topic but those that begin with `$`."""


class Recorder:
    """An inline client that asks the rules, where there are any, and records what was taken in."""

    client_id = UPLINK_CLIENT
    inline = True
    access = EVERYTHING

    def __init__(self, history: History, rules: "RuleSet | None") -> None:
        self._history = history
        self.rules = rules

    @property
    def topic_filters(self) -> list[str]:
        """What to subscribe to: the topics of the rules, and all that is recorded."""
        filters = [] if self.rules is None else self.rules.topic_filters
        return list(dict.fromkeys([*filters, ALL]))

    @property
    def refusal(self) -> str:
        """Why the rules refuse a message."""
        return "" if self.rules is None else self.rules.refusal

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        """Hand the message to the rules; what they refuse is not recorded."""
        if self.rules is None:
            self._history.add(message, ())
            return ReasonCode.SUCCESS
        code = self.rules.receive(message, topic_filters)
        if code < FAILURE and ALL in topic_filters:
            self._history.add(message, self.rules.numbers)
        return code


class Recording(NamedTuple):
    """The history, and, where it is on, the client that asks the rules and records."""

    history: History
    recorder: Recorder | None

    def join(self, rules: "RuleSet", broker: Broker) -> None:
        """Ask these rules from now on, which come while the gateway runs."""
        self.history.record_rules(recorded(rules))
        if self.recorder is None:
            broker.subscribe_inline(rules, rules.topic_filters)
            return
        self.recorder.rules = rules
        filters = [each for each in self.recorder.topic_filters if each != ALL]
        broker.subscribe_inline(self.recorder, filters)


async def record(
    run: Run, storage: Storage, core: Core, rules: "RuleSet | None" = None
) -> Recording:
    """Begin the history, which asks the rules itself where it is on."""
    config = run.configuration.history
    history = History(
        storage.database, storage.writer, run.counters, config.keep, config.maximum_bytes
    )
    await history.begin(run.epoch, storage.starts, recorded(rules))
    await _record_subscriptions(storage, core, history)
    if not config.keep:
        return Recording(history, None)
    recorder = Recorder(history, rules)
    core.broker.subscribe_inline(recorder, recorder.topic_filters)
    return Recording(history, recorder)


def recorded(rules: "RuleSet | None") -> list[RecordedRule]:
    """Return the rules as the history knows them."""
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


async def _record_subscriptions(storage: Storage, core: Core, history: History) -> None:
    """Record those of sessions; who the parts of the gateway are is no news."""
    recorded = HistorySubscriptions(storage.database, storage.writer, history)

    def add(number: int, subscription: Subscription) -> None:
        if isinstance(subscription.subscriber, Session):
            recorded.add(number, subscription)

    await recorded.begin()
    if history.keep:
        router = core.broker.router
        for number, subscription in router.subscriptions():
            add(number, subscription)
        router.on_add.append(add)
        router.on_discard.append(lambda number, _: recorded.discard(number))
