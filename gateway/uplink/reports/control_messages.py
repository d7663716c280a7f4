"""Messages from the gateway itself to the fleet, such as ledger and clock records."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

MAX_CONTROL_MESSAGES = 256
"""Control messages that wait or are in flight; above that, `send` returns False."""


@dataclass(slots=True)
class ControlMessage:
    """A message below `<prefix>/<gateway_id>/<suffix>`, sent with QoS 1 and without RETAIN.

    `on_answered` is called once, with the reason code that ends it: below 0x80 the fleet has
    accepted it, from 0x80 on refused it permanently. After 0x83 and 0x97 it is resent. `number` is
    set by `ControlMessages.send`.
    """

    suffix: str
    payload: bytes
    on_answered: Callable[[int], None] = lambda _code: None
    number: int = 0


class ControlMessages:
    """A bounded queue in order, sent before all rows of the outbox, over any connection.

    It is in memory only. A caller that must not lose a message stores it until `on_answered` and
    sends it again after a start.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self._wake = wake
        self._waiting: list[tuple[int, ControlMessage]] = []
        self._count = 0
        self._last = 0

    def __len__(self) -> int:
        return self._count

    def send(self, message: ControlMessage) -> bool:
        """Queue a message; False when the queue is full: try again after an `on_answered`."""
        if self._count >= MAX_CONTROL_MESSAGES:
            return False
        self._count += 1
        self._last += 1
        message.number = self._last
        self.requeue(message)
        self._wake()
        return True

    def next(self) -> ControlMessage | None:
        """Return the message to send now; `answered` ends it, or `requeue` returns it."""
        return heapq.heappop(self._waiting)[1] if self._waiting else None

    def answered(self, message: ControlMessage, code: int) -> None:
        """End a message with its reason code."""
        self._count -= 1
        message.on_answered(code)

    def requeue(self, message: ControlMessage) -> None:
        """Queue a message again in its old position: it got no answer, or "later"."""
        heapq.heappush(self._waiting, (message.number, message))
