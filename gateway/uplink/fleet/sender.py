"""Sends the rows of the outbox over one connection, up to the window."""

from collections.abc import Callable

from gateway.storage.outbox.row import OutboxRow
from gateway.uplink.batch import SUFFIX, Batch, BatchLimits, batch_line
from gateway.uplink.context import UplinkContext
from gateway.uplink.fleet.client import FleetClient
from gateway.uplink.fleet.connecting import ServerLimits
from gateway.uplink.fleet.inflight import Inflight
from gateway.uplink.fleet.publisher import Picked, Publisher
from gateway.uplink.lanes import Lanes
from gateway.uplink.link.pacing import Pacing
from gateway.uplink.refusals import RETRY_FIRST
from gateway.uplink.remote_session import RemoteSession

BATCHES_IN_FLIGHT = 8
"""Full batches that fit into the window, however small that is set."""

SMALL_SHARE = 4
"""A batch must have capacity for at least this many messages of a size; larger ones are sent
separately."""

PACKET_OVERHEAD = 64
"""Bytes of a batch's PUBLISH beside topic and payload, and what zlib adds to incompressible
data."""

MESSAGES_AT_ONCE = 64
"""Messages sent before other tasks of the event loop run."""

SHORTEST_WAIT = 0.005
"""Minimum seconds to sleep for the pacing, so that a wake-up sends several messages."""


class Sender:
    """Made for each connection: the rows in the outbox at that moment are its backlog.

    Unacknowledged packets of an earlier connection of the same session are sent first, in order
    [MQTT-4.6.0-1]. Then follow control messages, messages that were refused temporarily and are
    due, live rows, and the backlog as its pacing allows. With batches, rows wait until a batch is
    full or due. Without them live rows are queued in the turn in which they are added
    (`LiveSender`), and flushed at its end. `idle` means that nothing else waits for the window, and
    `careful` that everything is left to `send_what_fits`, during a search for a message that ends
    connections (`Suspects`). `wake` wakes the task that calls it.
    """

    __slots__ = (
        "_all_in_batches",
        "_at_turn_end",
        "_batch",
        "_batch_limits",
        "_client",
        "_clock",
        "_context",
        "_inflight",
        "_lanes",
        "_may_follow",
        "_metering",
        "_next",
        "_outbox",
        "_pacing",
        "_picking",
        "_publisher",
        "_receive_maximum",
        "_repeated",
        "_session",
        "_suspects",
        "_uplink",
        "_wake",
        "_window",
        "careful",
        "idle",
        "is_free",
    )

    active = True
    """The fleet waits for live messages as clients do for answers: `AtTurnEnd`."""

    def __init__(
        self,
        context: UplinkContext,
        pacing: Pacing,
        publisher: Publisher,
        client: FleetClient,
        limits: ServerLimits,
        inflight: Inflight,
        session: RemoteSession,
        wake: Callable[[], None],
    ) -> None:
        self._session = session
        self._suspects = session.suspects
        # These are sent again separately; the backlog must not send them twice.
        self._repeated = session.rows | set(session.refusals.by_id)
        self.careful = session.suspects.blocks
        self._clock = context.clock
        self._context = context
        self._metering = context.metering
        self._outbox = context.outbox
        self._uplink = context.uplink
        self._pacing = pacing
        self._client = client
        self._publisher = publisher
        self._at_turn_end = context.at_turn_end
        self._wake = wake
        self._inflight = inflight
        self._receive_maximum = limits.receive_maximum
        # MQTT 3.1.1 has no user properties: only a batch's line can hold a row's number.
        self._all_in_batches = not limits.mqtt_5
        self._lanes = Lanes(context.outbox, context.uplink)
        self._next: Picked | None = None
        self._picking = False
        self.idle = False
        self.is_free = False
        self._may_follow = False  # a row that was just accepted: it may be sent
        self._batch_limits = batch_limits(context, limits)
        self._batch = None if self._batch_limits is None else Batch(self._batch_limits)
        self._window = context.settings.window
        if self._batch_limits is not None:
            # The window counts messages, and must not be full before a batch is.
            self._window = max(self._window, BATCHES_IN_FLIGHT * self._batch_limits.messages)

    async def send_what_fits(self) -> bool:
        """Send until the window is full, nothing is left, or the fleet's broker pauses it.

        Return True if it ended before that, after MESSAGES_AT_ONCE.
        """
        self.idle = False
        if not self._may_send():
            return False
        inflight, window, receive_maximum = self._inflight, self._window, self._receive_maximum
        now, wall = self._clock.monotonic(), self._clock.wall_ms()
        inflight.resend_own(now)
        if inflight.watched:
            receive_maximum = self._allowed_by_suspects(now, wall)
        for _ in range(MESSAGES_AT_ONCE):
            if not inflight.has_capacity(window, receive_maximum):
                return False
            if not await self._send_one(now, wall):
                break
        else:
            return True
        if self._batch is not None and self._batch.wait(now) == 0:
            self._send_batch(self._batch)
        elif inflight.watched and not self.careful and not self._may_send_backlog():
            self.careful = self._try_suspect(now, wall, idle=True)
        self.idle = self._batch is None and not self.careful and not self._may_send_backlog()
        return False

    def _allowed_by_suspects(self, now: float, wall: int) -> int:
        """Return how many packets may be in flight; send a suspect if it is due."""
        suspects = self._suspects
        if suspects.searching and not self._session.unanswered and not len(self._inflight):
            suspects.end_search()
        self._inflight.watched = suspects.active
        self.careful = True
        if self._try_suspect(now, wall, idle=False):
            return 0
        self.careful = suspects.searching
        return (
            min(suspects.window, self._receive_maximum) if self.careful else self._receive_maximum
        )

    def _try_suspect(self, now: float, wall: int, *, idle: bool) -> bool:
        """Send a suspect that is due once nothing else is in flight; return whether others wait."""
        suspects = self._suspects
        if suspects.trial is not None:
            return True
        suspect = suspects.next_trial(now, idle=idle)
        if suspect is None or len(self._inflight):
            return suspect is not None
        rows = suspect.sent.rows
        if rows and not self._outbox.claim(rows[0], wall, self._uplink):
            suspects.clear(suspect)
            return False
        suspects.try_(suspect)
        # The identifier stays: the fleet may have the message already [MQTT-4.4.0-1].
        suspect.mid = self._publisher.again(suspect.mid, suspect.sent)
        return suspects.trial is not None

    async def _send_one(self, now: float, wall: int) -> bool:
        """Send the next message, or add it to the batch; return False if there is none."""
        if self._session.unanswered:
            self._publisher.again(*self._session.unanswered.popleft())
        elif self._batch is not None and self._batch.full:
            self._send_batch(self._batch)
        elif (own := self._context.control_messages.next()) is not None:
            self._publisher.own(own)
        elif (picked := self._next or self._in_memory(now) or await self._read(now)) is not None:
            self._next = None
            if self._outbox.claim(picked.row, wall, self._uplink):
                self._send(picked, now, wall)
            else:
                # The row has expired or was removed meanwhile, so there is nothing to retry.
                self._inflight.refusals.discard(picked.row.id)
        else:
            return False
        return True

    def accepts(self, row: OutboxRow) -> bool:
        """Return whether a live row can be sent as it is added (`LiveSender`)."""
        if self._batch is not None or not self._lanes.accepts(row):
            return False
        self._may_follow = self._may_send_live()
        self.is_free = self._may_follow and not self._may_send_backlog()
        return True

    def send(self, row: OutboxRow) -> None:
        """Send a live row that was just accepted, after those that wait for the window."""
        self._lanes.push(row)
        if self._may_follow:
            self._send_from_memory()
        self._at_turn_end(self)

    def flush(self, committed: int, now: object) -> int:
        """Send what was queued in a turn, at its end; nothing of it waits for a batch."""
        del committed, now
        self._client.flush()
        # messages of QoS 0, which end when they are written, and suspects are for the task
        if self._inflight.unanswered or self.careful:
            self._wake()
        return 0

    def answered(self) -> None:
        """Remove acknowledged rows and fill the window, in the turn of the PUBACKs.

        Other work is for the task, which is woken only if there is some.
        """
        self._inflight.settle()
        self.send_fresh()
        self._client.flush()
        if self._inflight.unanswered or not self.idle:
            self._wake()

    def send_fresh(self) -> None:
        """Send live rows from memory while the window has capacity."""
        if self._lanes.fresh and self._may_send_live():
            self._send_from_memory()

    def _send_from_memory(self) -> None:
        lanes, inflight = self._lanes, self._inflight
        while lanes.fresh and inflight.has_capacity(self._window, self._receive_maximum):
            row = lanes.next_fresh()
            if row is None:
                return
            # only a row that expires needs the time
            wall = 0 if row.message_expiry is None else self._clock.wall_ms()
            if self._outbox.claim(row, wall, self._uplink):
                self._publisher.row(row, wall)

    def _may_send_live(self) -> bool:
        """Return whether live rows may be sent now, and nothing precedes them."""
        inflight = self._inflight
        if self._picking or self.careful or inflight.apart or self._session.unanswered:
            return False
        refusals = inflight.refusals
        if refusals.by_id and refusals.full:
            return False
        return self._may_send()

    async def _read(self, now: float) -> Picked | None:
        """Read the next row; meanwhile nothing else takes its place in the window."""
        self._picking = True
        try:
            return await self._on_disk(now)
        finally:
            self._picking = False

    def wait(self) -> float | None:
        """Return the seconds until more may be sent without being woken, None for never."""
        inflight = self._inflight
        if not (self._may_send() and inflight.has_capacity(self._window, self._receive_maximum)):
            return None
        now = self._clock.monotonic()
        # The earliest of a batch that is due, a paced row, and a temporarily refused row.
        due = None if self._batch is None else self._batch.wait(now)
        paced = self._pacing.wait(now) if self._may_send_backlog() else None
        again = self._inflight.refusals.next_due
        waits = [wait for wait in (due, paced, again and again - now) if wait is not None]
        return max(SHORTEST_WAIT, min(waits)) if waits else None

    def _may_send(self) -> bool:
        inflight, metering = self._inflight, self._metering
        if inflight.held_until and inflight.held:
            return False
        return metering.budget is None or not metering.spent

    def _may_send_backlog(self) -> bool:
        metering = self._metering
        return self._lanes.backlog_waits and (metering.budget is None or not metering.backlog_spent)

    def _in_memory(self, now: float) -> Picked | None:
        """Return the next row if it is in memory, None if it must be read or there is none."""
        row = self._inflight.again()
        if row is not None:
            return Picked(row, resent=True)
        refusals = self._inflight.refusals
        if refusals.by_id and (refusals.is_due(now) or refusals.full):
            return None
        lanes = self._lanes
        row = lanes.next_live()
        if row is not None:
            return Picked(row)
        if lanes.live_waits or not self._backlog_is_due(now):
            return None
        row = lanes.next_waited()
        while row is not None and self._was_repeated(row):
            row = lanes.next_waited()
        return self._paced(row)

    async def _on_disk(self, now: float) -> Picked | None:
        """Return the next row while none is in memory, None if there is none."""
        refusals = self._inflight.refusals
        while refusals.is_due(now):
            row = await self._refused(refusals.next(), now)
            if row is not None:
                return Picked(row, resent=True)
        if refusals.full:
            return None
        lanes = self._lanes
        row = await lanes.live() if lanes.live_waits else None
        if row is not None:
            return Picked(row)
        if not self._backlog_is_due(now):
            return None
        row = await lanes.backlog()
        while row is not None and self._was_repeated(row):
            row = await lanes.backlog()
        return self._paced(row)

    async def _refused(self, identifier: int, now: float) -> OutboxRow | None:
        """Return the temporarily refused row with this id, None if it is not there (yet)."""
        rows = await self._outbox.fetch(identifier - 1, 1, identifier, uplink=self._uplink)
        if rows:
            return rows[0]
        refusals = self._inflight.refusals
        if identifier > self._outbox.writes.committed_id:
            refusals.postpone(identifier, now + RETRY_FIRST)
        else:
            refusals.discard(identifier)
        return None

    def _paced(self, row: OutboxRow | None) -> Picked | None:
        if row is None:
            return None
        return Picked(row, resent=self._lanes.waited(row), paced=True)

    def _backlog_is_due(self, now: float) -> bool:
        return self._may_send_backlog() and self._pacing.ready(now)

    def _was_repeated(self, row: OutboxRow) -> bool:
        """Return whether the row was resent on this connection, and so is not sent again."""
        if row.id not in self._repeated:
            return False
        self._repeated.remove(row.id)
        return True

    def _send(self, picked: Picked, now: float, wall: int) -> None:
        """Send a row or add it to the batch; a batch is sent before a row that cannot join it."""
        batch = self._batch
        if batch is None:
            self._publisher.row(picked.row, wall, picked.resent, picked.paced)
            return
        line = self._line(picked, wall)
        if line is not None and batch.fits(len(line)):
            batch.add(picked.row, line, now, paced=picked.paced)
            if picked.paced:
                self._pacing.sent(1, 0)
        elif batch.rows:
            self._next = picked
            self._send_batch(batch)
        else:
            self._publisher.row(picked.row, wall, picked.resent, picked.paced)

    def _send_batch(self, batch: Batch) -> None:
        self._publisher.batch(batch)
        self._batch = Batch(batch.limits)

    def _line(self, picked: Picked, wall: int) -> bytes | None:
        """Return the row as a line of a batch, None if it must be sent separately."""
        limits = self._batch_limits
        if limits is None or self._inflight.is_separate(picked.row):
            return None
        if self._context.settings.targets and not self._all_in_batches:
            return None  # a batch has one topic for all
        small = picked.row.size <= limits.bytes // SMALL_SHARE
        if not small and not self._all_in_batches:
            return None
        identity = self._context.settings.identity
        return batch_line(picked.row, identity=identity, resent=picked.resent, now=wall)


def batch_limits(context: UplinkContext, server: ServerLimits) -> BatchLimits | None:
    """Return the limits of the settings, within what the server accepts in one packet."""
    settings, maximum = context.settings, server.maximum_packet_size
    if settings.batch is None:
        return None
    size = settings.batch_bytes
    if maximum is not None:
        topic = settings.topic(SUFFIX).encode()
        size = min(size, maximum - maximum // 1000 - len(topic) - PACKET_OVERHEAD)
    return BatchLimits(settings.batch_messages, size, settings.batch_delay)
