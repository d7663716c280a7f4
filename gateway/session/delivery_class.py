"""A class of clients with one delivery policy, and its counters."""

from collections import deque

from gateway.mqtt.delivery_policy import EACH, DeliveryPolicy

DELAYS = 1024
"""Latest messages that were held, whose delays are recorded."""


class DeliveryClass:
    """Clients of one kind: their `policy`, and what was written to them since the start.

    The writing code counts `flushes` and `bytes`; `packets` are those of closed connections.
    """

    __slots__ = ("_delays", "bytes", "flushes", "name", "packets", "policy")

    def __init__(self, name: str, policy: DeliveryPolicy) -> None:
        self.name = name
        self.policy = policy
        self.flushes = 0
        self.packets = 0
        self.bytes = 0
        self._delays: deque[float] = deque(maxlen=DELAYS)

    def note_delays(self, arrivals: list[tuple[float, int]], now: float) -> None:
        """Record the delays of held messages, given as arrival second and number of messages."""
        for arrived, count in arrivals:
            self._delays.extend([now - arrived] * min(count, DELAYS))

    def delay(self, percent: int) -> float:
        """Return this percentile of the last delays in seconds, 0.0 if none was held."""
        delays = sorted(self._delays)
        return delays[(len(delays) - 1) * percent // 100] if delays else 0.0


AT_ONCE = DeliveryClass("device", EACH)
"""Of sessions to which no broker has assigned a class yet."""
