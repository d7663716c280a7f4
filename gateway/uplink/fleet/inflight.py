"""The messages that one connection has sent, until their PUBACKs."""

import heapq
import logging
import math
from collections.abc import Callable, Sequence

from gateway.mqtt.reason_codes import FAILURE, ReasonCode
from gateway.storage.outbox.row import OutboxRow, Outcome
from gateway.storage.outbox.writes import Live
from gateway.uplink.context import UplinkContext
from gateway.uplink.destination import REMOVAL_SECONDS
from gateway.uplink.errors import End
from gateway.uplink.link.backoff import Backoff
from gateway.uplink.link.pacing import Pacing
from gateway.uplink.refusals import RETRY_FIRST
from gateway.uplink.reports.control_messages import ControlMessage
from gateway.uplink.sent import Sent
from gateway.uplink.suspects import Suspect

logger = logging.getLogger(__name__)

SLOWEST_LINK = 8 * 1024
"""Bytes per second of the slowest link that is supported."""

MAX_INFLIGHT_BYTES = 256 * 1024
"""Unacknowledged bytes: half a minute of the slowest link. One row may be larger."""

PRESSING_SHARE = 4
"""Removals that make up a quarter of the window are committed at once."""

SHOWN_TOPIC = 256
"""Characters of a topic in the log."""

LASTING = {
    ReasonCode.NOT_AUTHORIZED,
    ReasonCode.TOPIC_NAME_INVALID,
    ReasonCode.PAYLOAD_FORMAT_INVALID,
}
"""Reason codes of permanent refusals; after any other the message is resent later."""

_DELIVERED = Outcome.DELIVERED  # CPython 3.11 takes 50 ns to find it

FOR_NOW = {ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, ReasonCode.QUOTA_EXCEEDED}
"""Reason codes after which one of the gateway's own messages is resent after OWN_SECONDS."""

OWN_SECONDS = 5.0

CODES = {
    End.TOO_LARGE: ReasonCode.PACKET_TOO_LARGE,
    End.MALFORMED: ReasonCode.MALFORMED_PACKET,
    End.TOO_FAST: ReasonCode.QUOTA_EXCEEDED,
}
"""The reason codes with which messages are rejected that ended connections in this way."""

REFUSED_IN_A_ROW = 2
"""Temporary refusals in a row, without an acceptance, after which sending pauses."""


class Inflight:
    """The messages in flight on one connection, and those to be resent.

    A row that the fleet has acknowledged waits here for `settle`, which removes it from the outbox.
    A row that it refused temporarily stays in the outbox, and `refusals` has the time of the next
    attempt. If several are refused and none is accepted, nothing is sent while `held`. A batch that
    it refused permanently is split: `again` returns its rows, which are sent separately. Messages
    of QoS 0 have negative packet identifiers, and are done when they are written. `report` is
    called with a text while sending is held or messages were refused temporarily, and then with "".
    """

    __slots__ = (
        "_clock",
        "_codes_logged",
        "_context",
        "_counters",
        "_delivered",
        "_hold",
        "_outbox",
        "_own_later",
        "_pacing",
        "_puback_timeout",
        "_refused",
        "_report",
        "_sent",
        "_separate",
        "_suspects",
        "_uplink",
        "_window",
        "apart",
        "bytes",
        "held_until",
        "live",
        "messages",
        "refusals",
        "unanswered",
        "watched",
    )

    def __init__(
        self,
        context: UplinkContext,
        pacing: Pacing,
        hold: Backoff,
        report: Callable[[str], None],
    ) -> None:
        self.bytes = 0
        self.messages = 0
        self.unanswered = 0
        """Messages of QoS 0 that were not sent yet."""
        self._clock = context.clock
        self._context = context
        self._counters = context.counters
        self._outbox = context.outbox
        self._uplink = context.uplink
        self._pacing = pacing
        self._hold = hold
        self._report = report
        self._puback_timeout = context.settings.puback_timeout
        self._window = context.settings.window
        self.held_until = 0.0
        self._sent: dict[int, Sent] = {}
        self.apart: list[tuple[int, OutboxRow]] = []
        """Rows of split batches, by their ids: a heap."""
        self.live: Live | None = None
        """The outbox's state of this uplink while its live rows are sent here."""
        self._separate: set[int] = set()
        self._refused: set[int] = set()
        self._own_later: list[tuple[float, ControlMessage]] = []
        self._suspects = context.session.suspects
        self.refusals = context.session.refusals
        self.watched = self._suspects.active
        """Whether PUBACKs concern suspects."""
        self._delivered: list[OutboxRow] = []
        self._codes_logged: set[int] = set()

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def held(self) -> bool:
        """True while sending pauses at the request of the fleet's broker."""
        return self._clock.monotonic() < self.held_until

    @property
    def overdue(self) -> bool:
        """True if the PUBACK of the message sent first is overdue."""
        first = next(iter(self._sent.values()), None)
        return first is not None and self._clock.monotonic() > first.deadline

    def has_capacity(self, window: int, receive_maximum: int) -> bool:
        """Return whether one more packet may be sent.

        Rows whose removal is not on disk count in our own `window`: a crash would bring them back,
        and not many more than a window may be repeated.
        """
        count = len(self._sent)
        removing = self._outbox.writes.delivering.get(self._uplink, 0)
        messages = self.messages + len(self._delivered) + removing
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
        # Everything in flight must pass the link before the fleet can answer this message.
        sent.deadline = sent.at + self._puback_timeout + self.bytes / SLOWEST_LINK
        self._sent[mid] = sent
        self.unanswered += mid < 0
        self._counters.values["tidegate/uplink/inflight"] = self.messages

    def again(self) -> OutboxRow | None:
        """Return the next row of a split batch, None without any."""
        return heapq.heappop(self.apart)[1] if self.apart else None

    def is_separate(self, row: OutboxRow) -> bool:
        """Return whether `row` must not be in a batch, since one with it was refused."""
        return row.id in self._separate or self.refusals.is_separate(row.id)

    def acknowledged(self, mid: int, code: int) -> None:
        """Handle a PUBACK."""
        sent = self._sent.pop(mid, None)
        if sent is None:
            return
        self.bytes -= sent.size
        self.messages -= sent.messages
        now = self._clock.monotonic()
        delay = now - sent.at
        self._pacing.answered(sent.paced, delay, now)
        if self.live is not None:
            self.live.delay = delay
        self._counters.values["tidegate/uplink/inflight"] = self.messages
        if self.watched:
            self._suspects.answered(sent, code)
        if sent.rows:
            if code < FAILURE:
                self._rows_delivered(sent.rows)
            else:
                self._rows_refused(sent.rows, code)
        elif sent.own is not None:
            self._control_answered(sent.own, code)
        elif code >= FAILURE:
            logger.warning("the fleet's broker refused the status message: 0x%02X", code)

    def resend_own(self, now: float) -> None:
        """Queue again the gateway's own messages that were refused OWN_SECONDS ago."""
        while self._own_later and self._own_later[0][0] <= now:
            self._context.control_messages.requeue(self._own_later.pop(0)[1])

    def written(self) -> bool:
        """Count all messages without acknowledgement as delivered; return True."""
        self.unanswered = 0
        for mid in [mid for mid in self._sent if mid < 0]:
            self.acknowledged(mid, ReasonCode.SUCCESS)
        self.settle()
        return True

    def refuse(self, row: OutboxRow, code: int, problem: str = "", cause: str = "") -> None:
        """Remove a `row` that will never be accepted, so that it does not block the others.

        `problem` is the reason if no PUBACK gave one, and `cause` the same for the ledger.
        """
        cause = cause or f"0x{code:02X}"
        uplink = self._uplink
        if row.id in self.refusals.by_id:
            self.refusals.discard(row.id)
            self._report_refusals()
        name = self._context.settings.name or ""
        self._context.rejected.add(row, code, self._clock.wall_ms(), cause, name)
        if self._context.requests.retained is not None:
            self._context.requests.retained.refused(row)
        self._outbox.remove([row], Outcome.REJECTED, cause, 0.0, uplink)
        self._outbox.end_turn()
        problem = problem or "the fleet's broker refused it"
        self._log(code, row, f"was rejected ({cause}): {problem}")

    def log_suspected(self, suspect: Suspect) -> None:
        """Log the first connection that ended with only this message in flight."""
        if suspect.ends == 1 and suspect.sent.rows:
            how = f"was the only one in flight when the connection ended ({suspect.end})"
            self._log(-suspect.sent.rows[0].id, suspect.sent.rows[0], f"{how}: it is tried again")

    def reject_suspect(self, suspect: Suspect) -> None:
        """Reject a message that ended several connections while others passed."""
        end, sent = suspect.end, suspect.sent
        times = f"{suspect.ends} connections ended ({end}) when only it was in flight"
        code = CODES.get(end, ReasonCode.UNSPECIFIED_ERROR)
        if sent.own is not None:
            logger.warning("a %s message is put off: %s", sent.own.suffix, times)
            self._context.control_messages.answered(sent.own, code)
        elif not sent.rows:
            self._suspects.without_status = True
            logger.warning("the status message is not sent any more until a restart: %s", times)
        else:
            # A rejection is always logged, whatever was logged before.
            self._codes_logged.clear()
            self.refuse(sent.rows[0], code, f"{times}; others passed", str(end))

    def defer(self, row: OutboxRow, code: int, problem: str) -> None:
        """Postpone a row that cannot be sent on this connection because of a `problem`."""
        if self._defer(row, code):
            self._log(~code, row, f"waits in the outbox (0x{code:02X}): {problem}")
        else:
            self.refuse(row, code, problem)

    def _defer(self, row: OutboxRow, code: int) -> bool:
        """Postpone a row; return False if it has waited too long."""
        if self.refusals.add(row.id, code, self._clock.monotonic()) is None:
            return False
        self._context.session.note_sent((row,))
        # it may be evicted while it waits
        row.claimed &= ~self._uplink
        self._report_refusals()
        return True

    def _log(self, key: int, row: OutboxRow, what: str) -> None:
        """Log the first message of a kind on a connection."""
        if key not in self._codes_logged:
            self._codes_logged.add(key)
            name = f"{row.epoch}.{row.stream}.{row.seq}"
            topic, size = row.message.topic[:SHOWN_TOPIC], len(row.message.payload)
            uplink = self._context.settings.name
            whose = f"uplink {uplink}: " if uplink else ""
            logger.warning("%smessage %s (%s, %s bytes) %s", whose, name, topic, f"{size:,}", what)

    def settle(self) -> None:
        """Remove from the outbox the rows that the fleet has acknowledged.

        The removal is committed with the next commit, or after REMOVAL_SECONDS, unless it takes up
        so much of the window that the rest might be sent before.
        """
        delivered, outbox, uplink = self._delivered, self._outbox, self._uplink
        if delivered:
            removing = len(delivered) + outbox.writes.delivering.get(uplink, 0)
            pressing = removing * PRESSING_SHARE >= self._window
            # Removals share a commit with new rows, which saves the card a write.
            commit_within = 0.0 if pressing else REMOVAL_SECONDS
            outbox.remove(delivered, _DELIVERED, "", commit_within, uplink)
            outbox.end_turn()
            self._delivered = []

    def close(self) -> list[tuple[int, Sent]]:
        """Remove acknowledged rows; return the packets without PUBACK by packet identifier."""
        self.settle()
        self.resend_own(math.inf)
        self._counters.set("tidegate/uplink/inflight", 0)
        # QoS 0 has no identifier, and is never sent again.
        return [(mid, sent) for mid, sent in self._sent.items() if mid > 0]

    def _rows_refused(self, rows: Sequence[OutboxRow], code: int) -> None:
        self._counters.add("tidegate/uplink/refused")
        # One bad message must not condemn its batch: each is sent separately.
        if len(rows) > 1 and (code in LASTING or code == ReasonCode.PACKET_TOO_LARGE):
            self._separate.update(row.id for row in rows)
            self._send_again(rows)
        elif code in LASTING:
            self.refuse(rows[0], code)
        else:
            self._refused_for_now(rows, code)

    def _refused_for_now(self, rows: Sequence[OutboxRow], code: int) -> None:
        for row in rows:
            if not self._defer(row, code):
                self.refuse(row, code, "the fleet's broker has refused it repeatedly")
            else:
                self._log(~code, row, f"was refused for now (0x{code:02X}): it is tried again")
        # A packet that is too large says nothing about the fleet's capacity.
        if code != ReasonCode.PACKET_TOO_LARGE:
            self._refused.add(rows[0].id)
            if len(self._refused) >= REFUSED_IN_A_ROW:
                self._hold_all(code, rows)

    def _control_answered(self, message: ControlMessage, code: int) -> None:
        if code in FOR_NOW:
            self._own_later.append((self._clock.monotonic() + OWN_SECONDS, message))
        else:
            self._context.control_messages.answered(message, code)

    def _send_again(self, rows: Sequence[OutboxRow]) -> None:
        self._context.session.note_sent(rows)
        for row in rows:
            row.claimed &= ~self._uplink
            heapq.heappush(self.apart, (row.id, row))

    def _rows_delivered(self, rows: Sequence[OutboxRow]) -> None:
        self._counters.add("tidegate/uplink/acknowledged", len(rows))
        self._delivered.extend(rows)
        if self._separate:
            self._separate.difference_update([row.id for row in rows])
        if self.refusals.by_id or self._refused or self.held_until:
            for row in rows:
                self.refusals.discard(row.id)
            self._refused.clear()
            self.held_until = 0.0
            self._hold.reset()
            self._report_refusals()

    def _report_refusals(self) -> None:
        """Report the messages that were refused temporarily, unless sending is held for them."""
        refused = self.refusals.by_id
        if self.held_until:
            return
        if not refused:
            self._report("")
            return
        code = refused[next(reversed(refused))].code
        self._report(f"refused for now and tried again: {len(refused):,} messages (0x{code:02X})")

    def _hold_all(self, code: int, rows: Sequence[OutboxRow]) -> None:
        """Pause sending; messages refused for the first time are sent first after the pause."""
        now = self._clock.monotonic()
        # The backlog is slowed down, too, or it would meet the same refusal at once.
        self._pacing.slow_down(now)
        if now >= self.held_until:
            self.held_until = now + self._hold.delay()
            self._report(f"the fleet's broker accepts no more for now (0x{code:02X})")
        if self.refusals.is_first(rows[0].id):
            self.held_until = max(self.held_until, now + RETRY_FIRST)
