"""The messages that one connection has sent, until their PUBACKs."""

import heapq
import logging
from collections.abc import Sequence

from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.storage.outbox.outbox_row import OutboxRow
from gateway.storage.outbox.outcome import Outcome
from gateway.uplink.context import UplinkContext
from gateway.uplink.destination import REMOVAL_SECONDS
from gateway.uplink.link.backoff import Backoff
from gateway.uplink.link.pacing import Pacing
from gateway.uplink.reports.control_messages import ControlMessage
from gateway.uplink.sent import Sent

logger = logging.getLogger(__name__)

SLOWEST_LINK = 8 * 1024
"""Bytes per second of the slowest link that is supported."""

MAX_INFLIGHT_BYTES = 256 * 1024
"""Bytes sent and not acknowledged; half a minute of the slowest link. One row may be larger."""

PRESSING_SHARE = 4
"""Removals that make up a quarter of the window are committed at once."""

SHOWN_TOPIC = 256
"""Characters of a topic in the log."""

TRY_AGAIN = {ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, ReasonCode.QUOTA_EXCEEDED}
"""Reason codes after which the message is resent later (docs/fleet.md).

Message rate too high (0x96) is none that a PUBACK can carry (MQTT 5, section 3.4.2.1): it ends
the connection, and everything without a PUBACK is sent on the next one.
"""


class Inflight:
    """The messages in flight on one connection, and those to be resent.

    A row that the fleet took waits in here for `settle`, which removes it from the outbox; a
    row that it refused for now comes out of `again` once `held` is over, ordered as before. A
    batch that it refused for good is taken apart: its rows come out of `again` too, and go alone.
    Messages of QoS 0 have negative packet identifiers, and are done when they have `left`.
    """

    __slots__ = (
        "_again",
        "_alone",
        "_clock",
        "_codes_logged",
        "_context",
        "_counters",
        "_held_until",
        "_hold",
        "_outbox",
        "_pacing",
        "_sent",
        "_taken",
        "_uplink",
        "bytes",
        "messages",
        "trouble",
        "unanswered",
    )

    def __init__(self, context: UplinkContext, pacing: Pacing, hold: Backoff) -> None:
        self.bytes = 0
        self.messages = 0
        self.trouble = ""
        self.unanswered = 0
        """Messages of QoS 0 that have not left."""
        self._clock = context.clock
        self._context = context
        self._counters = context.counters
        self._outbox = context.outbox
        self._uplink = context.uplink
        self._pacing = pacing
        self._hold = hold
        self._held_until = 0.0
        self._sent: dict[int, Sent] = {}
        self._again: list[tuple[int, OutboxRow]] = []
        self._alone: set[int] = set()
        self._taken: list[OutboxRow] = []
        self._codes_logged: set[int] = set()

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def held(self) -> bool:
        """True while sending pauses because the fleet's broker asked for it."""
        return self._held_until > 0.0 and self._clock.monotonic() < self._held_until

    @property
    def overdue(self) -> bool:
        """True when the PUBACK of the message sent first should have come."""
        first = next(iter(self._sent.values()), None)
        return first is not None and self._clock.monotonic() > first.deadline

    def room(self, window: int, receive_maximum: int) -> bool:
        """Return whether one more packet may be sent.

        Rows whose removal is not on disk count against our own `window`: a crash would bring
        them back, and not many more than a window may be repeated.
        """
        count = len(self._sent)
        removing = self._outbox.removing(self._uplink)
        messages = self.messages + len(self._taken) + removing
        return (
            count < receive_maximum
            and messages < window
            and (count == 0 or self.bytes < MAX_INFLIGHT_BYTES)
        )

    def sent(self, mid: int, sent: Sent) -> None:
        """Record that `sent` was sent under the packet identifier `mid`."""
        self.bytes += sent.size
        self.messages += sent.messages
        sent.at = self._clock.monotonic()
        patience = self._context.settings.puback_timeout + self.bytes / SLOWEST_LINK
        sent.deadline = sent.at + patience
        self._sent[mid] = sent
        self.unanswered += mid < 0
        self._counters.set("tidegate/uplink/inflight", self.messages)

    def again(self) -> OutboxRow | None:
        """Return the next row that was refused for now, None when there is none."""
        return heapq.heappop(self._again)[1] if self._again else None

    @property
    def waits_again(self) -> bool:
        """Whether `again` has a row."""
        return bool(self._again)

    def alone(self, row: OutboxRow) -> bool:
        """Return whether `row` must not go in a batch, since one with it was refused."""
        return row.id in self._alone

    def acknowledged(self, mid: int, code: int) -> None:
        """Handle a PUBACK."""
        sent = self._sent.pop(mid, None)
        if sent is None:
            return
        self.bytes -= sent.size
        self.messages -= sent.messages
        now = self._clock.monotonic()
        self._pacing.answered(sent.paced, now - sent.at, now)
        self._outbox.writes.answered(now - sent.at, self._uplink)
        self._counters.set("tidegate/uplink/inflight", self.messages)
        if sent.rows:
            self._rows_answered(sent.rows, code)
        elif sent.own is not None:
            self._control_answered(sent.own, code)
        elif code >= FAILURE:
            logger.warning("the fleet's broker refused the status message: 0x%02X", code)

    def left(self) -> bool:
        """Take all that nobody acknowledges as delivered; return True."""
        self.unanswered = 0
        for mid in [mid for mid in self._sent if mid < 0]:
            self.acknowledged(mid, ReasonCode.SUCCESS)
        self.settle()
        return True

    def refuse(self, row: OutboxRow, code: int, problem: str = "") -> None:
        """Remove a `row` that will never be accepted, so that it does not block the others.

        `problem` is why it was not even sent.
        """
        self._context.rejected.add(row, code, self._clock.wall_ms())
        reason, uplink = f"0x{code:02X}", self._uplink
        self._outbox.remove([row], Outcome.REJECTED, reason, 0.0, uplink)
        self._outbox.end_turn()
        if code not in self._codes_logged:  # a line for each code and connection
            self._codes_logged.add(code)
            name = f"{row.epoch}.{row.stream}.{row.seq}"
            reason = problem or "the fleet's broker refused it"
            topic = row.topic[:SHOWN_TOPIC]
            logger.warning("message %s (%s) was rejected (0x%02X): %s", name, topic, code, reason)

    def settle(self) -> None:
        """Remove from the outbox the rows that the fleet has acknowledged.

        That goes to disk with the next commit, or after REMOVAL_SECONDS, unless it takes up so
        much of the window that the rest of it might be sent before.
        """
        taken, outbox, uplink = self._taken, self._outbox, self._uplink
        if taken:
            removing = len(taken) + outbox.removing(uplink)
            pressing = removing * PRESSING_SHARE >= self._context.settings.window
            within = 0.0 if pressing else REMOVAL_SECONDS
            outbox.remove(taken, Outcome.DELIVERED, "", within, uplink)
            outbox.end_turn()
            self._taken = []

    def close(self) -> list[tuple[int, Sent]]:
        """Remove acknowledged rows; return the packets without PUBACK by packet identifier."""
        self.settle()
        self._counters.set("tidegate/uplink/inflight", 0)
        return [(mid, sent) for mid, sent in self._sent.items() if mid > 0]

    def _rows_answered(self, rows: Sequence[OutboxRow], code: int) -> None:
        if code < FAILURE:
            self._take(rows)
            return
        self._counters.add("tidegate/uplink/refused")
        if code in TRY_AGAIN:
            self._send_again(rows)
            self._put_off(code)
        elif len(rows) > 1:
            self._alone.update(row.id for row in rows)
            self._send_again(rows)
        else:
            self.refuse(rows[0], code)

    def _control_answered(self, message: ControlMessage, code: int) -> None:
        if code in TRY_AGAIN:
            self._context.control_messages.put_back(message)
            self._put_off(code)
        else:
            self._context.control_messages.answered(message, code)

    def _send_again(self, rows: Sequence[OutboxRow]) -> None:
        self._context.session.note_sent(rows)
        for row in rows:
            self._outbox.put_back(row, self._uplink)
            heapq.heappush(self._again, (row.id, row))

    def _take(self, rows: Sequence[OutboxRow]) -> None:
        self._counters.add("tidegate/uplink/acknowledged", len(rows))
        self._taken.extend(rows)
        self._alone.difference_update([row.id for row in rows] if self._alone else ())
        if not self.held:
            self._hold.reset()
            self.trouble = ""

    def _put_off(self, code: int) -> None:
        now = self._clock.monotonic()
        self._pacing.slow_down(now)
        if now >= self._held_until:
            self._held_until = now + self._hold.delay()
            self.trouble = f"the fleet's broker takes no more for now (0x{code:02X})"
