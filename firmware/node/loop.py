"""The node's work, one step at a time: sample, frame, send, and hear what was acknowledged."""

from .buffer import RESEND_MS, WAITING_BYTES, Buffer, Sample
from .frames import (
    REFUSED,
    AcknowledgementReader,
    encode_reading,
    encode_readings,
    room,
)

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

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

    class Clock(Protocol):
        """The node's clock."""

        def ms(self) -> int:
            """Return milliseconds since the start."""


def _no_wall_clock() -> None:
    return None


class Node:
    """Samples `sensor` every `interval_ms` and sends until the gateway has acknowledged.

    `boot` is random for each start, `wall` gives milliseconds since 1970, or None while unknown.
    `waiting_bytes` of memory are for samples that cannot be sent yet. ValueError for a name that is
    empty or above 64 bytes, and for fewer bytes than one sample may need.
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
    ) -> None:
        self.buffer = Buffer(resend_ms, waiting_bytes)
        self.sensor_failures = 0
        self._name = name
        self._room = room(name)
        self._boot = boot
        self._port = port
        self._sensor = sensor
        self._clock = clock
        self._interval_ms = interval_ms
        self._wall = wall
        self._next_sample = clock.ms()
        self._acknowledgements = AcknowledgementReader()

    def step(self) -> int:
        """Do what is due, without waiting; return the milliseconds until something else is."""
        for boot, sequence, status in self._acknowledgements.feed(self._port.read() or b""):
            if boot == self._boot:
                self.buffer.acknowledge(sequence, status == REFUSED)
        now = self._clock.ms()
        if now >= self._next_sample:
            self._sample(now)
            self._next_sample = max(self._next_sample + self._interval_ms, now + 1)
        for sample in self.buffer.due(now):
            self._send(sample, now)
        next_send = self.buffer.next_due()
        next_step = self._next_sample if next_send is None else min(self._next_sample, next_send)
        return max(next_step - self._clock.ms(), 0)

    def _sample(self, now: int) -> None:
        try:
            readings = self._sensor.read()
        except OSError:  # it did not answer; it is asked again at the next sample
            self.sensor_failures += 1
            return
        encoded = [encode_reading(quantity, value, unit) for quantity, value, unit in readings]
        wall = self._wall()
        for group in _groups(encoded, self._room):
            self.buffer.add(Sample(now, wall, group))

    def _send(self, sample: Sample, now: int) -> None:
        self._port.write(
            encode_readings(
                self._name,
                self._boot,
                sample.sequence,
                sample.clock,
                now - sample.clock,
                self.buffer.dropped,
                sample.wall,
                sample.readings,
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
