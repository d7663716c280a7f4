"""Where the messages of one topic go, as far as that is the same for all of them."""

from collections.abc import Sequence
from typing import Final

from gateway.routing.destination import Destination
from gateway.routing.filter_index import FilterIndex
from gateway.routing.subscription import Subscription

ROUTE_OVERHEAD = 400
"""Bytes of a route beside what it points to: the object, its tuples, its place."""

DESTINATION_OVERHEAD = 250
"""Bytes of a destination."""

SUBSCRIPTION_OVERHEAD = 250
"""Bytes of a subscription as an object, beside the text of its topic filter."""

REFERENCE = 40
"""Bytes of an index's or a group's place in a tuple, with its number."""


class Route:
    """The destinations of one topic name.

    Of those who `always` get every message, `inline` are parts of the gateway and `sessions` are
    clients. If it `asks`, who gets one beside them its content says: the
    `conditional` subscriptions, those that the `indexes` find, and the `groups`, numbers of shared
    subscriptions. It is `crowded` if too many topic filters match: nobody gets the messages.
    """

    __slots__ = (
        "__weakref__",
        "always",
        "asks",
        "conditional",
        "crowded",
        "groups",
        "indexes",
        "inline",
        "sessions",
        "shared",
    )

    def __init__(
        self,
        always: Sequence[Destination],
        conditional: Sequence[Subscription] = (),
        indexes: Sequence[FilterIndex] = (),
        groups: Sequence[int] = (),
        *,
        crowded: bool = False,
    ) -> None:
        self.always = tuple(always)
        self.inline = tuple([each for each in always if each.subscriber.inline])
        self.sessions = self.always
        if self.inline:
            self.sessions = tuple([each for each in always if not each.subscriber.inline])
        self.shared = False  # True for one that topics have in common
        self.conditional = tuple(conditional)
        self.indexes = tuple(indexes)
        self.groups = tuple(groups)
        self.crowded = crowded
        self.asks = bool(self.conditional or self.indexes or self.groups)

    @property
    def size(self) -> int:
        """About the bytes that it occupies."""
        filters = sum(text_size(each.topic_filter) for each in self.conditional)
        return (
            ROUTE_OVERHEAD
            + DESTINATION_OVERHEAD * len(self.always)
            + SUBSCRIPTION_OVERHEAD * len(self.conditional)
            + REFERENCE * (len(self.indexes) + len(self.groups))
            + filters
        )


def text_size(text: str) -> int:
    """Return the bytes that the characters of a text take at most."""
    return len(text) if text.isascii() else 4 * len(text)


NOWHERE: Final = Route(())
"""The route of every topic that nobody has subscribed to."""

CROWDED: Final = Route((), crowded=True)
"""The route of every topic that meets too many topic filters."""
