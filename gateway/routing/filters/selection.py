"""Which of the subscriptions that match a topic want one message of it."""

from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

from gateway.access.access import Access
from gateway.access.rule import READ
from gateway.mqtt.message import Message
from gateway.mqtt.publication import Publication
from gateway.routing.budget import CUT_SHORT, PASSED, SKIPPED, Budget
from gateway.routing.filters.filter_index import FilterIndex, IndexEntry
from gateway.routing.route import Destination
from gateway.routing.subscriptions.subscription import Group, Member, Subscriber, Subscription
from gateway.where.compile import Where

Rights: TypeAlias = Callable[[Access], int]
"""Says which rights an access gives on the topic of one message."""

# Compiled, these are C names.
_CUT_SHORT = CUT_SHORT
_PASSED = PASSED
_SKIPPED = SKIPPED
_QUICKLY = True

_NONE: dict[object, int] = {}
"""The verdicts on a message that no filter has read."""

READY = 0
"""The readiness of a member that sends a message at once; who is less ready has more."""

AWAY = 2
"""The readiness of a member that has no connection, or none that may be sent the message."""

ENDED = 4
"""The readiness of a member that is to get nothing more."""


class Selection:
    """Chooses subscriptions for one message; a `$where` that several share is evaluated once.

    The message is the one with this `number` of a publication. It is made when a filter reads it;
    `forget_parts` is to be called when all subscriptions have been considered, of which there were
    so many `evaluations`. Results are stored with the message until then, so that a later turn can
    go on.
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
        self._verdicts: dict[object, int] = _NONE  # what filters said, by expression
        self._postponed: list[Subscription] = []  # whose filters take longer than others may wait
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
        """Forget what expressions have worked out of the message: it may wait from now on.

        What they said is kept if not all could be evaluated.
        """
        message = self._message
        if message is None:
            return
        if self._budget.unfinished:
            message.forget_parts_but(Where)
        else:
            message.part_values = None

    def wants(self, subscription: Subscription, decided: bool = False, quick: bool = False) -> bool:
        """Return whether the subscription's options and its filter let the message through.

        The filter is not evaluated if it is `decided` that it does. One that takes longer than what
        is `quick` is evaluated when all others have been.
        """
        self.evaluations += 1
        if self._rights is not None and not self._rights(subscription.subscriber.access) & READ:
            return False
        # [MQTT-3.8.3-3]: No Local keeps a message from the connection that published it
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
        where: Where,
        message: Message,
        subscription: Subscription,
        decided: bool,
        quick: bool,
    ) -> bool:
        """Return whether a filter lets the message through, evaluating it if nobody has yet."""
        verdict = self._verdicts.get(where)
        if verdict is None or (verdict == _CUT_SHORT and not quick):
            if decided:
                self._budget.count_passed(where)
                verdict = _PASSED
            else:
                client_id = subscription.subscriber.client_id
                verdict = self._budget.evaluate(where, message, client_id, quick)
                if verdict == _SKIPPED:  # which is this subscriber's affair
                    return False
            self._verdicts[where] = verdict
        if verdict == _CUT_SHORT:
            self._postponed.append(subscription)
        return verdict == _PASSED

    def may_read(self, member: Member) -> bool:
        """Return whether a member of a shared subscription may read the topic at all."""
        return self._rights is None or bool(self._rights(member.access) & READ)

    def may_send(self, member: Member) -> bool:
        """Return whether a member's connection may be sent a message of the topic."""
        return self._rights is None or bool(self._rights(member.granted) & READ)

    def filtered(self, indexes: Iterable[FilterIndex]) -> list[Subscription]:
        """Return those in these indexes that want it."""
        found: list[IndexEntry] = []
        wanted: list[Subscription] = []
        message, budget, everybody = self._read_message(), self._budget, self._rights is None
        for index in indexes:
            index.find(message, found)
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
        """Return those that want it."""
        return [one for one in subscriptions if self.wants(one)]

    def choose(
        self, group: Group, given: dict[Subscriber, int] | None = None, more: int = 0
    ) -> Destination | None:
        """Return the readiest member that wants it, of equals the one whose turn comes first.

        Each was `given` so many messages that it has not accepted yet. With so many `more` behind
        this one it is only somebody who would send them all at once.
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
