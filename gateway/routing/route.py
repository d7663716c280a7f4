"""Where the messages of one topic go, as far as that is the same for all of them."""

from collections.abc import Sequence
from typing import Final, TypeAlias

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
"""Bytes of the place that a topic filter, an index or a group has in a match, with its number."""

Match: TypeAlias = tuple[tuple[int, ...], tuple[FilterIndex, ...], tuple[int, ...]]
"""What a topic matches: topic filters and groups of shared subscriptions, both by number, and the
indexes of those with a `$where`. Topics that match the same have the same route."""


class Route:
    """The destinations of all topic names that have this `match`.

    Of those who `always` get every message, `inline` are parts of the gateway and `sessions` are
    clients. If it `asks`, who gets one beside them its content says: the
    `conditional` subscriptions, those that the `indexes` find, and the `groups`, numbers of shared
    subscriptions. It is `crowded` if too many topic filters match: nobody gets the messages.
    """

    __slots__ = (
        "always",
        "asks",
        "conditional",
        "crowded",
        "groups",
        "indexes",
        "inline",
        "match",
        "sessions",
    )

    def __init__(
        self,
        match: Match,
        always: Sequence[Destination] = (),
        conditional: Sequence[Subscription] = (),
        *,
        crowded: bool = False,
    ) -> None:
        self.match = match
        self.always = tuple(always)
        self.inline = tuple([each for each in always if each.subscriber.inline])
        self.sessions = self.always
        if self.inline:
            self.sessions = tuple([each for each in always if not each.subscriber.inline])
        self.conditional = tuple(conditional)
        self.indexes = match[1]
        self.groups = match[2]
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
            + REFERENCE * sum(map(len, self.match))
            + filters
        )


def text_size(text: str) -> int:
    """Return the bytes that the characters of a text take at most."""
    return len(text) if text.isascii() else 4 * len(text)


NOWHERE: Final = Route(((), (), ()))
"""The route of every topic that nobody has subscribed to."""

CROWDED: Final = Route(((0,), (), ()), crowded=True)  # no topic filter has the number 0
"""The route of every topic that meets too many topic filters."""
