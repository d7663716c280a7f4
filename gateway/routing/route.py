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

POINTER = 8


class Route:
    """The subscriptions of one topic name; `groups` are the numbers of shared subscriptions.

    A `plain` route asks nothing of a message but its QoS and its RETAIN: `recipients` keeps
    who gets such a message, by `kind`.
    """

    __slots__ = ("groups", "indexes", "own", "plain", "recipients")

    def __init__(
        self, own: Sequence[Subscription], indexes: Sequence[FilterIndex], groups: Sequence[int]
    ) -> None:
        self.own = own
        self.indexes = indexes
        self.groups = groups
        self.plain = not (indexes or groups) and all(
            each.where is None and not each.no_local for each in own
        )
        self.recipients: dict[int, list[Recipient]] = {}

    @property
    def size(self) -> int:
        """About the bytes that it occupies at most."""
        each = POINTER + (2 * RECIPIENT_OVERHEAD if self.plain else 0)
        pointers = POINTER * (len(self.indexes) + len(self.groups))
        return ROUTE_OVERHEAD + pointers + each * len(self.own)


def kind(qos: int, retain: bool) -> int:
    """Return the number of a combination of QoS and RETAIN."""
    return 2 * qos + retain
