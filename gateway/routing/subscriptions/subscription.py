"""One session's interest in one topic filter with its options, and those that share one."""

from typing import TYPE_CHECKING, Protocol

from gateway.access.access import Access
from gateway.mqtt.delivery_policy import DeliveryPolicy

if TYPE_CHECKING:
    from gateway.where.compile import Where


class Subscriber(Protocol):
    """Whoever messages are routed to: a client's session or a part of the gateway.

    Who is `inline` is told with each message which of its own topic filters matched.
    """

    client_id: str
    inline: bool
    access: Access  # the topics that it may read


class Member(Subscriber, Protocol):
    """A subscriber that can share a subscription with others: a session, no part of the gateway."""

    granted: Access  # the topics of which its connection may be sent messages

    def readiness(self, qos: int, ahead: int) -> int:
        """Return how soon it can send a message of this QoS: 0 for at once, the less the sooner.

        So many messages `ahead` of it are about to be accepted.
        """
        ...


class Subscription:
    """A topic filter with its options (MQTT 5, section 3.8.3.1), its `$where` and its `$deliver`.

    `topic_filter` is as the client wrote it, with `$share/<name>/` where it is shared.
    """

    __slots__ = (
        "delivery",
        "identifier",
        "no_local",
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

    @property
    def picky(self) -> bool:
        """Whether it may not want a message of its topics: what it says or who sent it decides."""
        return self.where is not None or self.no_local


GROUP_OVERHEAD = 400
"""Bytes of a group beside its members: its objects and its places in tables."""


class Group:
    """The members of one shared subscription, in the order they came, and whose turn it is.

    Its messages go to its `channel` if it has one, which gives them to the members; otherwise each
    goes to a member at once. `picky` counts the members that may not want every message.
    """

    __slots__ = ("channel", "members", "picky", "turn")

    bytes = GROUP_OVERHEAD

    def __init__(self) -> None:
        self.members: list[Subscription] = []
        self.turn = 0
        self.picky = 0
        self.channel: Subscriber | None = None

    def __bool__(self) -> bool:
        """Whether anybody gets its messages."""
        return bool(self.members) or self.channel is not None

    def take_turns(self) -> range:
        """Return the indexes of the members, whose turn it is first, and give the next the turn.

        The message is for one of them (section 4.8.2), mostly the first: a group of thousands
        costs no more than one of two. Indexes that are negative count from the end.
        """
        turn, count = self.turn, len(self.members)
        self.turn = (turn + 1) % count
        return range(turn - count, turn)

    def add(self, member: Subscription) -> None:
        """Add a member that is none yet."""
        self.members.append(member)
        self.picky += member.picky

    def remove(self, member: Subscription) -> None:
        """Remove a member; the turn stays with the member that had it, or passes to the next.

        Behind the last member stands whoever joins before the next turn, else the first.
        """
        place = self.members.index(member)
        del self.members[place]
        self.picky -= member.picky
        if place < self.turn:
            self.turn -= 1
