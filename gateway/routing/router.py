"""Finds the receivers of a message: matching subscriptions, one destination per subscriber."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from gateway.access.access import Access
from gateway.access.rule import READ
from gateway.mqtt.publication import Publication
from gateway.mqtt.topics import SHARED_PREFIX, split_shared
from gateway.routing.budget import Budget
from gateway.routing.filters.filter_index import FilterIndex
from gateway.routing.filters.selection import READY, Rights, Selection
from gateway.routing.route import CROWDED, NOWHERE, Destination, Match, Route, destinations
from gateway.routing.subscriptions.direct import NO_LOCAL, DirectSubscriptions, subscriber_of
from gateway.routing.subscriptions.indirect import (
    INDIRECT,
    PLACE,
    IndirectSubscriptions,
)
from gateway.routing.subscriptions.subscription import (
    Group,
    Member,
    Subscriber,
    Subscribers,
    Subscription,
)
from gateway.routing.trie.topic_trie import TooManyNodes
from gateway.settings.broker import MAXIMUM_SUBSCRIPTION_BYTES

if TYPE_CHECKING:
    from gateway.where.compile import Where

SUBSCRIBER = (1 << PLACE) - 1
"""The bits of a subscription's number that are its subscriber's."""

OF_ONE = 16 * 1024
OF_CHARACTER = 64
"""Upper bounds of the bytes of a subscription, and of each character of its topic filter, which may
be a level of its own; expressions come on top."""

RUN = 32
"""Messages of one publisher, read together, that a member of a shared subscription gets at most
before the next member; a channel's consumer that has others already gets as many."""


class Router:
    """All subscriptions of a gateway, by topic filter.

    An unshared subscription whose `$where` compares a value with a constant is evaluated only if
    that comparison is TRUE for a message.

    While `full`, the caller must refuse a new subscription and count that. `budget` evaluates the
    filters and counts. `on_add` and `on_discard` are called with every subscription that is added
    or removed, and its number. `on_change` is called with its topic filter: routes of topics that
    it matches are invalid then.

    A subscriber that may not read a topic gets no message of it. `restricts` is False while that
    concerns only topics that begin with `$`.
    """

    __slots__ = (
        "_added",
        "_budget",
        "_direct",
        "_empty",
        "_filtered",
        "_indirect",
        "_is_changed",
        "_measured",
        "_sharing",
        "_subscribers",
        "evaluations",
        "maximum_bytes",
        "on_add",
        "on_change",
        "on_discard",
        "restricts",
    )

    def __init__(
        self,
        budget: Budget,
        maximum_bytes: int = MAXIMUM_SUBSCRIPTION_BYTES,
    ) -> None:
        self._subscribers = Subscribers()
        self._direct = DirectSubscriptions(self._subscribers)
        self._indirect = IndirectSubscriptions()
        self._filtered: Counter[int] = Counter()  # subscriptions with a `$where`, by subscriber
        self._sharing: Counter[int] = Counter()  # shared subscriptions, by subscriber
        self.on_add: list[Callable[[int, Subscription], None]] = []
        self.on_discard: list[Callable[[int, Subscription], None]] = []
        self.on_change: Callable[[str], None] = lambda topic_filter: None  # noqa: ARG005 - keeps the name
        self._budget = budget
        self._measured = 0  # the bytes when they were last added up
        self._is_changed = False  # whether a subscription was added or removed since
        self._added = 0  # an upper bound of the bytes added since
        self._empty = self._memory()
        self.maximum_bytes = maximum_bytes
        self.restricts = False
        self.evaluations = 0  # rights checks and evaluated subscriptions, by weight

    @property
    def bytes(self) -> int:
        """About the bytes that the subscriptions occupy; 0 without any."""
        if self._is_changed:
            self._measured = self._memory() - self._empty
            self._added, self._is_changed = 0, False
        return self._measured

    def _memory(self) -> int:
        return self._subscribers.memory() + self._direct.memory() + self._indirect.memory()

    @property
    def full(self) -> bool:
        """True once the bound is reached; the last subscription may have exceeded it."""
        return not self.occupies_less(self.maximum_bytes)

    def occupies_less(self, size: int) -> bool:
        """Return whether the subscriptions occupy less than this many bytes.

        They are not added up while the additions since last time cannot matter: tables at most
        double when they grow.
        """
        if 2 * self._measured + self._added < size:
            return True
        return self.bytes < size

    def __len__(self) -> int:
        return self._subscribers.total

    @property
    def shared(self) -> int:
        """How many of the subscriptions are shared ones."""
        return self._indirect.shared

    def add(self, subscription: Subscription) -> int:
        """Route matching messages to the subscription; return its number.

        It replaces its subscriber's subscription with the same topic filter, if any.
        """
        topic_filter = subscription.topic_filter
        shared = topic_filter.startswith(SHARED_PREFIX)
        indirect = shared or subscription.where is not None
        table = self._indirect if indirect else self._direct
        node = table.reach(topic_filter)
        subscriber = self._subscribers.find(subscription.subscriber)
        if subscriber >= 0 and self._discard_like(subscriber, node, topic_filter):
            # after removing the other one, which may have freed its node and number
            node = table.reach(topic_filter)
            subscriber = -1
        if subscriber < 0:
            subscriber = self._subscribers.join(subscription.subscriber)
        table.put(node, subscriber, subscription)
        self._subscribers.hold(subscriber, node)
        self._count(subscriber, subscription, 1)
        where = subscription.where
        self._added += OF_ONE + OF_CHARACTER * len(topic_filter) + (where.bytes if where else 0)
        self._is_changed = True
        number = node << PLACE | subscriber
        self.on_change(split_shared(topic_filter)[1] if shared else topic_filter)
        for callback in self.on_add:
            callback(number, subscription)
        return number

    def _discard_like(self, who: int, node: int, topic_filter: str) -> bool:
        """Remove the subscription with the same subscriber and topic filter, from either table."""
        if not self._subscribers.holds(who, node):
            if not node & INDIRECT:
                node = self._indirect.node(who, topic_filter)
            elif self._subscribers.first(who) < INDIRECT:  # it has direct ones, too
                node = self._direct.node(who, topic_filter)
            else:
                return False
        if node:
            self.discard(node << PLACE | who)
        return node > 0

    def find(self, subscriber: Subscriber, topic_filter: str) -> int | None:
        """Return the number of a subscription, None if there is none."""
        who = self._subscribers.find(subscriber)
        if who < 0:
            return None
        node = self._direct.node(who, topic_filter)
        if not node and self._indirect:
            node = self._indirect.node(who, topic_filter)
        return node << PLACE | who if node else None

    def count(self, subscriber: Subscriber) -> int:
        """Return how many subscriptions the subscriber has."""
        return self._subscribers.count(self._subscribers.find(subscriber))

    def filtered(self, subscriber: Subscriber) -> int:
        """Return how many subscriptions with a `$where` the subscriber has."""
        return self._filtered[self._subscribers.find(subscriber)]

    def uses(self, where: "Where") -> bool:
        """Return whether a subscription has this expression."""
        return self._indirect.uses(where)

    def sharing(self, subscriber: Subscriber) -> int:
        """Return how many shared subscriptions the subscriber has."""
        return self._sharing[self._subscribers.find(subscriber)]

    def _count(self, subscriber: int, subscription: Subscription, more: int) -> None:
        """Count a subscription that is added, or, if negative, removed."""
        shared = subscription.topic_filter.startswith(SHARED_PREFIX)
        for counts, belongs in (
            (self._filtered, subscription.where is not None),
            (self._sharing, shared),
        ):
            if belongs:
                counts[subscriber] += more
                # otherwise an entry for each former subscriber would remain
                if not counts[subscriber]:
                    del counts[subscriber]

    def numbers(self, subscriber: Subscriber) -> list[int]:
        """Return the numbers of the subscriber's subscriptions."""
        who = self._subscribers.find(subscriber)
        if who < 0:
            return []
        return [node << PLACE | who for node in self._subscribers.places(who)]

    def index(self, topic_filter: str) -> FilterIndex | None:
        """Return the index of a topic filter's filtered subscriptions, None without any."""
        return self._indirect.index(topic_filter)

    def subscriptions(self) -> Iterator[tuple[int, Subscription]]:
        """Yield every subscription with its number."""
        for who in self._subscribers.numbers():
            for node in self._subscribers.places(who):
                yield node << PLACE | who, self._table(node).get(node, who)

    def forget_destinations(self, subscriber: Subscriber) -> None:
        """Let a subscriber's filtered subscriptions find their destinations again."""
        if self.filtered(subscriber):
            for number in self.numbers(subscriber):
                if number >> PLACE & INDIRECT:
                    self.subscription(number).destination = None

    def subscription(self, number: int) -> Subscription:
        """Return the subscription with this number; raise KeyError without one."""
        node, who = number >> PLACE, number & SUBSCRIBER
        if not self._subscribers.holds(who, node):
            raise KeyError(number)
        return self._table(node).get(node, who)

    def _table(self, node: int) -> DirectSubscriptions | IndirectSubscriptions:
        return self._indirect if node & INDIRECT else self._direct

    def discard(self, number: int) -> None:
        """Remove the subscription with this number; raise KeyError without one."""
        node, who = number >> PLACE, number & SUBSCRIBER
        subscription = self.subscription(number)
        self._table(node).remove(node, who)
        self._subscribers.release(who, node)
        self._count(who, subscription, -1)
        self._is_changed = True
        self.on_change(split_shared(subscription.topic_filter)[1])
        for callback in self.on_discard:
            callback(number, subscription)

    def channel(self, topic_filter: str) -> Subscriber | None:
        """Return the channel that gives a topic filter's subscribers messages, None without one."""
        return self._indirect.channel(topic_filter)

    def attach(self, topic_filter: str, channel: Subscriber, *, is_open: bool = False) -> Group:
        """Give the messages of a shared subscription to a channel, with or without a member.

        Shared subscriptions of the same name to a part of its topics join it if it `is_open`.
        Returns the group of its members; `topic_filter` begins with `$share/`.
        """
        group = self._indirect.attach(topic_filter, channel, is_open=is_open)
        self._added += OF_ONE + OF_CHARACTER * len(topic_filter)
        self._is_changed = True
        self.on_change(split_shared(topic_filter)[1])
        return group

    def detach(self, topic_filter: str) -> None:
        """Give the messages of a channel's shared subscription to its members again."""
        self._indirect.detach(topic_filter)
        self._is_changed = True
        self.on_change(split_shared(topic_filter)[1])

    def selection(self, publication: Publication, number: int) -> Selection:
        """Return a selection for one message, with the rights to its topic."""
        topic = publication.topic_of(number)
        rights = (lambda access: access.rights(topic)) if self.restricted(topic) else None
        self._budget.begin()
        return Selection(self._budget, publication, number, rights)

    def match(self, topic: str) -> Match:
        """Return what a topic matches, valid until a matching subscription changes."""
        try:
            nodes = tuple(self._direct.trie.nodes(topic))
            barred = self._barred(nodes, topic) if self.restricted(topic) else ()
            if not self._indirect:
                return nodes, (), (), barred
            return nodes, *self._indirect.match(topic), barred
        except TooManyNodes:
            return CROWDED

    def restricted(self, topic: str) -> bool:
        """Return whether there may be subscribers that may not read the topic."""
        return self.restricts or topic.startswith("$")

    def _barred(self, nodes: tuple[int, ...], topic: str) -> tuple[int, ...]:
        """Return the numbers of matching subscribers that may not read the topic."""
        verdicts: dict[Access, bool] = {}
        barred = []
        for entry in self._direct.entries(nodes):
            number = subscriber_of(entry)
            access = self._subscribers.subscriber(number).access
            may_read = verdicts.get(access)
            if may_read is None:
                may_read = verdicts[access] = bool(access.rights(topic) & READ)
                self.evaluations += access.weight
            if not may_read:
                barred.append(number)
        return tuple(barred)

    def route(self, match: Match) -> Route:
        """Return the route of topics with this match."""
        if match in (NOWHERE, CROWDED):
            return Route(match)
        own = self._direct.entries(match[0])
        if match[3]:
            barred = set(match[3])
            own = [entry for entry in own if subscriber_of(entry) not in barred]
        evaluated = {subscriber_of(entry) for entry in own if entry & NO_LOCAL}
        if match[1]:  # an index may find more subscriptions of subscribers that have filtered ones
            evaluated.update(self._filtered)
        if not evaluated:
            return Route(match, self._direct.destinations(own))
        always = [entry for entry in own if subscriber_of(entry) not in evaluated]
        conditional = [entry for entry in own if subscriber_of(entry) in evaluated]
        return Route(
            match,
            self._direct.destinations(always),
            [self._direct.subscription(entry) for entry in conditional],
        )

    def reaches(self, topic: str) -> bool:
        """Return whether a message of this topic may have a destination."""
        route = self.route(self.match(topic))
        return bool(route.always) or route.selective

    def select(
        self,
        route: Route,
        publication: Publication,
        number: int,
        given: dict[Subscriber, int] | None = None,
        rights: Rights | None = None,
        count: int = 1,
    ) -> list[Destination]:
        """Return who gets a message, or a run of `count`, beside those who always do.

        They are added to `given`, which is how many messages each subscriber was given and has not
        accepted yet. A run has receivers only if all of them would send it at once.

        A shared subscription gives its copy to one member (section 4.8.2), beside what the member's
        own subscriptions give it. `rights` returns the rights of an access on the topic; without it
        everybody may read it. Nobody is returned while the budget is `unfinished`: then call again
        in a later turn.
        """
        given = {} if given is None else given
        selection = Selection(self._budget, publication, number, rights)
        found: list[Destination] = []
        if route.conditional or route.indexes:
            wanted = selection.filtered(route.indexes) if route.indexes else []
            if route.conditional:
                wanted += selection.wanted(route.conditional)
            found = destinations(wanted)
        for group in route.groups:
            chosen = selection.choose(group, given, count - 1)
            if chosen is not None:
                found.append(chosen)
            elif count > 1:
                return []
        selection.forget_parts()
        self.evaluations += selection.evaluations
        if self._budget.unfinished:
            return []
        for each in found:
            given[each.subscriber] = given.get(each.subscriber, 0) + count
        return found

    def evaluates(self, route: Route) -> bool:
        """Return whether a message's content or publisher decides who gets it.

        That is beside those who always do. Otherwise any member of each group will do.
        """
        if route.conditional or route.indexes:
            return True
        for group in route.groups:  # noqa: SIM110 - any() would make a generator each time
            if group.conditional:
                return True
        return False

    def run(self, route: Route, qos: int, count: int) -> int:
        """Return how many of `count` adjacent messages go to the same members.

        Each member of a shared subscription gets a run, which costs little more than one message.
        It is 1 if a member can send one message but not a run: it would idle otherwise.
        """
        members = 1
        for group in route.groups:
            members = max(members, len(group.members))
        run = min(-(-count // members), RUN)
        if run > 1:
            for group in route.groups:
                for member in group.members:
                    subscriber = cast("Member", member.subscriber)
                    least = min(member.qos, qos)
                    if (
                        subscriber.readiness(least, run - 1) != READY
                        and subscriber.readiness(least, 0) == READY
                    ):
                        return 1
        return run

    def member(
        self, topic_filter: str, publication: Publication, number: int
    ) -> Destination | None:
        """Return who gets a message that another member of this shared subscription did not.

        None if nobody is left who wants it; `topic_filter` begins with `$share/`.
        """
        group = self._indirect.group(topic_filter)
        if group is None:
            return None
        selection = self.selection(publication, number)
        chosen = selection.choose(group)
        selection.forget_parts()
        return chosen
