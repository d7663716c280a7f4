"""What the gateway itself has to say to the fleet: ledger and clock records, beside the data."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

MAX_OWN_MESSAGES = 256
"""Own messages that wait or are in flight; beyond, `send` returns False."""


@dataclass(slots=True)
class OwnMessage:
    """A message below `<prefix>/<gateway_id>/<suffix>`, sent with QoS 1 and without RETAIN.

    `on_answered` is called once, with the reason code that ends it: below 0x80 the fleet has it,
    from 0x80 on it refused it for good. 0x83 and 0x97 are no end: it is sent again. `number` is
    given by `OwnMessages.send`.
    """

    suffix: str
    payload: bytes
    on_answered: Callable[[int], None] = lambda _code: None
    number: int = 0


class OwnMessages:
    """A bounded queue that goes ahead of all rows, in its order, whichever connection is up.

    Nothing of it is on disk. Whoever needs that keeps the message until `on_answered`, and
    sends it anew after a start.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self._wake = wake
        self._waiting: list[tuple[int, OwnMessage]] = []
        self._count = 0
        self._last = 0

    def __len__(self) -> int:
        return self._count

    def send(self, message: OwnMessage) -> bool:
        """Queue a message; False when the queue is full: try again after an `on_answered`."""
        if self._count >= MAX_OWN_MESSAGES:
            return False
        self._count += 1
        self._last += 1
        message.number = self._last
        self.put_back(message)
        self._wake()
        return True

    def next(self) -> OwnMessage | None:
        """Return the message to send now; it ends by `answered` or returns by `put_back`."""
        return heapq.heappop(self._waiting)[1] if self._waiting else None

    def answered(self, message: OwnMessage, code: int) -> None:
        """End a message with the reason code that it got."""
        self._count -= 1
        message.on_answered(code)

    def put_back(self, message: OwnMessage) -> None:
        """Queue a message in its place: nobody answered it, or the answer was "later"."""
        heapq.heappush(self._waiting, (message.number, message))
