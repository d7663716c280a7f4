"""The client's part of the session at the fleet's broker, across connections."""

from collections import deque
from collections.abc import Iterable

from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.errors import End
from gateway.uplink.refusals import Refusals
from gateway.uplink.reports.control_messages import ControlMessages
from gateway.uplink.sent import Sent
from gateway.uplink.suspects import Suspect, Suspects, new_identifiers

MAXIMUM_SENT = 10_000
"""Unacknowledged rows that are remembered; further ones count as new."""


class RemoteSession:
    """The PUBLISH packets without PUBACK, by their packet identifiers, in order of sending.

    They are repeated with the same identifiers if the server has kept the session [MQTT-4.4.0-1];
    if not, their rows are read from the outbox again. `known` means that this side has its half of
    a session and may resume it [MQTT-3.2.2-4]. It has it from the first connection on, or from the
    start if an earlier run ended with nothing unacknowledged. Unless it is `persistent`, every
    connection starts clean. `last_packet_identifier` is where the next connection continues, so
    that it assigns no identifier that is in use [MQTT-2.2.1-3]. `suspects` are packets on which
    connections ended, and `refusals` messages that the fleet refused temporarily. A packet with the
    identifier 0 is sent as if for the first time.
    """

    def __init__(
        self,
        control_messages: ControlMessages,
        *,
        persistent: bool,
        known: bool = False,
        maximum_ends: int = 3,
        retry_seconds: float = 0.0,
    ) -> None:
        self.suspects = Suspects(maximum_ends, retry_seconds)
        self.refusals = Refusals(retry_seconds)
        self.persistent = persistent
        self.known = persistent and known
        self.unanswered: deque[tuple[int, Sent]] = deque()
        self.last_packet_identifier = 0
        self._own_messages = control_messages
        self.sent: set[int] = set()
        """Ids of rows that the server may have, or has refused; usually there are none."""

    def change(self, *, persistent: bool, maximum_ends: int, retry_seconds: float) -> None:
        """Continue with other settings at the same broker."""
        self.persistent = persistent
        self.known = self.known and persistent
        self.suspects.change(maximum_ends, retry_seconds)
        self.refusals.retry_seconds = retry_seconds

    def abandon(self) -> None:
        """Leave this broker for another: rows are sent again, as if for the first time."""
        for sent in (*(each for _, each in self.unanswered), *(s.sent for s in self.suspects.held)):
            if sent.own is not None:
                self._own_messages.requeue(sent.own)
        self.unanswered.clear()
        self.suspects.held.clear()

    @property
    def resumable(self) -> bool:
        """Whether a later run may resume it: no packet without PUBACK would be missing."""
        return self.known and not self.unanswered and not self.suspects.held

    def begin(self, *, present: bool) -> None:
        """Compare the CONNACK's Session Present with the client's state."""
        self.known = self.persistent
        if not present:
            self._forget()
        self.suspects.begin(present=present)
        self.refusals.begin(self.rows)

    def end(
        self,
        sent: list[tuple[int, Sent]],
        last_packet_identifier: int,
        end: End = End.FAILED,
        now: float = 0.0,
    ) -> Suspect | None:
        """Store the unacknowledged packets of a connection; return those to reject.

        Of several status messages the last is stored.
        """
        self.last_packet_identifier = last_packet_identifier
        for _, each in sent:
            self.note_sent(each.rows)
        again, given_up = self.suspects.ended(sent, end, now)
        # in front of older ones, in their order
        self.unanswered.extendleft(reversed(again))
        old = [each for each in self.unanswered if each[1].is_status][:-1]
        for status in old:
            self.unanswered.remove(status)
        if not self.persistent:
            self._forget()
        return given_up

    @property
    def rows(self) -> set[int]:
        """The ids of the rows that are repeated, or held."""
        return {row.id for _, sent in self.unanswered for row in sent.rows} | self.suspects.rows

    def note_sent(self, rows: Iterable[OutboxRow]) -> None:
        """Note rows that were sent and not accepted."""
        if len(self.sent) >= MAXIMUM_SENT:
            self.sent.clear()
        self.sent.update(row.id for row in rows)

    def count_resent(self, rows: Iterable[OutboxRow]) -> int:
        """Return how many of these rows were sent before in this run."""
        again = self.sent.intersection(row.id for row in rows)
        self.sent.difference_update(again)
        return len(again)

    def _forget(self) -> None:
        if self.suspects.searching:
            self.unanswered = new_identifiers(self.unanswered)
            return
        for _, sent in self.unanswered:
            if sent.own is not None:
                self._own_messages.requeue(sent.own)
        self.unanswered.clear()
