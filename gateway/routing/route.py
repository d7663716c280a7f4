"""Where messages of one topic go, as far as that is the same for all of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.routing.filter_index import FilterIndex
from gateway.routing.subscription import Subscription

if TYPE_CHECKING:
    from gateway.routing.recipient import Recipient

ROUTE_OVERHEAD = 400
"""Bytes of a route beside its topic and what it points to: the object, its lists, its place."""

RECIPIENT_OVERHEAD = 250
"""Bytes of a recipient that is kept with a route."""

KINDS = 2
"""For so many combinations of QoS and RETAIN a route keeps the recipients at a time."""

SUBSCRIPTION_OVERHEAD = 250
"""Bytes of a subscription as an object, beside the text of its topic filter."""

ENTRY = 8
REFERENCE = 40
"""Bytes of an index's or a group's place in a list, with its number."""


class Route:
    """The subscriptions of one topic name: `own` as entries of `DirectSubscriptions`.

    A `plain` route asks nothing of a message but its QoS and its RETAIN: `recipients` keeps who
    gets such a message, by `kind`. Any other has in `asked` what its own subscriptions say;
    `indexes` find more of them, and `groups` are the numbers of shared subscriptions.
    """

    __slots__ = ("asked", "groups", "indexes", "own", "plain", "recipients")

    def __init__(
        self,
        own: Sequence[int],
        indexes: Sequence[FilterIndex],
        groups: Sequence[int],
        asked: Sequence[Subscription] | None = None,
    ) -> None:
        self.own = own
        self.indexes = indexes
        self.groups = groups
        self.plain = asked is None
        self.asked = asked or ()
        self.recipients: dict[int, list[Recipient]] = {}

    @property
    def size(self) -> int:
        """About the bytes that it occupies at most."""
        size = ROUTE_OVERHEAD + REFERENCE * (len(self.indexes) + len(self.groups))
        if self.plain:
            return size + (ENTRY + KINDS * RECIPIENT_OVERHEAD) * len(self.own)
        filters = sum(text_size(one.topic_filter) for one in self.asked)
        return size + filters + (ENTRY + SUBSCRIPTION_OVERHEAD) * len(self.own)


def text_size(text: str) -> int:
    """Return the bytes that the characters of a text take at most."""
    return len(text) if text.isascii() else 4 * len(text)


def kind(qos: int, retain: bool) -> int:
    """Return the number of a combination of QoS and RETAIN."""
    return 2 * qos + retain


NOWHERE = Route((), (), ())
"""The route of every topic that nobody has subscribed to."""

CROWDED = Route((), (), (), ())
"""The route of every topic that meets too many topic filters: nobody gets its messages."""
