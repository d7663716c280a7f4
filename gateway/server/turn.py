"""The turn: handle packets, hand rows to the writer, write output that may be sent.

During one turn of the loop packets are handled, rows are collected and answers are queued. At its
end the rows go to the writer as one batch, and nobody waits. An answer is held until the batch of
its rows is on disk; everything else is sent at once (ARCHITECTURE.md).
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

from gateway.broker.broker import Broker
from gateway.broker.client import Client
from gateway.broker.instant import Instant
from gateway.broker.publishing.expiry import STEP
from gateway.clock import Clock
from gateway.mqtt.packets import PacketType
from gateway.server.flush_wheel import FlushWheel
from gateway.server.gateway_loop import GatewayLoop
from gateway.server.socket_selector import SocketSelector
from gateway.session.traffic import TURN_BYTES
from gateway.storage.engine.writer import Writer

HALF = 30.0
"""Half a minute in seconds: the longest turn of the previous half still counts."""


class LongestTurn:
    """Records the longest turn of this half minute and of the one before."""

    __slots__ = ("_before", "_until", "_what", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0  # of this half; only a longer one is recorded
        self._what = ""
        self._before = 0.0, ""
        self._until = 0.0  # the monotonic second at which this half ends

    def note(self, seconds: float, client: Client | None, first_byte: int) -> None:
        """Note a turn by the client that it served last, if any, and its packet's type."""
        self.seconds = seconds
        self._what = "timers and the gateway's own" if client is None else _name(client, first_byte)

    def of_last_minute(self, now: float) -> tuple[float, str]:
        """Return the milliseconds of the longest turn, and what it served last."""
        if now >= self._until:
            halves = (now - self._until) // HALF
            self._before = (self.seconds, self._what) if halves < 1 else (0.0, "")
            self.seconds, self._what = 0.0, ""
            self._until = now + HALF
        seconds, what = max(self._before, (self.seconds, self._what))
        return round(seconds * 1000, 1), what


def _name(client: Client, first_byte: int) -> str:
    """Return the client and the packet that a turn served."""
    session = client.session
    who = client.peer if session is None else f"client {session.client_id[:80]!r}"
    kind = first_byte >> 4
    return f"{who}, {PacketType(kind).name}" if kind else who


POSTPONED = 0.0025
"""Seconds of one round of the loop for postponed packets, of all clients together."""

WRITING = 0.0025
"""Seconds of one round of the loop for writing to connections; the rest is written in the next."""

# Compiled, these are C names.
_STEP = STEP
_TURN_BYTES = TURN_BYTES
_WRITING = WRITING

LONGEST_NAP = 3600.0
"""Seconds between two checks of the deadlines when nothing is due before."""


class Flushable(Protocol):
    """A network connection with output; only the end of a turn makes it write."""

    active: bool
    """Whether it has received packets since its last write: its peer may wait for answers."""

    def flush(self, committed: int, now: Instant) -> int:
        """Write what may be sent; return the batch that the rest waits for, 0 if none."""
        ...


class Turn:
    """Collects the changes of one turn of the loop and completes them at its end."""

    __slots__ = (
        "_armed_for",
        "_clock",
        "_due",
        "_expiry",
        "_goes_on",
        "_held",
        "_instant",
        "_lines",
        "_promises",
        "_round",
        "_timer",
        "_waiting",
        "_wake_up",
        "_waking",
        "_write_until",
        "_writer",
        "active",
        "broker",
        "client",
        "flushes",
        "late",
        "longest",
        "loop",
        "monotonic",
        "overrun",
        "scheduled",
        "sockets",
        "wall_ms",
        "wall_ns",
    )

    def __init__(self, broker: Broker, writer: Writer, clock: Clock) -> None:
        self.broker = broker
        self._expiry = broker.expiry
        self._lines = broker.connection_lines.waiting
        self._writer = writer
        self._wake_up = writer.wake_up
        self._waking: asyncio.TimerHandle | None = None  # if no selector checks it
        self._due = writer.due
        self._clock = clock
        self.monotonic = clock.monotonic
        self.wall_ms = clock.wall_ms
        self.wall_ns = clock.wall_ns
        self.loop = asyncio.get_running_loop()
        self._instant: Instant | None = None
        self.overrun = False  # the clients of this round have used up its time
        self._waiting: deque[Callable[[], None]] = deque()  # continuations of postponed clients
        self.client: Client | None = None  # whose packets were handled last in this turn
        self.longest = LongestTurn()
        self.flushes = FlushWheel(broker.deadlines, broker.settings.delivery.flush_sessions)
        self.scheduled = False
        self._goes_on = False  # the loop is scheduled to write to the rest
        # touched and unwritten: clients that sent something
        self.active: dict[Flushable, None] = {}
        self.late: dict[Flushable, None] = {}  # and all others
        self._round = -1  # the poll after which connections were last written to
        # the monotonic second at which that round's writing must stop, 0.0 before its second write
        self._write_until = 0.0
        self._held: dict[Flushable, int] = {}  # the batch that each waits for
        self._promises: deque[tuple[int, Callable[[], None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = math.inf
        self.sockets: SocketSelector | None = None
        if isinstance(self.loop, GatewayLoop):
            self.sockets = self.loop.sockets
            self.sockets.end_of_turn = self.end
            self.sockets.wake_up = self._wake_up
            self.sockets.later = self.later
        writer.on_committed.append(self._committed)
        self._arm()

    @property
    def instant(self) -> Instant:
        """The moment of this turn: the clock is read once for all its packets."""
        return self.now()

    def now(self) -> Instant:
        """Return `instant`, as a method for frequent calls."""
        instant = self._instant
        if instant is None:
            sockets, monotonic, wall_ns = self.sockets, self.monotonic, self.wall_ns
            now, nanoseconds = monotonic(), wall_ns()
            wall = nanoseconds // 1_000_000
            # without `__init__`, a function of Python where nothing is compiled
            self._instant = instant = Instant.__new__(Instant)
            instant.monotonic, instant.wall = now, wall
            ahead = self._expiry.clock_ahead
            if abs(wall - 1000.0 * now - ahead) >= _STEP:
                # before anything gets a time after the step
                self._expiry.check_clock(instant)
            if sockets is not None and sockets.serving:
                self.scheduled = sockets.begun = True  # the selector ends the turn
            elif not self.scheduled:
                self.schedule()
        return instant

    def touch(self, connection: Flushable) -> None:
        """Let the connection write at the end of this turn."""
        (self.active if connection.active else self.late)[connection] = None
        if not self.scheduled:
            self.schedule()

    def write_early(self, connection: Flushable) -> None:
        """Let the connection write at once what may be sent, and the rest as usual."""
        # its output is written here: the end of the turn would find nothing
        self.active.pop(connection, None)
        self.late.pop(connection, None)
        batch = connection.flush(self._writer.committed, self.now())
        if batch:
            self._held[connection] = batch  # an answer in it waits for that batch's commit

    def later(self, go_on: Callable[[], None]) -> None:
        """Continue with a client's packets after all others were served."""
        # first, so that others that could wait are postponed, too
        self.overrun = True
        self._waiting.append(go_on)
        if len(self._waiting) == 1:  # in the next round: this one has used up its time
            self.loop.call_soon(self.loop.call_soon, self._serve_waiting)

    @property
    def busy(self) -> bool:
        """True while what is not urgent must be postponed: other clients were not served yet."""
        return self.overrun or (self.sockets is not None and self.sockets.full)

    def _serve_waiting(self) -> None:
        """Continue postponed clients in order for POSTPONED seconds, the rest in the next round.

        If more sockets are ready than a poll returns, all are read first: most cost microseconds,
        and each may be of a client that waits for an answer.
        """
        # not yet: see the docstring
        if self.sockets is not None and self.sockets.full:
            self.loop.call_soon(self._serve_waiting)
            return
        self.overrun = False
        until = self.monotonic() + POSTPONED
        # each once: a client that postpones itself again waits for the others
        for _ in range(len(self._waiting)):
            # removed after the call: a `later` in it must not schedule a second round
            self._waiting[0]()  # which may postpone it again
            self._waiting.popleft()
            if self.monotonic() >= until:
                break
        if self._waiting:
            self.loop.call_soon(self._serve_waiting)

    def when_on_disk(self, callback: Callable[[], None]) -> None:
        """Call back once everything that was collected up to now is on disk."""
        self._promises.append((self._writer.commit_number(), callback))
        if not self.scheduled:
            self.schedule()

    def end(self) -> None:
        """Write what may be sent and hand over the rows."""
        self.scheduled = True  # what writing touches is written here, not in the next turn
        instant, broker = self._instant, self.broker
        if self._lines:
            broker.connection_lines.write()
        if self.active or self.late:
            self._flush(instant or self.now())
            instant, traffic = self._instant, broker.traffic
            # as `begin_turn`, without a call for each: undelivered bytes fill no turn
            full_at = traffic.bytes_sent + _TURN_BYTES
            traffic.full_at = traffic.queue_at = full_at
            traffic.turns += 1
            if traffic.bytes_sent >= traffic.count_at:
                traffic.count_at = full_at
                broker.memory.count_again()
        if self._due.wanted:  # rows may also come from messages sent now that there is capacity
            self._writer.hand_over()
        if instant is not None:
            monotonic = self.monotonic
            elapsed = monotonic() - instant.monotonic
            if elapsed > self.longest.seconds:
                self._note_longest(elapsed)
        self._instant = self.client = None
        self.scheduled = False  # callbacks after a commit belong to the next turn
        if self._promises:
            self._run_committed()
        # A timer that is due too early costs one turn; a new one for each turn would cost more.
        if broker.deadlines.earliest < self._armed_for or self._timer is None:
            self._arm()
        if self.sockets is None and self._waking is None:
            self._await_wake_up()

    def _note_longest(self, elapsed: float) -> None:
        client = self.client
        first_byte = 0 if client is None else client.connection.framer.first_byte
        self.longest.note(elapsed, client, first_byte)

    def stop(self) -> None:
        """Cancel all timers."""
        for timer in (self._timer, self._waking):
            if timer is not None:
                timer.cancel()

    def schedule(self) -> None:
        """Make sure that the turn ends, by the selector or the loop."""
        self.scheduled = True
        if self.sockets is not None and self.sockets.serving:
            self.sockets.begun = True
        else:
            self.loop.call_soon(self.end)

    def _flush(self, now: Instant) -> None:
        """Write to all touched connections, for WRITING seconds.

        First to those that sent something.
        """
        committed, held, monotonic = self._writer.committed, self._held, self.monotonic
        polls = -1 if self.sockets is None else self.sockets.polls
        first = polls < 0 or polls != self._round  # a round may end several turns
        if first:
            self._round, self._write_until = polls, 0.0
        in_time = True
        # A write may free a window or a channel's consumer, whose messages touch others in turn.
        while in_time and (self.active or self.late):
            if self.active:
                waiting, self.active = self.active, {}
            else:
                waiting, self.late = self.late, {}
            for written, connection in enumerate(waiting):
                if first:  # of its round: it is written to in any case
                    first = False
                elif not self._has_time(monotonic()):
                    in_time = False
                    self._postpone(list(waiting)[written:])
                    break
                batch = connection.flush(committed, now)
                if batch:
                    held[connection] = batch
                # nothing waits any more, so the next commit need not touch it
                elif held:
                    held.pop(connection, None)
        # no PUBLISH is handled until this output is written, so memory is bounded
        self.broker.traffic.unfinished = not in_time

    def _has_time(self, second: float) -> bool:
        """Return whether this round may write to another connection."""
        if not self._write_until:
            self._write_until = second + _WRITING
        return second < self._write_until

    def _postpone(self, rest: list[Flushable]) -> None:
        """Write to these in the next round, before others that are touched meanwhile."""
        active = [each for each in rest if each.active]
        late = [each for each in rest if not each.active]
        self.active = dict.fromkeys([*active, *self.active])
        self.late = dict.fromkeys([*late, *self.late])
        if not self._goes_on:
            self._goes_on = True
            self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._goes_on = False
        self.end()

    def _committed(self, committed: int) -> None:
        for connection, batch in self._held.items():
            # the held part may be sent now; the next turn's end writes it
            if batch <= committed:
                (self.active if connection.active else self.late)[connection] = None
        if not self.scheduled:
            self.schedule()

    def _run_committed(self) -> None:
        """Run what waited for a commit, in order."""
        committed = self._writer.committed
        while self._promises and self._promises[0][0] <= committed:
            self._promises.popleft()[1]()

    def _arm(self) -> None:
        """Set a timer for when the broker has something to do."""
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = self.broker.deadlines.earliest
        nap = self._armed_for - self._clock.monotonic()
        self._timer = self.loop.call_later(min(max(nap, 0.0), LONGEST_NAP), self._tick)

    def _await_wake_up(self) -> None:
        """Call it when due: anything that sets it ends with a turn."""
        self._waking, wake_up = None, self._wake_up
        if wake_up.at <= self.loop.time():
            wake_up.ring()
        if wake_up.at < math.inf:
            self._waking = self.loop.call_at(wake_up.at, self._await_wake_up)

    def _tick(self) -> None:
        self._timer = None
        self.broker.tick(self.instant)
