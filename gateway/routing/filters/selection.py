"""Which of the subscriptions that match a topic want one message of it."""

from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

from gateway.access.access import Access
from gateway.access.rule import READ
from gateway.mqtt.message import Message
from gateway.mqtt.publication import Publication
from gateway.routing.budget import CUT_SHORT, PASSED, SKIPPED, Budget
from gateway.routing.destination import Destination
from gateway.routing.filters.filter_index import FilterIndex
from gateway.routing.filters.operand_index import IndexEntry
from gateway.routing.subscriptions.shared import Group
from gateway.routing.subscriptions.subscription import Member, Subscriber, Subscription
from gateway.where.compile import Where

Rights: TypeAlias = Callable[[Access], int]
"""Says which rights an access gives on the topic of one message."""

# Compiled, these are C names.
_CUT_SHORT = CUT_SHORT
_PASSED = PASSED
_SKIPPED = SKIPPED
_QUICKLY = True

READY = 0
"""The readiness of a member that sends a message at once; who is less ready has more."""

AWAY = 2
"""The readiness of a member that has no connection, or none that may be sent the message."""

ENDED = 4
"""The readiness of a member that is to get nothing more."""


class Selection:
    """Asks subscriptions about one message; a `$where` that several share is evaluated once.

    The message is the one with this `number` of a publication. It is made when a filter asks what
    it says; `forget_parts` is to be called when all have been asked. `asked` counts them. What an
    expression said is kept with the message until then, so that the rest can be asked later.
    """

    __slots__ = (
        "_budget",
        "_late",
        "_message",
        "_number",
        "_publication",
        "_rights",
        "_verdicts",
        "asked",
    )

    def __init__(
        self, budget: Budget, publication: Publication, number: int, rights: Rights | None = None
    ) -> None:
        self._budget = budget
        self._publication = publication
        self._number = number
        self._message: Message | None = None
        self._rights = rights  # None: everybody may read the topic
        self._verdicts: dict[object, int] | None = None  # what `ask` said, by expression
        self._late: list[Subscription] = []  # whose filters take longer than others may wait
        self.asked = 0

    def _said(self) -> Message:
        if self._message is None:
            self._message = self._publication.message(self._number)
        return self._message

    def forget_parts(self) -> None:
        """Forget what expressions have worked out of the message: it may wait from now on.

        What they said is kept if not all could be asked.
        """
        message, self._verdicts = self._message, None
        if message is None:
            return
        if self._budget.unfinished:
            message.forget_parts_but(Where)
        else:
            message.forget_parts()

    def wants(self, subscription: Subscription, decided: bool = False, quick: bool = False) -> bool:
        """Return whether the subscription's options and its filter let the message through.

        The filter is not evaluated if it is `decided` that it does. One that takes longer than what
        is `quick` is asked by `late`.
        """
        self.asked += 1
        if self._rights is not None and not self._rights(subscription.subscriber.access) & READ:
            return False
        # [MQTT-3.8.3-3]: No Local keeps a message from the connection that published it
        if subscription.no_local:
            publisher = self._publication.client_id
            if subscription.subscriber.client_id == publisher:
                return False
        where = subscription.where
        if where is None:
            return True
        verdicts = self._verdicts
        if verdicts is None:
            verdicts = self._verdicts = self._said().part_values()
        verdict = verdicts.get(where)
        if verdict is not None and verdict != _CUT_SHORT:
            return verdict == _PASSED
        if decided:
            self._budget.count_passed(where)
            verdicts[where] = _PASSED
            return True
        said = _CUT_SHORT  # in an earlier turn, or before for another subscriber
        if verdict is None or not quick:
            said = self._budget.ask(where, self._said(), subscription.subscriber.client_id, quick)
        if said == _CUT_SHORT:
            self._late.append(subscription)
        if said != _SKIPPED:  # which is this subscriber's affair
            verdicts[where] = said
        return said == _PASSED

    def may_read(self, member: Member) -> bool:
        """Return whether a member of a shared subscription may read the topic at all."""
        return self._rights is None or bool(self._rights(member.access) & READ)

    def may_send(self, member: Member) -> bool:
        """Return whether a member's connection may be sent a message of the topic."""
        return self._rights is None or bool(self._rights(member.granted) & READ)

    def filtered(self, indexes: Iterable[FilterIndex]) -> list[Subscription]:
        """Return those in these indexes that want it."""
        found: list[IndexEntry] = []
        for index in indexes:
            index.find(self._said(), found)
        wanted: list[Subscription] = []
        for entry in found:
            if self._budget.unfinished:
                break
            held, decided = entry.subscriptions, entry.decided
            if isinstance(held, set):
                wanted.extend([one for one in held if self.wants(one, decided, _QUICKLY)])
            elif held is not None and self.wants(held, decided, _QUICKLY):
                wanted.append(held)
        if self._late:
            late, self._late = self._late, []
            wanted.extend([one for one in late if self.wants(one)])
        return wanted

    def wanted(self, subscriptions: Iterable[Subscription]) -> list[Subscription]:
        """Return those that want it."""
        return [one for one in subscriptions if self.wants(one)]

    def choose(
        self, group: Group[Subscription], given: dict[Subscriber, int] | None = None, more: int = 0
    ) -> Destination | None:
        """Return the readiest member that wants it, of equals the one whose turn comes first.

        Each was `given` so many messages that it has not accepted yet. With so many `more` behind
        this one it is only somebody who would send them all at once.
        """
        best: Subscription | None = None
        lowest, members = ENDED, group.members
        for index in group.take_turns():
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
