"""A class of clients with one delivery policy, and what it comes to."""

from collections import deque

from gateway.mqtt.delivery_policy import EACH, DeliveryPolicy

DELAYS = 1024
"""Messages that were held, and left last, whose delays are known."""


class DeliveryClass:
    """Clients of one kind: their `policy`, and what was written to them since the start.

    Whoever writes counts `flushes` and `bytes`; `packets` are those of connections that are gone.
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
        """Note that messages were held, which came at these seconds, and so many then."""
        for arrived, count in arrivals:
            self._delays.extend([now - arrived] * min(count, DELAYS))

    def delay(self, percent: int) -> float:
        """Return the seconds that so many percent of the last messages were held at most.

        0.0 where none was held.
        """
        delays = sorted(self._delays)
        return delays[(len(delays) - 1) * percent // 100] if delays else 0.0


AT_ONCE = DeliveryClass("device", EACH)
"""Of sessions that no broker has given a class yet."""
