"""QoS 1 messages that came alone and were just sent: few are still there when a batch closes."""

import math

from gateway.session.inflight_message import InflightAlone
from gateway.storage.gathering import Gathering


class LoneDeliveries:
    """Holds them while nobody has asked for the delivery that each of them is.

    They are for the batch after the one that gathers: whoever closes that one opens them before
    (`open_all`), and they are lent like any other. It is closed for their sake only if one of them
    is older than half of the commit delay; nothing is gathered, and no batch begun, for those that
    are acknowledged by then. There are no more than the windows of all sessions hold.
    """

    __slots__ = ("_gathering", "_sent", "_wake_up")

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self._sent: dict[InflightAlone, None] = {}  # in the order of their sending
        self._wake_up = gathering.writer.wake_up
        self._wake_up.ring = self._write_old

    def lend(self, message: InflightAlone) -> int:
        """Hold one that is sent now; return the batch that brings it to disk."""
        writer = self._gathering.writer
        if not self._sent:
            self._wake_up.at = message.arrived + writer.commit_delay / 2
        self._sent[message] = None
        return writer.batch + 1

    def done(self, message: InflightAlone) -> None:
        """Forget one that was acknowledged: neither it nor its delivery is ever written."""
        self._forget(message)
        self._gathering.writer.elided_rows += 2

    def opened(self, message: InflightAlone) -> None:
        """Forget one that is a delivery from now on, and announce that like any other."""
        self._forget(message)
        self._gathering.lend(message.origin.commit_within or 0.0)

    def open_all(self) -> None:
        """Make deliveries of all: the batch that gathers is about to be closed."""
        for message in list(self._sent):
            message.open()

    def _forget(self, message: InflightAlone) -> None:
        sent = self._sent
        del sent[message]
        if not sent:
            self._wake_up.at = math.inf

    def _write_old(self) -> None:
        """Have those written that nobody acknowledged in time, and wake up for the next."""
        writer = self._gathering.writer
        half = writer.commit_delay / 2
        now, within = self._wake_up.at, math.inf
        for message in list(self._sent):
            due = message.arrived + half
            if due > now:
                self._wake_up.at = due
                break
            message.open()
            within = min(within, message.origin.commit_within or 0.0)
        if within < math.inf:
            writer.want(max(within - writer.commit_delay, 0.0))
            writer.hand_over()
