"""The history between the broker, the uplink rules and the database."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.access.access import EVERYTHING
from gateway.app.parts import Core, Run, Storage
from gateway.broker.own_names import UPLINK_CLIENT
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.routing.subscriptions.subscription import Subscription
from gateway.session.session import Session
from gateway.storage.history.history import History, RecordedRule
from gateway.storage.history.subscriptions import HistorySubscriptions

if TYPE_CHECKING:
    from gateway.uplink.rules.rule import Rule
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
        self._rules = rules
        filters = [] if rules is None else rules.topic_filters
        self.topic_filters = list(dict.fromkeys([*filters, ALL]))

    @property
    def refusal(self) -> str:
        """Why the rules refuse a message."""
        return "" if self._rules is None else self._rules.refusal

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:
        """Hand the message to the rules; what they refuse is not recorded."""
        if self._rules is None:
            self._history.add(message, ())
            return ReasonCode.SUCCESS
        code = self._rules.receive(message, topic_filters)
        if code < FAILURE and ALL in topic_filters:
            self._history.add(message, self._rules.numbers)
        return code


async def record(
    run: Run, storage: Storage, core: Core, rules: "RuleSet | None", configured: "Sequence[Rule]"
) -> bool:
    """Begin the history; return whether it is on, and then asks the rules itself."""
    config = run.configuration.history
    history = History(
        storage.database, storage.writer, run.counters, config.keep, config.maximum_bytes
    )
    recorded = [
        RecordedRule(
            index,
            rule.stream,
            rule.topic,
            None if rule.where is None else rule.where.text,
            rule.lane,
        )
        for index, rule in enumerate(configured)
    ]
    await history.begin(run.epoch, storage.starts, recorded)
    await _record_subscriptions(storage, core, history)
    if config.keep:
        recorder = Recorder(history, rules)
        core.broker.subscribe_inline(recorder, recorder.topic_filters)
    return config.keep > 0


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
