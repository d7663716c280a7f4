"""Counters of a channel's messages since the start, for `$SYS`."""

from collections import deque

LATENCIES = 1024
"""Latest acknowledged messages whose latency is recorded."""


class ChannelFigures:
    """Counts messages; a latency is the time from arrival to acknowledgement."""

    __slots__ = (
        "_latencies",
        "_unmeasured",
        "acknowledged",
        "bad_priority",
        "dead_lettered",
        "delivered",
        "dropped",
        "expired",
        "filtered",
        "outside_size",
        "received",
        "replaced",
        "requeued",
        "timed_out",
        "timed_out_again",
        "too_large",
        "unacknowledged",
    )

    def __init__(self) -> None:
        self.received = 0
        self.delivered = 0  # every attempt counts
        self.acknowledged = 0
        self.unacknowledged = 0  # sent at QoS 0: no acknowledgement
        self.replaced = 0  # by a newer message of their key
        self.requeued = 0  # returned by consumers, or because their connections ended
        self.timed_out = 0
        self.timed_out_again = 0  # those that had timed out, or came back, before
        self.dead_lettered = 0
        self.dropped = 0  # the queue was full, or the last attempt failed
        self.expired = 0
        self.filtered = 0  # no consumer's `$where` matched
        self.too_large = 0  # above the Maximum Packet Size of all consumers
        self.bad_priority = 0  # their priority is no level
        self.outside_size = 0  # smaller or larger than the channel accepts
        self._unmeasured: list[
            tuple[float, int]
        ] = []  # acknowledged messages: when they arrived, how many
        self._latencies: deque[float] = deque(maxlen=LATENCIES)

    def acknowledge(self, arrived: float, count: int) -> None:
        """Note that messages that arrived at this monotonic second are acknowledged."""
        self.acknowledged += count
        self._unmeasured.append((arrived, count))

    def time_out(self, count: int, *, again: bool) -> None:
        """Note that messages were not acknowledged in time, `again` if not for the first time."""
        self.timed_out += count
        if again:
            self.timed_out_again += count

    def sent_at_qos_0(self, arrived: float, count: int) -> None:
        """Note that messages were sent that nobody acknowledges."""
        self.unacknowledged += count
        self._unmeasured.append((arrived, count))

    def note_latencies(self, now: float) -> None:
        """Record the latencies of all messages acknowledged since the last call."""
        for arrived, count in self._unmeasured:
            self._latencies.extend([now - arrived] * min(count, LATENCIES))
        self._unmeasured.clear()

    def latency(self, percent: int) -> float:
        """Return this percentile of the last messages' latencies in seconds, or 0.0."""
        found = sorted(self._latencies)
        return found[(len(found) - 1) * percent // 100] if found else 0.0
