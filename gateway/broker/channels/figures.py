"""What became of a channel's messages since the start, for `$SYS`."""

from collections import deque

LATENCIES = 1024
"""Messages that were acknowledged last, whose latency is known."""


class ChannelFigures:
    """Counts messages; latencies are from a message's arrival to its acknowledgement."""

    __slots__ = (
        "_latencies",
        "_unmeasured",
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
        "too_large",
        "unacknowledged",
    )

    def __init__(self) -> None:
        self.received = 0
        self.delivered = 0  # each time that one was given to a consumer
        self.acknowledged = 0
        self.unacknowledged = 0  # sent at QoS 0: nobody says whether they came
        self.requeued = 0  # given back by consumers, or by the end of their connections
        self.timed_out = 0
        self.dead_lettered = 0
        self.dropped = 0  # for want of room, or for good after too many attempts
        self.expired = 0
        self.filtered = 0  # no consumer's `$where` let them through
        self.too_large = 0  # above the Maximum Packet Size of all consumers
        self.outside_size = 0  # smaller or larger than the channel takes
        self._unmeasured: list[
            tuple[float, int]
        ] = []  # acknowledged: when they came, how many then
        self._latencies: deque[float] = deque(maxlen=LATENCIES)

    def acknowledge(self, arrived: float, count: int) -> None:
        """Note that messages are acknowledged that came at this monotonic second."""
        self.acknowledged += count
        self._unmeasured.append((arrived, count))

    def sent_at_qos_0(self, arrived: float, count: int) -> None:
        """Note that messages have left that nobody acknowledges."""
        self.unacknowledged += count
        self._unmeasured.append((arrived, count))

    def note_latencies(self, now: float) -> None:
        """Note how long those took that were acknowledged since the last call."""
        for arrived, count in self._unmeasured:
            self._latencies.extend([now - arrived] * min(count, LATENCIES))
        self._unmeasured.clear()

    def latency(self, percent: int) -> float:
        """Return the seconds that so many percent of the last messages took at most, or 0.0."""
        found = sorted(self._latencies)
        return found[(len(found) - 1) * percent // 100] if found else 0.0
