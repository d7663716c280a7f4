"""The routes of the topics that were published to lately, bounded in bytes."""

from gateway.routing.route import Route, text_size

MAXIMUM_BYTES = 4 * 1024 * 1024
"""Bytes of all routes that are kept: some 5,000 topics with a subscriber or two each."""

LARGEST = 4
"""A route above the fourth part of the bound is not kept: it would drive all others out."""


class RouteCache:
    """Routes by topic name; those that were not asked for the longest go first.

    There are two generations. A route that is asked for is, or moves, in the young one; when that
    holds half of the bytes it becomes the old one, and what was in the old one is forgotten.
    """

    __slots__ = (
        "_old",
        "_old_bytes",
        "_young",
        "_young_bytes",
        "changes",
        "hits",
        "maximum_bytes",
        "misses",
    )

    def __init__(self, maximum_bytes: int = MAXIMUM_BYTES) -> None:
        self.maximum_bytes = maximum_bytes
        self.hits = 0
        self.misses = 0
        self.changes = 0  # while it stays the same, every route does, kept here or not
        self._young: dict[str, Route] = {}
        self._old: dict[str, Route] = {}
        self._young_bytes = 0
        self._old_bytes = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    @property
    def bytes(self) -> int:
        """About the bytes that the routes occupy."""
        return self._young_bytes + self._old_bytes

    def values(self) -> dict[str, int]:
        """Return the figures under `$SYS/broker/tidegate/routes/`."""
        asked = self.hits + self.misses
        return {
            "hits": self.hits,
            "misses": self.misses,
            "hit_rate": 100 * self.hits // asked if asked else 0,
            "topics": len(self),
            "bytes": self.bytes,
        }

    def get(self, topic: str) -> Route | None:
        """Return the route of the topic, None if it is not kept."""
        route = self._young.get(topic)
        if route is None:
            route = self._old.pop(topic, None)
            if route is None:
                self.misses += 1
                return None
            self._old_bytes -= _size(topic, route)
            self.put(topic, route)
        self.hits += 1
        return route

    def put(self, topic: str, route: Route) -> None:
        """Keep the route of a topic that has none here."""
        size = _size(topic, route)
        if size > self.maximum_bytes // LARGEST:
            return
        if self._young_bytes + size > self.maximum_bytes // 2:
            self._old, self._old_bytes = self._young, self._young_bytes
            self._young, self._young_bytes = {}, 0
        self._young[topic] = route
        self._young_bytes += size

    def forget(self, topic_filter: str) -> None:
        """Forget every route that a subscription with this topic filter belongs to, or may.

        Without a wildcard that is the route of one topic; otherwise it is all of them.
        """
        self.changes += 1
        if "+" in topic_filter or "#" in topic_filter:
            self._young, self._old = {}, {}
            self._young_bytes = self._old_bytes = 0
            return
        route = self._young.pop(topic_filter, None)
        if route is not None:
            self._young_bytes -= _size(topic_filter, route)
        route = self._old.pop(topic_filter, None)
        if route is not None:
            self._old_bytes -= _size(topic_filter, route)


def _size(topic: str, route: Route) -> int:
    return text_size(topic) + route.size
