"""What became of a channel's messages since the start, for `$SYS`."""

from collections import deque

LATENCIES = 1024
"""Messages that were acknowledged last, whose latency is known."""


class ChannelFigures:
    """Counts messages; latencies are from a message's arrival to its acknowledgement."""

    __slots__ = (
        "_latencies",
        "acknowledged",
        "dead_lettered",
        "delivered",
        "dropped",
        "expired",
        "filtered",
        "outside_size",
        "received",
        "requeued",
        "timed_out",
    )

    def __init__(self) -> None:
        self.received = 0
        self.delivered = 0  # each time that one was given to a consumer
        self.acknowledged = 0
        self.requeued = 0  # given back by consumers, or by the end of their connections
        self.timed_out = 0
        self.dead_lettered = 0
        self.dropped = 0  # for want of room, or for good after too many attempts
        self.expired = 0
        self.filtered = 0  # no consumer's `$where` or rights let them through
        self.outside_size = 0  # smaller or larger than the channel takes
        self._latencies: deque[float] = deque(maxlen=LATENCIES)

    def note_latency(self, seconds: float, count: int) -> None:
        """Note that so many messages were acknowledged so long after they came."""
        self._latencies.extend([seconds] * min(count, LATENCIES))

    def latency(self, percent: int) -> float:
        """Return the seconds that so many percent of the last messages took at most, or 0.0."""
        found = sorted(self._latencies)
        return found[(len(found) - 1) * percent // 100] if found else 0.0
