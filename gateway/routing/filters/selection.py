"""Selects the subscriptions that want one message, from those whose topic filters match."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias, cast

from gateway.access.access import Access
from gateway.access.rule import READ
from gateway.mqtt.message import Message
from gateway.mqtt.publication import Publication
from gateway.routing.budget import CUT_SHORT, PASSED, SKIPPED, Budget
from gateway.routing.filters.filter_index import FilterIndex, IndexEntry
from gateway.routing.route import Destination
from gateway.routing.subscriptions.subscription import Group, Member, Subscriber, Subscription

if TYPE_CHECKING:
    from gateway.where.compile import Where

Rights: TypeAlias = Callable[[Access], int]
"""Returns the rights that an access gives on the message's topic."""

# Compiled, these are C names.
_CUT_SHORT = CUT_SHORT
_PASSED = PASSED
_SKIPPED = SKIPPED
_QUICKLY = True

_NONE: dict[object, int] = {}
"""The verdicts on a message before any filter is evaluated."""

MEASURED = 64
"""Searches of an index of which the first is measured."""

READY = 0
"""The readiness of a member that sends a message at once; a higher value is less ready."""

AWAY = 2
"""The readiness of a member without a connection, or whose connection may not be sent the
message."""

ENDED = 4
"""The readiness of a member that gets nothing more."""


class Selection:
    """Selects subscriptions for one message; a `$where` that several share is evaluated once.

    The message is the one with this `number` of a publication; its object is made when a filter
    reads it. Call `forget_parts` after all subscriptions were considered; `evaluations` is how many
    there were. Results are stored with the message until then, so that a later turn can continue.
    """

    __slots__ = (
        "_budget",
        "_message",
        "_number",
        "_postponed",
        "_publication",
        "_rights",
        "_verdicts",
        "evaluations",
    )

    def __init__(
        self, budget: Budget, publication: Publication, number: int, rights: Rights | None = None
    ) -> None:
        self._budget = budget
        self._publication = publication
        self._number = number
        self._message: Message | None = None
        self._rights = rights  # None: everybody may read the topic
        self._verdicts: dict[object, int] = _NONE  # results of filters, by expression
        self._postponed: list[Subscription] = []  # their filters were cut short
        self.evaluations = 0

    def _read_message(self) -> Message:
        message = self._message
        if message is None:
            message = self._message = self._publication.message(self._number)
            if message.part_values is None:
                message.part_values = {}
            self._verdicts = message.part_values
        return message

    def forget_parts(self) -> None:
        """Free the parsed parts of the message, which may now wait for long.

        Results stay if not all filters could be evaluated.
        """
        message = self._message
        if message is None:
            return
        if self._budget.unfinished:
            from gateway.where.compile import Where

            message.forget_parts_but(Where)
        else:
            message.part_values = None

    def wants(self, subscription: Subscription, decided: bool = False, quick: bool = False) -> bool:
        """Return whether the subscription's options and its filter pass the message.

        The filter is not evaluated if an index has `decided` it. With `quick`, a filter that takes
        longer is postponed until all others were evaluated.
        """
        self.evaluations += 1
        if self._rights is not None and not self._rights(subscription.subscriber.access) & READ:
            return False
        # [MQTT-3.8.3-3]: No Local excludes the client that published it
        if subscription.no_local:
            publisher = self._publication.client_id
            if subscription.subscriber.client_id == publisher:
                return False
        where = subscription.where
        return where is None or self._passes(
            where, self._read_message(), subscription, decided, quick
        )

    def _passes(
        self,
        where: "Where",
        message: Message,
        subscription: Subscription,
        decided: bool,
        quick: bool,
    ) -> bool:
        """Return whether a filter passes the message; it is evaluated once for all."""
        verdict = self._verdicts.get(where)
        if verdict is None or (verdict == _CUT_SHORT and not quick):
            if decided:
                self._budget.count_passed(where)
                verdict = _PASSED
            else:
                client_id = subscription.subscriber.client_id
                verdict = self._budget.evaluate(where, message, client_id, quick)
                if verdict == _SKIPPED:  # skipped for this subscriber only
                    return False
            self._verdicts[where] = verdict
        if verdict == _CUT_SHORT:
            self._postponed.append(subscription)
        return verdict == _PASSED

    def may_read(self, member: Member) -> bool:
        """Return whether a member of a shared subscription may read the topic at home."""
        return self._rights is None or bool(self._rights(member.access) & READ)

    def may_send(self, member: Member) -> bool:
        """Return whether a member's connection may be sent a message of the topic."""
        return self._rights is None or bool(self._rights(member.granted) & READ)

    def filtered(self, indexes: Iterable[FilterIndex]) -> list[Subscription]:
        """Return the subscriptions of these indexes that want it."""
        found: list[IndexEntry] = []
        wanted: list[Subscription] = []
        message, budget, everybody = self._read_message(), self._budget, self._rights is None
        for index in indexes:
            index.find(message, found)
            if index.messages % MEASURED == 1 and budget.timer is not None:
                index.measure(message, budget.timer)
        for entry in found:
            if budget.unfinished:
                break
            held = entry.subscriptions
            if type(held) is Subscription and everybody and not held.no_local:  # nearly always
                self.evaluations += 1
                if self._passes(entry.where, message, held, entry.decided, _QUICKLY):
                    wanted.append(held)
            else:
                each = held if isinstance(held, set) else [held] if held is not None else []
                wanted.extend([one for one in each if self.wants(one, entry.decided, _QUICKLY)])
        if self._postponed:
            postponed, self._postponed = self._postponed, []
            wanted.extend([one for one in postponed if self.wants(one)])
        return wanted

    def wanted(self, subscriptions: Iterable[Subscription]) -> list[Subscription]:
        """Return the subscriptions that want it."""
        return [one for one in subscriptions if self.wants(one)]

    def choose(
        self, group: Group, given: dict[Subscriber, int] | None = None, more: int = 0
    ) -> Destination | None:
        """Return the readiest member that wants it; equal ones take turns.

        Each was `given` so many messages that it has not accepted yet. With `more` messages after
        this one, only a member that can send all of them at once is returned.
        """
        best: Subscription | None = None
        lowest, members = ENDED, group.members
        for index in group.rotate():
            member = members[index]
            if not self.wants(member):
                continue
            qos = min(member.qos, self._publication.qos)  # [MQTT-4.8.2-3]
            subscriber = cast("Member", member.subscriber)
            ahead = given.get(subscriber, 0) if given else 0
            readiness = subscriber.readiness(qos, ahead + more)
            if readiness < AWAY and not self.may_send(subscriber):
                readiness = AWAY
            if readiness < lowest:
                best, lowest = member, readiness
                if readiness == READY:
                    break
        if best is None or (more and lowest != READY):
            return None
        chosen = Destination(best.subscriber, shared=True)
        chosen.add(best)
        return chosen
