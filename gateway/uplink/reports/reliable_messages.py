"""Control messages that are resent until the fleet has acknowledged them."""

import heapq
import logging
from collections.abc import Callable

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.reason_codes import FAILURE
from gateway.uplink.reports.control_messages import ControlMessage, ControlMessages

logger = logging.getLogger(__name__)

MAX_UNANSWERED = 8
"""Maximum messages of one kind in flight; rows for further ones stay on disk."""

REFUSED_SECONDS = 60.0
"""Seconds for which a refused message waits, so that the broker is not flooded."""


class ReliableMessages:
    """Sends messages below `…/<suffix>`, at most MAX_UNANSWERED at a time.

    `has_capacity` is whether one more may be sent; `on_capacity` are called whenever that becomes
    true. Call `resend` about once a second: it resends refused messages after a pause.
    """

    def __init__(
        self, suffix: str, control_messages: ControlMessages, counters: Counters, clock: Clock
    ) -> None:
        self.on_capacity: list[Callable[[], None]] = []
        self._suffix = suffix
        self._control_messages = control_messages
        self._counters = counters
        self._clock = clock
        self._unanswered = 0
        self._refused: list[tuple[float, int, bytes, Callable[[], None]]] = []
        self._refusals = 0
        self._codes_logged: set[int] = set()

    @property
    def has_capacity(self) -> bool:
        """Whether one more message may be sent."""
        return self._unanswered < MAX_UNANSWERED

    @property
    def idle(self) -> bool:
        """Whether all messages were delivered."""
        return self._unanswered == 0

    def send(self, payload: bytes, on_delivered: Callable[[], None]) -> None:
        """Send a message until the fleet has it, then call `on_delivered`, once."""
        self._unanswered += 1
        self._send(payload, on_delivered)

    def resend(self) -> None:
        """Resend what was refused REFUSED_SECONDS ago."""
        now = self._clock.monotonic()
        while self._refused and self._refused[0][0] <= now:
            _, _, payload, on_delivered = heapq.heappop(self._refused)
            self._send(payload, on_delivered)

    def _send(self, payload: bytes, on_delivered: Callable[[], None]) -> None:
        def answered(code: int) -> None:
            if code >= FAILURE:
                self._put_off(payload, on_delivered, code)
            else:
                self._deliver(on_delivered)

        if not self._control_messages.send(ControlMessage(self._suffix, payload, answered)):
            self._wait(payload, on_delivered)

    def _deliver(self, on_delivered: Callable[[], None]) -> None:
        self._unanswered -= 1
        self._counters.add(f"tidegate/{self._suffix}/acknowledged")
        on_delivered()
        for callback in self.on_capacity:
            callback()

    def _put_off(self, payload: bytes, on_delivered: Callable[[], None], code: int) -> None:
        self._counters.add(f"tidegate/{self._suffix}/refused")
        if code not in self._codes_logged:
            self._codes_logged.add(code)
            logger.warning(
                "the fleet refused a %s message with 0x%02X; it is stored and sent again",
                self._suffix,
                code,
            )
        self._wait(payload, on_delivered)

    def _wait(self, payload: bytes, on_delivered: Callable[[], None]) -> None:
        self._refusals += 1
        due = self._clock.monotonic() + REFUSED_SECONDS
        heapq.heappush(self._refused, (due, self._refusals, payload, on_delivered))
