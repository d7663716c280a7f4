"""Own messages that go up until the fleet has taken them, whatever it says meanwhile."""

import heapq
import logging
from collections.abc import Callable

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.reason_codes import FAILURE
from gateway.uplink.own_messages import OwnMessage, OwnMessages

logger = logging.getLogger(__name__)

MAX_IN_HAND = 8
"""Messages of one kind that are under way; what they are made of waits on disk meanwhile."""

REFUSED_SECONDS = 60.0
"""How long a message waits after a refusal: a broker that says no is not asked all the time."""


class KeptMessages:
    """Sends messages below `…/<suffix>`, at most MAX_IN_HAND at a time.

    `room` says whether one more may be sent. Call `again` now and then: it sends what was
    refused a while ago once more. `on_taken` are called whenever there is room again.
    """

    def __init__(self, suffix: str, own: OwnMessages, counters: Counters, clock: Clock) -> None:
        self.on_taken: list[Callable[[], None]] = []
        self._suffix = suffix
        self._own = own
        self._counters = counters
        self._clock = clock
        self._in_hand = 0
        self._refused: list[tuple[float, int, bytes, Callable[[], None]]] = []
        self._refusals = 0
        self._codes_logged: set[int] = set()

    @property
    def room(self) -> bool:
        """Whether one more message may be sent."""
        return self._in_hand < MAX_IN_HAND

    @property
    def idle(self) -> bool:
        """Whether all messages were taken."""
        return self._in_hand == 0

    def send(self, payload: bytes, taken: Callable[[], None]) -> None:
        """Send a message until the fleet has it, then call `taken`, once."""
        self._in_hand += 1
        self._send(payload, taken)

    def again(self) -> None:
        """Send what was refused REFUSED_SECONDS ago."""
        now = self._clock.monotonic()
        while self._refused and self._refused[0][0] <= now:
            _, _, payload, taken = heapq.heappop(self._refused)
            self._send(payload, taken)

    def _send(self, payload: bytes, taken: Callable[[], None]) -> None:
        def answered(code: int) -> None:
            if code >= FAILURE:
                self._put_off(payload, taken, code)
            else:
                self._take(taken)

        if not self._own.send(OwnMessage(self._suffix, payload, answered)):
            self._wait(payload, taken)

    def _take(self, taken: Callable[[], None]) -> None:
        self._in_hand -= 1
        self._counters.add(f"tidegate/{self._suffix}/acknowledged")
        taken()
        for callback in self.on_taken:
            callback()

    def _put_off(self, payload: bytes, taken: Callable[[], None], code: int) -> None:
        self._counters.add(f"tidegate/{self._suffix}/refused")
        if code not in self._codes_logged:
            self._codes_logged.add(code)
            logger.warning("the fleet takes no %s: 0x%02X; it is kept", self._suffix, code)
        self._wait(payload, taken)

    def _wait(self, payload: bytes, taken: Callable[[], None]) -> None:
        self._refusals += 1
        due = self._clock.monotonic() + REFUSED_SECONDS
        heapq.heappush(self._refused, (due, self._refusals, payload, taken))
