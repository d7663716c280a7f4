"""What one connection has sent, and what the PUBACKs said about it."""

import heapq
import logging
from dataclasses import dataclass

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.storage.fate import Fate
from gateway.storage.outbox import Outbox
from gateway.storage.outbox_row import OutboxRow
from gateway.storage.rejected import Rejected
from gateway.uplink.backoff import Backoff
from gateway.uplink.own_messages import OwnMessage, OwnMessages

logger = logging.getLogger(__name__)

PUBACK_SECONDS = 30.0
"""How long a PUBACK may take, beside the time that a slow link needs for the bytes before it."""

SLOWEST_LINK = 8 * 1024
"""Bytes per second that the slowest link is taken to carry."""

MAX_INFLIGHT_BYTES = 256 * 1024
"""Bytes sent and not acknowledged; half a minute of the slowest link. One row may be larger."""

TRY_AGAIN = {ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, ReasonCode.QUOTA_EXCEEDED}
"""Refusals that pass: the message is sent again after a while (docs/fleet.md).

Message rate too high (0x96) is none that a PUBACK can carry (MQTT 5, section 3.4.2.1): it ends
the connection, and everything without a PUBACK is sent on the next one.
"""


@dataclass(slots=True)
class _Sent:
    what: OutboxRow | OwnMessage | None  # None: the gateway's status message
    size: int
    deadline: float


class Inflight:
    """The messages in flight on one connection, and those to be sent again.

    A row that the fleet took waits in here for `settle`, which removes it from the outbox; a
    row that it refused for now comes out of `again` once `held` is over, ordered as before.
    """

    def __init__(
        self,
        outbox: Outbox,
        rejected: Rejected,
        counters: Counters,
        clock: Clock,
        hold: Backoff,
        own_messages: OwnMessages,
    ) -> None:
        self.bytes = 0
        self.trouble = ""
        self._outbox = outbox
        self._rejected = rejected
        self._counters = counters
        self._clock = clock
        self._hold = hold
        self._own_messages = own_messages
        self._held_until = 0.0
        self._sent: dict[int, _Sent] = {}
        self._again: list[tuple[int, OutboxRow]] = []
        self._taken: list[OutboxRow] = []
        self._codes_logged: set[int] = set()

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def held(self) -> bool:
        """True while the fleet's broker wants to be left alone."""
        return self._clock.monotonic() < self._held_until

    @property
    def overdue(self) -> bool:
        """True when the PUBACK of the message sent first should have come."""
        first = next(iter(self._sent.values()), None)
        return first is not None and self._clock.monotonic() > first.deadline

    def room(self, window: int, receive_maximum: int) -> bool:
        """Return whether one more message may be sent.

        Rows whose removal is not on disk count against our own `window`: a crash would bring
        them back, and no more than a window may be repeated.
        """
        count = len(self._sent)
        return (
            count < receive_maximum
            and count + len(self._taken) + self._outbox.removing < window
            and (count == 0 or self.bytes < MAX_INFLIGHT_BYTES)
        )

    def sent(self, mid: int, what: OutboxRow | OwnMessage | None, size: int) -> None:
        """Note that `what` left under the packet identifier `mid`."""
        self.bytes += size
        deadline = self._clock.monotonic() + PUBACK_SECONDS + self.bytes / SLOWEST_LINK
        self._sent[mid] = _Sent(what, size, deadline)
        self._counters.set("tidegate/uplink/inflight", len(self._sent))

    def again(self) -> OutboxRow | None:
        """Return the next row that was refused for now, None when there is none."""
        return heapq.heappop(self._again)[1] if self._again else None

    def acknowledged(self, mid: int, code: int) -> None:
        """Take in a PUBACK."""
        sent = self._sent.pop(mid, None)
        if sent is None:
            return
        self.bytes -= sent.size
        self._counters.set("tidegate/uplink/inflight", len(self._sent))
        if isinstance(sent.what, OutboxRow):
            self._row_answered(sent.what, code)
        elif sent.what is not None:
            self._own_answered(sent.what, code)
        elif code >= FAILURE:
            logger.warning("the fleet's broker refused the status message: 0x%02X", code)

    def close(self) -> None:
        """Settle what was answered; what was not goes back to where it came from."""
        self.settle()
        for sent in self._sent.values():
            if isinstance(sent.what, OwnMessage):
                self._own_messages.put_back(sent.what)
        self._sent.clear()
        self._counters.set("tidegate/uplink/inflight", 0)

    def _row_answered(self, row: OutboxRow, code: int) -> None:
        if code < FAILURE:
            self._take(row)
            return
        self._counters.add("tidegate/uplink/refused")
        if code in TRY_AGAIN:
            self._outbox.put_back(row)
            heapq.heappush(self._again, (row.id, row))
            self._put_off(code)
        else:
            self.refuse(row, code)

    def _own_answered(self, message: OwnMessage, code: int) -> None:
        if code in TRY_AGAIN:
            self._own_messages.put_back(message)
            self._put_off(code)
        else:
            self._own_messages.answered(message, code)

    def refuse(self, row: OutboxRow, code: int) -> None:
        """Give `row` up: it will never get through, and must not stand in the others' way."""
        self._rejected.add(row, code, self._clock.wall_ms())
        self._outbox.remove([row], Fate.REJECTED, f"0x{code:02X}")
        self._outbox.end_turn()
        if code not in self._codes_logged:  # a line for each code and connection
            self._codes_logged.add(code)
            name = f"{row.epoch}.{row.stream}.{row.seq}"
            logger.warning("message %s (%s) was rejected: 0x%02X", name, row.topic, code)

    def settle(self) -> None:
        """Remove from the outbox what the fleet has taken."""
        if self._taken:
            self._outbox.remove(self._taken, Fate.DELIVERED)
            self._outbox.end_turn()
            self._taken = []

    def _take(self, row: OutboxRow) -> None:
        self._counters.add("tidegate/uplink/acknowledged")
        self._taken.append(row)
        if not self.held:
            self._hold.reset()
            self.trouble = ""

    def _put_off(self, code: int) -> None:
        if not self.held:
            self._held_until = self._clock.monotonic() + self._hold.delay()
            self.trouble = f"the fleet's broker takes no more for now (0x{code:02X})"
