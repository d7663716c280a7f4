"""Where the messages of one topic go, as far as that is the same for all of them."""

from collections.abc import Sequence
from typing import TypeAlias

from gateway.routing.destination import Destination, to_channel
from gateway.routing.filters.filter_index import FilterIndex
from gateway.routing.subscriptions.subscription import Group, Subscription

ROUTE_OVERHEAD = 400
"""Bytes of a route beside what it points to: the object, its tuples, its place."""

DESTINATION_OVERHEAD = 250
"""Bytes of a destination."""

SUBSCRIPTION_OVERHEAD = 250
"""Bytes of a subscription as an object, beside the text of its topic filter."""

REFERENCE = 40
"""Bytes of the place that a topic filter, an index or a group has in a match, with its number."""

Match: TypeAlias = tuple[
    tuple[int, ...], tuple[FilterIndex, ...], tuple[Group, ...], tuple[int, ...]
]
"""What a topic matches: topic filters by number, the indexes of those with a `$where`, and groups
that share a subscription; and the numbers of subscribers that may not read it. Topics that match
the same have the same route."""

NOWHERE: Match = ((), (), (), ())
"""The match of every topic that nobody has subscribed to."""

CROWDED: Match = ((0,), (), (), ())  # no topic filter has the number 0
"""The match of every topic that meets too many topic filters."""


class Route:
    """The destinations of all topic names that have this `match`.

    Of those who `always` get every message, `inline` are parts of the gateway and `sessions` are
    clients and channels. If it is `selective`, the content
    of a message decides who gets it beside them: the `conditional`
    subscriptions, those that the `indexes` find, and one member of each of the `groups`. It is
    `crowded` if too many topic filters match: nobody gets the messages. `topics` is how many
    topics are known that have it, and `size` about the bytes it occupies.
    """

    __slots__ = (
        "always",
        "conditional",
        "crowded",
        "groups",
        "indexes",
        "inline",
        "match",
        "selective",
        "sessions",
        "size",
        "topics",
    )

    def __init__(
        self,
        match: Match,
        always: Sequence[Destination] = (),
        conditional: Sequence[Subscription] = (),
    ) -> None:
        self.match = match
        channels = [to_channel(each.channel) for each in match[2] if each.channel is not None]
        self.always = (*always, *channels)
        self.inline = tuple([each for each in always if each.subscriber.inline])
        self.sessions = self.always
        if self.inline:
            self.sessions = tuple([each for each in self.always if not each.subscriber.inline])
        self.conditional = tuple(conditional)
        self.indexes = match[1]
        self.groups = match[2]
        if channels:
            self.groups = tuple([each for each in match[2] if each.channel is None])
        self.crowded = match == CROWDED
        self.selective = bool(self.conditional or self.indexes or self.groups)
        self.topics = 0
        self.size = (
            ROUTE_OVERHEAD
            + DESTINATION_OVERHEAD * len(self.always)
            + REFERENCE * sum([len(part) for part in match])
            + sum([SUBSCRIPTION_OVERHEAD + text_size(each.topic_filter) for each in conditional])
        )


def text_size(text: str) -> int:
    """Return the bytes that the characters of a text take at most."""
    return len(text) if text.isascii() else 4 * len(text)
