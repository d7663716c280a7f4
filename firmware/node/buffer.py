"""What a node keeps: samples that wait for their first sending, and frames not acknowledged."""

import struct

from .ring import Ring

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from .spill import Spill

WINDOW = 8
"""Frames from the lowest number without an acknowledgement on; the gateway remembers as many."""

WAITING_BYTES = 22784
"""Memory for the samples that wait for a place in the window: of three quantities, an hour's at one
a second. A sample for which there is no room drops the oldest of them."""

RESEND_MS = 1000
"""Milliseconds without an acknowledgement until a frame is sent again."""

_HEAD = "<QBq"
_HEAD_BYTES = 17


class Sample:
    """Readings taken together, encoded, with the node's clock and, where known, the wall time."""

    def __init__(self, clock: int, wall: "int | None", readings: "list[bytes]") -> None:
        self.clock = clock
        self.wall = wall
        self.readings = readings
        self.sequence = 0  # until it is sent for the first time
        self.sent = 0

    def pack(self, before: int) -> bytes:
        """Return clock, wall time and readings.

        The clock is the difference to `before`, that of the sample before it, and a wall time the
        difference to the clock: both hardly ever change.
        """
        ahead = (self.wall or self.clock) - self.clock
        head = struct.pack(_HEAD, self.clock - before, self.wall is not None, ahead)
        return head + b"".join([bytes([len(reading)]) + reading for reading in self.readings])


def _unpack(packed: bytes, before: int) -> Sample:
    since, has_wall, ahead = struct.unpack(_HEAD, packed[:_HEAD_BYTES])
    clock = before + since
    readings = []
    position = _HEAD_BYTES
    while position < len(packed):
        end = position + 1 + packed[position]
        readings.append(packed[position + 1 : end])
        position = end
    return Sample(clock, clock + ahead if has_wall else None, readings)


class Buffer:
    """Decides which samples are sent when; `refused` counts since the start.

    What the memory has no room for goes to the `spill`, where there is one.
    """

    def __init__(
        self,
        resend_ms: int = RESEND_MS,
        waiting_bytes: int = WAITING_BYTES,
        spill: "Spill | None" = None,
    ) -> None:
        self._dropped = 0
        self._spill = spill
        self.refused = 0
        self._resend_ms = resend_ms
        self._next_sequence = 1
        self._waiting = Ring(waiting_bytes)
        self._clock_in = 0  # of the newest sample that waits, or waited
        self._clock_out = 0  # of the one before the oldest that waits
        self._window: list[Sample] = []  # by rising sequence number

    @property
    def dropped(self) -> int:
        """Samples that were given up since the start."""
        return self._dropped + (0 if self._spill is None else self._spill.dropped)

    def add(self, sample: Sample) -> None:
        """Keep a new sample; the oldest that was not yet sent makes room when there is none."""
        packed = sample.pack(self._clock_in)
        while not self._waiting.append(packed):
            oldest = self._pop()
            if self._spill is None:
                self._dropped += 1
            else:
                self._spill.append(oldest.pack(0))
        self._clock_in = sample.clock

    def due(self, now: int) -> "list[Sample]":
        """Return what is to be sent at `now` (node clock, ms), numbered and marked as sent."""
        samples = [sample for sample in self._window if now - sample.sent >= self._resend_ms]
        while self._has_room():
            sample = self._take()
            if sample is None:
                break
            sample.sequence = self._next_sequence
            self._next_sequence += 1
            self._window.append(sample)
            samples.append(sample)
        for sample in samples:
            sample.sent = now
        return samples

    def acknowledge(self, sequence: int, refused: bool) -> None:
        """Forget the frame with this number; a number that is not waited for means nothing."""
        for sample in self._window:
            if sample.sequence == sequence:
                self._window.remove(sample)
                self.refused += refused
                return

    @property
    def oldest(self) -> "int | None":
        """The node clock at which the oldest sample not acknowledged was taken, None for none."""
        return self._window[0].clock if self._window else None

    def next_due(self) -> "int | None":
        """Return the node clock at which a frame is to be sent again, None when none waits."""
        if not self._window:
            return None
        return min([sample.sent for sample in self._window]) + self._resend_ms

    def _take(self) -> "Sample | None":
        """Return the oldest sample that waits; what was spilled is older than all in memory."""
        while self._spill is not None and len(self._spill):
            packed = self._spill.pop()
            if packed is not None:
                return _unpack(packed, 0)
        return self._pop() if len(self._waiting) else None

    def _pop(self) -> Sample:
        sample = _unpack(self._waiting.pop(), self._clock_out)
        self._clock_out = sample.clock
        return sample

    def _has_room(self) -> bool:
        return not self._window or self._next_sequence - self._window[0].sequence < WINDOW
