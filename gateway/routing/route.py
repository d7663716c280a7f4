"""Where messages of one topic go, as far as that is the same for all of them."""

from collections.abc import Sequence
from typing import Final

from gateway.routing.filter_index import FilterIndex
from gateway.routing.recipient import Recipient
from gateway.routing.subscription import Subscription

ROUTE_OVERHEAD = 400
"""Bytes of a route beside its topic and what it points to: the object, its lists, its place."""

ASKING_OVERHEAD = 80
"""More bytes of a route that is `asking`."""

RECIPIENT_OVERHEAD = 250
"""Bytes of a recipient that is kept with a route."""

KINDS = 2
"""For so many combinations of QoS and RETAIN a route keeps the recipients at a time."""

NO_KIND = -1
"""The kind of a route that keeps no recipients yet."""

SUBSCRIPTION_OVERHEAD = 250
"""Bytes of a subscription as an object, beside the text of its topic filter."""

NOBODY: Final[tuple[Recipient, ...]] = ()
"""Stands for recipients that are not kept yet."""

ENTRY = 8
"""Bytes of an entry."""

REFERENCE = 40
"""Bytes of an index's or a group's place in a list, with its number."""


Asking = tuple[Sequence[Subscription], Sequence[FilterIndex], Sequence[int]]


class Route:
    """The subscriptions of one topic name: `own` are entries of `DirectSubscriptions`, as bytes.

    A `plain` route asks nothing of a message but its QoS and its RETAIN: `recipients` keeps who
    gets such a message of one `kind`, and `kept` of any other. A topic has messages of one kind,
    as a rule, or of two. Any other route is `asking`: that is what its own subscriptions say, what
    finds more of them, and the numbers of shared subscriptions.
    """

    __slots__ = ("_earlier", "asking", "kind", "own", "plain", "recipients")

    def __init__(
        self,
        own: bytes,
        indexes: Sequence[FilterIndex],
        groups: Sequence[int],
        asked: Sequence[Subscription] | None = None,
    ) -> None:
        self.own = own
        self.plain = asked is None
        self.asking: Asking | None = None if asked is None else (asked, indexes, groups)
        self.kind = NO_KIND
        self.recipients = NOBODY  # of messages of this kind
        # another kind, and who gets that
        self._earlier: tuple[int, tuple[Recipient, ...]] | None = None

    def kept(self, number: int) -> tuple[Recipient, ...] | None:
        """Return who gets a message of this kind, None if that is not known."""
        if number == self.kind:
            return self.recipients
        earlier = self._earlier
        return earlier[1] if earlier is not None and earlier[0] == number else None

    def keep(self, number: int, recipients: tuple[Recipient, ...]) -> None:
        """Keep who gets a message of this kind; of the others, the one that was kept last."""
        if self.kind != NO_KIND:
            self._earlier = self.kind, self.recipients
        self.kind = number
        self.recipients = recipients

    @property
    def size(self) -> int:
        """About the bytes that it occupies at most."""
        own = len(self.own) // ENTRY
        if self.asking is None:
            return ROUTE_OVERHEAD + (ENTRY + KINDS * RECIPIENT_OVERHEAD) * own
        asked, indexes, groups = self.asking
        size = ROUTE_OVERHEAD + ASKING_OVERHEAD + REFERENCE * (len(indexes) + len(groups))
        filters = sum(text_size(one.topic_filter) for one in asked)
        return size + filters + (ENTRY + SUBSCRIPTION_OVERHEAD) * own


def text_size(text: str) -> int:
    """Return the bytes that the characters of a text take at most."""
    return len(text) if text.isascii() else 4 * len(text)


def kind(qos: int, retain: bool) -> int:
    """Return the number of a combination of QoS and RETAIN."""
    return 2 * qos + retain


NOWHERE = Route(b"", (), ())
"""The route of every topic that nobody has subscribed to."""

CROWDED = Route(b"", (), (), ())
"""The route of every topic that meets too many topic filters: nobody gets its messages."""
