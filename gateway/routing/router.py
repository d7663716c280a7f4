"""Who gets a message: the subscriptions that match, one recipient for each subscriber."""

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from gateway.mqtt.topics import split_shared
from gateway.routing.budget import Budget
from gateway.routing.indexed_filters import IndexedFilters, candidates
from gateway.routing.recipient import Recipient, SharedRecipient
from gateway.routing.route import Route, kind
from gateway.routing.route_cache import MAXIMUM_BYTES as MAXIMUM_ROUTE_BYTES
from gateway.routing.route_cache import RouteCache
from gateway.routing.shared_subscriptions import SharedSubscriptions
from gateway.routing.subscription import Member, Subscription
from gateway.routing.topic_trie import TopicTrie
from gateway.routing.where.compile import Where
from gateway.routing.where.equalities import Equality, equalities
from gateway.routing.where.message import Message

READY = 0
"""The readiness of a member that sends a message at once; who is less ready has more."""


MAXIMUM_BYTES = 128 * 1024 * 1024
"""Bytes of all subscriptions: 200,000 of some forty characters."""

SUBSCRIPTION_OVERHEAD = 300
"""Bytes of a subscription beside its topic filter: the object and its places in three tables."""

INDEX_OVERHEAD = 400
"""Bytes of the index of a topic filter."""

INDEXED_FIELD_OVERHEAD = 900
"""Bytes of a field that an index looks at: its tables and what reads it."""


class Router:
    """All subscriptions of a gateway, by topic filter.

    A subscription whose `$where` asks for an equality with a constant, and which is not shared,
    is asked only if a message has that constant: whoever is not asked would have said no.

    While `full`, whoever adds a subscription is to refuse it and to count that. `budget` evaluates
    the filters and counts. `on_add` and `on_discard` are called with every subscription that comes
    and the number of every one that goes.
    """

    def __init__(
        self,
        budget: Budget,
        maximum_bytes: int = MAXIMUM_BYTES,
        maximum_route_bytes: int = MAXIMUM_ROUTE_BYTES,
    ) -> None:
        self._trie = TopicTrie()
        self._indexed = IndexedFilters()
        self._shared = SharedSubscriptions()
        self._subscriptions: list[Subscription | None] = []
        self._free: list[int] = []
        self.on_add: list[Callable[[int, Subscription], None]] = []
        self.on_discard: list[Callable[[int], None]] = []
        self._budget = budget
        self._text = 0  # bytes of topic filters
        self._empty = self._tries()
        self.maximum_bytes = maximum_bytes
        self.routes = RouteCache(maximum_route_bytes)

    @property
    def bytes(self) -> int:
        """About the bytes that the subscriptions occupy; 0 without any."""
        indexed = self._indexed
        tries = self._tries() - self._empty
        indexes = indexed.indexes * INDEX_OVERHEAD + indexed.fields * INDEXED_FIELD_OVERHEAD
        return self._text + tries + indexes + len(self) * SUBSCRIPTION_OVERHEAD

    def _tries(self) -> int:
        return self._trie.memory() + self._indexed.memory() + self._shared.memory()

    @property
    def full(self) -> bool:
        """True once the bound is reached; the last subscription may have exceeded it."""
        return self.bytes >= self.maximum_bytes

    def __len__(self) -> int:
        return len(self._subscriptions) - len(self._free)

    @property
    def shared(self) -> int:
        """How many of the subscriptions are shared ones."""
        return len(self._shared)

    def add(self, subscription: Subscription) -> int:
        """Route matching messages to the subscription; return the number it is known by."""
        if self._free:
            number = self._free.pop()
            self._subscriptions[number] = subscription
        else:
            number = len(self._subscriptions)
            self._subscriptions.append(subscription)
        self._text += len(subscription.topic_filter)
        share_name, topic_filter = split_shared(subscription.topic_filter)
        if share_name is not None:
            self._shared.add(share_name, topic_filter, number)
        elif asked := _asked_for(subscription):
            self._indexed.add(topic_filter, asked, number)
        else:
            self._trie.add(topic_filter, number)
        self.routes.forget(topic_filter)
        for callback in self.on_add:
            callback(number, subscription)
        return number

    def subscriptions(self) -> Iterator[tuple[int, Subscription]]:
        """Give every subscription with its number."""
        for number, subscription in enumerate(self._subscriptions):
            if subscription is not None:
                yield number, subscription

    def subscription(self, number: int) -> Subscription:
        """Return the subscription that `add` gave this number."""
        subscription = self._subscriptions[number]
        if subscription is None:
            raise KeyError(number)
        return subscription

    def discard(self, number: int) -> None:
        """Route nothing more to the subscription that `add` gave this number."""
        subscription = self.subscription(number)
        share_name, topic_filter = split_shared(subscription.topic_filter)
        if share_name is not None:
            self._shared.discard(share_name, topic_filter, number)
        elif asked := _asked_for(subscription):
            self._indexed.discard(topic_filter, asked, number)
        else:
            self._trie.discard(topic_filter, number)
        self._text -= len(subscription.topic_filter)
        self._subscriptions[number] = None
        self._free.append(number)
        self.routes.forget(topic_filter)
        for callback in self.on_discard:
            callback(number)

    def recipients(self, message: Message) -> list[Recipient]:
        """Return who gets the message, each subscriber once per way it is owed a copy.

        A shared subscription gives its copy to one member (section 4.8.2), beside what the
        member's own subscriptions give it. The list is not to be changed: it may be kept for
        the next message of this topic.
        """
        route = self._route(message.topic)
        if route.plain:
            return _plain(route, message.qos, message.retain)
        return self._ask(route, message)

    def plain_recipients(self, topic: str) -> list[Recipient] | None:
        """Return who gets every QoS 0 message of this topic that is not retained.

        None where it depends on more of a message than that. The list is not to be changed.
        """
        route = self._route(topic)
        return _plain(route, 0, retain=False) if route.plain else None

    def _route(self, topic: str) -> Route:
        """Return the route of a topic; one that has to be found is kept for the next message."""
        route = self.routes.get(topic)
        if route is None:
            own = [self.subscription(number) for number in self._trie.match(topic)]
            route = Route(own, self._indexed.indexes_of(topic), self._shared.groups(topic))
            self.routes.put(topic, route)
        return route

    def _ask(self, route: Route, message: Message) -> list[Recipient]:
        """Return the recipients where it depends on more of the message than its topic."""
        verdicts: dict[Where, bool] = {}
        asked = [*route.own, *map(self.subscription, candidates(route.indexes, message))]
        wanted = [one for one in asked if self._wanted(one, message, verdicts)]
        found = _merged(wanted, message.qos, message.retain)
        for group in route.groups:
            chosen = self._choose(self._shared.take_turns(group), message, verdicts)
            if chosen is not None:
                found.append(chosen)
        return found

    def member(self, topic_filter: str, message: Message) -> Recipient | None:
        """Return who gets a message that another member of this shared subscription left over.

        None if nobody is left who wants it; `topic_filter` begins with `$share/`.
        """
        share_name, shared_filter = split_shared(topic_filter)
        members = self._shared.members(share_name or "", shared_filter)
        return self._choose(members, message, {})

    def _choose(
        self, members: list[int], message: Message, verdicts: dict[Where, bool]
    ) -> Recipient | None:
        """Return the readiest member, of equals the one whose turn comes first."""
        best: Subscription | None = None
        lowest = 0
        for number in members:
            subscription = self._subscriptions[number]
            if subscription is None or not self._wanted(subscription, message, verdicts):
                continue
            qos = min(subscription.qos, message.qos)  # [MQTT-4.8.2-3]
            readiness = cast("Member", subscription.subscriber).readiness(qos)
            if best is None or readiness < lowest:
                best, lowest = subscription, readiness
                if readiness == READY:
                    break
        return None if best is None else SharedRecipient(best, message.qos, message.retain)

    def _wanted(
        self, subscription: Subscription, message: Message, verdicts: dict[Where, bool]
    ) -> bool:
        # [MQTT-3.8.3-3]: No Local keeps a message from the connection that published it
        if subscription.no_local and subscription.subscriber.client_id == message.client_id:
            return False
        where = subscription.where
        if where is None:
            return True
        passed = verdicts.get(where)  # asked once, however many subscriptions share it
        if passed is None:
            client_id = subscription.subscriber.client_id
            passed = verdicts[where] = self._budget.passes(where, message, client_id)
        return passed


def _plain(route: Route, qos: int, retain: bool) -> list[Recipient]:
    """Return who gets every message of a plain route, worked out once for each QoS and RETAIN."""
    number = kind(qos, retain)
    found = route.recipients.get(number)
    if found is None:
        found = route.recipients[number] = _merged(route.own, qos, retain)
    return found


def _merged(subscriptions: Iterable[Subscription], qos: int, retain: bool) -> list[Recipient]:
    """Return one recipient for each subscriber, whose subscriptions all want the message."""
    found: dict[int, Recipient] = {}
    for subscription in subscriptions:
        recipient = found.get(id(subscription.subscriber))
        if recipient is None:
            found[id(subscription.subscriber)] = Recipient(subscription, qos, retain)
        else:
            recipient.merge(subscription, qos, retain)
    return list(found.values())


def _asked_for(subscription: Subscription) -> list[Equality]:
    """Return the equalities that the `$where` asks for; none without one."""
    where = subscription.where
    return [] if where is None else equalities(where.expression)
