"""The node's work, one step at a time: sample, frame, send, and hear what was acknowledged."""

from . import const
from .buffer import RESEND_MS, WAITING_BYTES, Buffer, Sample
from .commands import NOT_ALLOWED, Commands
from .frames import (
    REFUSED,
    FrameReader,
    decode_acknowledgement,
    encode_reading,
    encode_readings,
    room,
)
from .light import FAILING, HEARD, SAFE, UNHEARD
from .programs import Programs

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from .spill import Spill
    from .starts import Starts

    Value = bool | int | float | str | tuple[int, int]

    class Port(Protocol):
        """A serial line that never waits."""

        def read(self) -> bytes | None:
            """Return what has arrived; None or no bytes when nothing has."""

        def write(self, data: bytes) -> object:
            """Send; what the line cannot take is lost, as on a wire that nobody hears."""

    class Sensor(Protocol):
        """Something that can be read; raises OSError when it does not answer."""

        def read(self) -> Sequence[tuple[str, Value, str | None]]:
            """Return (quantity, value, unit) of everything it measures."""

    class Board(Protocol):
        """What a board can do besides measuring."""

        def identify(self, seconds: int) -> None:
            """Show for a while which board this is, without waiting."""

        def restart(self) -> None:
            """Start anew; it does not return."""

    class Clock(Protocol):
        """The node's clock."""

        def ms(self) -> int:
            """Return milliseconds since the start."""


_INTERVAL_MIN_MS = const(100)
_INTERVAL_MAX_MS = const(86400000)
"""Between two samples, where the gateway sets it."""

_IDENTIFY_MAX = const(60)
"""Seconds for which a board shows that it is meant."""

_RESTART_MS = const(500)
"""Milliseconds in which the answer leaves before a restart."""

_HEARTBEAT_MS = const(30000)
"""Between two heartbeats of a node that filters, is in safe mode, or whose sensors fail: a quiet
node differs from a dead one."""

_LATE_MS = const(50)
"""Milliseconds after it was due at which a sample still has the time at which it was due."""

_UNHEARD_MS = const(5000)
"""Milliseconds after which a sample that nobody has acknowledged says that nobody hears."""

_YEAR_2000 = const(946684800000)
"""Milliseconds since 1970: what a wall clock cannot be before."""


def _no_wall_clock() -> None:
    return None


class Node:
    """Samples `sensor` every `interval_ms` and sends until the gateway has acknowledged.

    `boot` is random for each start, `wall` gives milliseconds since 1970, or None while unknown;
    once the gateway has set the clock, that holds. `waiting_bytes` of memory are for samples that
    cannot be sent yet, and the `spill` for those beyond. Without a `board` the commands that are
    for it are refused; without `programs`, filters that the gateway installs are gone at the next
    start. Heartbeats report `starts`. ValueError for a name that is empty or above 64 bytes, and
    for fewer bytes than one sample may need.
    """

    def __init__(
        self,
        name: str,
        boot: int,
        port: "Port",
        sensor: "Sensor",
        clock: "Clock",
        interval_ms: int = 1000,
        wall: "Callable[[], int | None]" = _no_wall_clock,
        resend_ms: int = RESEND_MS,
        waiting_bytes: int = WAITING_BYTES,
        board: "Board | None" = None,
        programs: "Programs | None" = None,
        starts: "Starts | None" = None,
        spill: "Spill | None" = None,
    ) -> None:
        self.buffer = Buffer(resend_ms, waiting_bytes, spill, boot)
        self.sensor_failures = 0
        self._name = name
        self._room = room(name)
        self._boot = boot
        self._spill = spill
        self._port = port
        self._sensor = sensor
        self._clock = clock
        self._interval_ms = interval_ms
        self._wall = wall
        self._next_sample = clock.ms()
        self._board = board
        self._ahead: int | None = None  # of the node's clock the wall clock is, as the gateway says
        self._restart_at: int | None = None
        self._frames = FrameReader()
        self._commands = Commands(boot, self)
        self.programs = programs or Programs()
        self._next_heartbeat = self._next_sample
        self._starts = starts
        self._tells_failed = starts is not None and starts.failed > 0
        self._sensor_failed = False

    def step(self) -> int:
        """Do what is due, without waiting; return the milliseconds until something else is."""
        for body in self._frames.feed(self._port.read() or b""):
            self._hear(body)
        now = self._clock.ms()
        if self._board is not None and self._restart_at is not None and now >= self._restart_at:
            self._restart_at = None
            if self._starts is not None:
                self._starts.succeed()
            self._board.restart()
        self.measure()
        if self._has_heartbeat and now >= self._next_heartbeat:
            self._next_heartbeat = now + _HEARTBEAT_MS
            self._keep(now, self._heartbeat())
        for sample in self.buffer.due(now):
            self._send(sample, now)
        next_send = self.buffer.next_due()
        due = [self._next_sample]
        if next_send is not None:
            due.append(next_send)
        if self._restart_at is not None:
            due.append(self._restart_at)
        if self._has_heartbeat:
            due.append(self._next_heartbeat)
        return max(min(due) - self._clock.ms(), 0)

    def measure(self) -> None:
        """Sample if that is due, and send nothing: for whoever has to wait for something else."""
        now = self._clock.ms()
        due = self._next_sample
        if now < due:
            return
        self._next_sample = max(due + self._interval_ms, now + 1)
        # Where it hardly matters, the time at which it was due: regular times take less memory.
        self._sample(due if now - due <= _LATE_MS else now)

    def read_now(self) -> None:
        """Sample at the next step."""
        self._next_sample = self._clock.ms()

    def set_interval(self, milliseconds: int) -> None:
        """Sample every so many milliseconds, from now on; ValueError beyond the limits."""
        if not _INTERVAL_MIN_MS <= milliseconds <= _INTERVAL_MAX_MS:
            raise ValueError("interval")
        self._interval_ms = milliseconds
        self._next_sample = self._clock.ms()

    def set_clock(self, milliseconds: int) -> None:
        """Take the wall clock's milliseconds since 1970; ValueError for what no clock says."""
        if not _YEAR_2000 <= milliseconds < 1 << 53:
            raise ValueError("clock")
        self._ahead = milliseconds - self._clock.ms()

    def identify(self, seconds: int) -> None:
        """Have the board show itself; ValueError beyond the limit, or without a board."""
        if self._board is None or not 1 <= seconds <= _IDENTIFY_MAX:
            raise ValueError("identify")
        self._board.identify(seconds)

    def restart(self) -> None:
        """Have the board start anew, after the answer has left; ValueError without a board."""
        if self._board is None:
            raise ValueError("restart")
        self._restart_at = self._clock.ms() + _RESTART_MS

    def install(self, argument: bytes) -> int:
        """Install a filter program; return the status of the answer."""
        if self._safe:  # whose file was not read, and would be replaced
            return NOT_ALLOWED
        return self.programs.install(argument)

    def save(self, folder: str, feed: "Callable[[], None]") -> None:
        """Write what nobody has acknowledged to files of `folder`, before the program ends.

        `feed` is called again and again.
        """
        from .saving import save

        save(self.buffer, self._spill, folder, self._boot, feed)

    @property
    def state(self) -> int:
        """What an LED shows, of node/light.py."""
        if self._safe:
            return SAFE
        if self._sensor_failed:
            return FAILING
        oldest = self.buffer.oldest
        unheard = oldest is not None and self._clock.ms() - oldest >= _UNHEARD_MS
        return UNHEARD if unheard else HEARD

    @property
    def _safe(self) -> bool:
        return self._starts is not None and self._starts.safe

    @property
    def _has_heartbeat(self) -> bool:
        return bool(
            self.programs.version or self.sensor_failures or self._tells_failed or self._safe
        )

    def _heartbeat(self) -> "list[tuple[str, Value, str | None]]":
        programs = self.programs
        beat: list[tuple[str, Value, str | None]] = []
        if programs.version:
            beat += [("suppressed", programs.suppressed, None), ("filter", programs.version, None)]
        if self.sensor_failures:
            beat.append(("sensor_failures", self.sensor_failures, None))
        if self._starts is not None and self._starts.failed:
            beat += [("failed_starts", self._starts.failed, None), ("safe_mode", self._safe, None)]
        self._tells_failed = False
        return beat

    def _hear(self, body: bytes) -> None:
        acknowledgement = decode_acknowledgement(body)
        if acknowledgement is None:
            answer = self._commands.receive(body)
            if answer is not None:
                self._port.write(answer)
            return
        boot, sequence, status = acknowledgement
        earlier = None if boot == self._boot else boot
        self.buffer.acknowledge(sequence, status == REFUSED, earlier)

    def _wall_time(self, now: int) -> "int | None":
        return self._wall() if self._ahead is None else now + self._ahead

    def _sample(self, now: int) -> None:
        try:
            readings = self._sensor.read()
        except OSError:  # it did not answer; it is asked again at the next sample
            self.sensor_failures += 1
            self._sensor_failed = True
            return
        self._sensor_failed = False
        passes = self.programs.passes
        self._keep(now, [each for each in readings if passes(each[0], each[1], each[2], now)])

    def _keep(self, now: int, readings: "Sequence[tuple[str, Value, str | None]]") -> None:
        encoded = [encode_reading(quantity, value, unit) for quantity, value, unit in readings]
        wall = self._wall_time(now)
        for group in _groups(encoded, self._room):
            self.buffer.add(Sample(now, wall, group))

    def _send(self, sample: Sample, now: int) -> None:
        self._port.write(
            encode_readings(
                self._name,
                self._boot if sample.boot is None else sample.boot,
                sample.sequence,
                sample.clock,
                max(now - sample.taken, 0),  # one that was taken while this step waited is newer
                self.buffer.dropped,
                sample.wall,
                sample.readings,
                sample.boot is not None,
            )
        )


def _groups(encoded: "list[bytes]", most: int) -> "list[list[bytes]]":
    """Return the readings in their order, in groups that fit a frame each."""
    groups: list[list[bytes]] = []
    size = most + 1
    for reading in encoded:
        size += len(reading)
        if size > most:
            groups.append([])
            size = len(reading)
        groups[-1].append(reading)
    return groups
