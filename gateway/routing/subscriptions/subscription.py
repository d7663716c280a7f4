"""Subscriptions with their options, groups that share one, and numbers for subscribers."""

import sys
from array import array
from typing import TYPE_CHECKING, Protocol

from gateway.access.access import Access
from gateway.mqtt.delivery_policy import DeliveryPolicy
from gateway.mqtt.topics import split_shared
from gateway.routing.trie.held_numbers import HeldNumbers

if TYPE_CHECKING:
    from gateway.routing.route import Destination
    from gateway.where.compile import Where


class Subscriber(Protocol):
    """A receiver of messages: a client's session or a part of the gateway.

    An `inline` one gets with each message its own topic filters that matched.
    """

    client_id: str
    inline: bool
    access: Access  # the topics that it may read


class Member(Subscriber, Protocol):
    """A subscriber that can share a subscription: a session, not a part of the gateway."""

    granted: Access  # the topics that its connection may be sent

    @property
    def conflated(self) -> "Member | None":
        """What receives its own subscriptions' messages in its place, None for itself."""
        ...

    def readiness(self, qos: int, ahead: int) -> int:
        """Return how soon it can send a message of this QoS: 0 for at once, lower is sooner.

        This many messages `ahead` of it are about to be accepted.
        """
        ...


class Subscription:
    """A topic filter with its options (MQTT 5, section 3.8.3.1), `$where` and delivery policy.

    `topic_filter` is as the client wrote it, with `$share/<name>/` if it is shared. `part` is its
    own topic filter if it has joined a channel with a wider one. `destination` caches the copy of a
    message that only this subscription of its subscriber wants.
    """

    __slots__ = (
        "delivery",
        "destination",
        "identifier",
        "no_local",
        "part",
        "qos",
        "retain_as_published",
        "subscriber",
        "topic_filter",
        "where",
    )

    def __init__(
        self,
        subscriber: Subscriber,
        topic_filter: str,
        qos: int,
        *,
        no_local: bool = False,
        retain_as_published: bool = False,
        identifier: int | None = None,
        where: "Where | None" = None,
        delivery: DeliveryPolicy | None = None,
    ) -> None:
        self.subscriber = subscriber
        self.topic_filter = topic_filter
        self.qos = qos
        self.no_local = no_local
        self.retain_as_published = retain_as_published
        self.identifier = identifier
        self.where = where
        self.delivery = delivery
        self.part = ""
        self.destination: Destination | None = None

    @property
    def conditional(self) -> bool:
        """Whether a message's content, publisher or topic decides if it wants it."""
        return self.where is not None or self.no_local or bool(self.part)


GROUP_OVERHEAD = 400
"""Bytes of a group without its members: its objects and table entries."""


class Group:
    """The members of one shared subscription in order of joining, which take turns.

    If it has a `channel`, that gets the messages and distributes them; otherwise each message goes
    to a member at once. `conditional` counts the members that may refuse messages.
    """

    __slots__ = ("channel", "conditional", "members", "turn")

    bytes = GROUP_OVERHEAD

    def __init__(self) -> None:
        self.members: list[Subscription] = []
        self.turn = 0
        self.conditional = 0
        self.channel: Subscriber | None = None

    def __bool__(self) -> bool:
        """Whether anybody gets its messages."""
        return bool(self.members) or self.channel is not None

    def rotate(self) -> range:
        """Return the indexes of the members, beginning with the next in turn, and advance the turn.

        The message is for one of them (section 4.8.2), mostly the first: a group of thousands costs
        no more than one of two. Negative indexes count from the end.
        """
        turn, count = self.turn, len(self.members)
        self.turn = (turn + 1) % count
        return range(turn - count, turn)

    def add(self, member: Subscription) -> None:
        """Add a new member."""
        self.members.append(member)
        self.conditional += member.conditional

    def remove(self, member: Subscription) -> None:
        """Remove a member; the turn stays with its member, or passes to the next.

        After the last member, the next new member has its turn, else the first.
        """
        place = self.members.index(member)
        del self.members[place]
        self.conditional -= member.conditional
        if place < self.turn:
            self.turn -= 1


class Part:
    """The members of a channel's `group` whose topic filter matches a part of the channel's."""

    __slots__ = ("group", "members")

    bytes = GROUP_OVERHEAD

    def __init__(self, group: Group) -> None:
        self.group = group
        self.members: list[Subscription] = []

    def __bool__(self) -> bool:
        """Whether it has members: without them it is forgotten."""
        return bool(self.members)

    @property
    def channel(self) -> Subscriber | None:
        """The channel that gives them messages."""
        return self.group.channel

    def add(self, member: Subscription) -> None:
        """Add a new member to the channel's."""
        member.part = split_shared(member.topic_filter)[1]
        self.members.append(member)
        self.group.add(member)

    def remove(self, member: Subscription) -> None:
        """Remove a member, also from the channel's."""
        self.members.remove(member)
        self.group.remove(member)
        member.part = ""


SUBSCRIBER_OVERHEAD = 44
"""Bytes of a subscriber in list and column, their spare capacity, and its number."""


class Subscribers:
    """Subscribers with a number from 0, which is theirs while they hold at least one place.

    A place is a number below 2^31 chosen by the owner; here it locates a subscription. `total` is
    how many places all of them hold.
    """

    __slots__ = ("_free", "_held", "_numbers", "_subscribers", "_words", "total")

    def __init__(self) -> None:
        self._numbers: dict[Subscriber, int] = {}
        self._subscribers: list[Subscriber | None] = []
        self._words = array("I")  # what each of them holds
        self._held = HeldNumbers()
        self._free: list[int] = []
        self.total = 0

    def join(self, subscriber: Subscriber) -> int:
        """Return the number of a subscriber, a new one if it has none; call `hold` next."""
        number = self._numbers.get(subscriber)
        if number is None:
            number = self._numbers[subscriber] = self._new_number()
            self._subscribers[number] = subscriber
        return number

    def find(self, subscriber: Subscriber) -> int:
        """Return the number of a subscriber, -1 if it holds no place."""
        return self._numbers.get(subscriber, -1)

    def subscriber(self, number: int) -> Subscriber:
        """Return the subscriber with this number; raise KeyError if there is none."""
        subscriber = self._subscribers[number]
        if subscriber is None:
            raise KeyError(number)
        return subscriber

    def hold(self, number: int, index: int) -> None:
        """Add a new place to the subscriber."""
        self._words[number] = self._held.including(self._words[number], index)
        self.total += 1

    def holds(self, number: int, index: int) -> bool:
        """Return whether the subscriber with this number, if any, holds the place."""
        return number < len(self._words) and self._held.holds(self._words[number], index)

    def release(self, number: int, index: int) -> None:
        """Remove a place that the subscriber holds; without any its number is free."""
        self._words[number] = word = self._held.excluding(self._words[number], index)
        self.total -= 1
        if word == 0:
            self._forget(number)

    def count(self, number: int) -> int:
        """Return how many places the subscriber holds; 0 for the number -1."""
        return 0 if number < 0 else self._held.count(self._words[number])

    def first(self, number: int) -> int:
        """Return the first place that a subscriber holds."""
        return self._held.first(self._words[number], 0)

    def places(self, number: int) -> list[int]:
        """Return the places of a subscriber in their order, in a list of its own."""
        found: list[int] = []
        self._held.gather(self._words[number], found)
        return found

    def numbers(self) -> list[int]:
        """Return the numbers of all subscribers in their order, in a list of its own."""
        return [number for number, word in enumerate(self._words) if word]

    def memory(self) -> int:
        """Return about the bytes of all this."""
        return (
            sys.getsizeof(self._numbers)
            + SUBSCRIBER_OVERHEAD * len(self._subscribers)
            + self._held.memory()
        )

    def _new_number(self) -> int:
        if self._free:
            return self._free.pop()
        self._subscribers.append(None)
        self._words.append(0)
        return len(self._subscribers) - 1

    def _forget(self, number: int) -> None:
        del self._numbers[self.subscriber(number)]
        self._subscribers[number] = None
        self._free.append(number)
        if not self._numbers:  # give back memory after growth
            self._numbers, self._subscribers, self._free = {}, [], []
            self._words = array("I")
