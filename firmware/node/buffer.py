"""What a node keeps: samples that wait for their first sending, and frames not acknowledged."""

import struct

from . import const
from .ring import Ring

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .spill import Spill

WINDOW = const(8)
"""Frames from the lowest number without an acknowledgement on; the gateway remembers as many."""

WAITING_BYTES = const(15872)
"""Memory for the samples that wait for a place in the window: of three quantities, an hour's at one
a second. A sample for which there is no room drops the oldest of them."""

RESEND_MS = const(1000)
"""Milliseconds without an acknowledgement until a frame is sent again."""

_HEAD = "<QBq"
_HEAD_BYTES = const(17)


class Sample:
    """Readings taken together, encoded, with the node's clock and, where known, the wall time.

    `boot` is that of an earlier start, None of the present one; `taken` is by the present clock.
    """

    def __init__(self, clock: int, wall: "int | None", readings: "list[bytes]") -> None:
        self.clock = clock
        self.wall = wall
        self.readings = readings
        self.boot: int | None = None
        self.taken = clock
        self.spilled = False
        self.sequence = 0  # until it is sent or spilled for the first time
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


def waiting_bytes(spill: "Spill | None") -> int:
    """Return the memory for samples that wait; a spill takes its own out of it."""
    return WAITING_BYTES - (0 if spill is None else spill.memory)


class Buffer:
    """Decides which samples are sent when; `refused` counts since the start.

    What the memory has no room for goes to the `spill`, where there is one.
    """

    def __init__(
        self,
        resend_ms: int = RESEND_MS,
        waiting_bytes: int = WAITING_BYTES,
        spill: "Spill | None" = None,
        boot: int = 0,
    ) -> None:
        self._dropped = 0
        self._boot = boot
        self._spill = spill
        self.refused = 0
        self._resend_ms = resend_ms
        self._next_sequence = 1
        self._waiting = Ring(waiting_bytes)
        self._clock_in = 0  # of the newest sample that waits, or waited
        self._clock_out = 0  # of the one before the oldest that waits
        self._window: list[Sample] = []  # of one start, by rising sequence number
        self._next: Sample | None = None  # from the spill, and not yet within the window

    @property
    def dropped(self) -> int:
        """Samples that were given up since the start."""
        return self._dropped + (0 if self._spill is None else self._spill.dropped)

    def add(self, sample: Sample) -> None:
        """Keep a new sample; the oldest that was not yet sent makes room when there is none."""
        packed = sample.pack(self._clock_in)
        while not self._waiting.append(packed):
            oldest = self._pop()
            if self._spill is None or not self._spill.grows:
                self._dropped += 1
            else:
                self._spill.append(self._number(), oldest.clock, oldest.pack(0))
        self._clock_in = sample.clock

    def due(self, now: int) -> "list[Sample]":
        """Return what is to be sent at `now` (node clock, ms), numbered and marked as sent."""
        samples = [sample for sample in self._window if now - sample.sent >= self._resend_ms]
        while True:
            sample = self._next = self._next or self._take()
            if sample is None or not self._has_room(sample.boot, sample.sequence):
                break
            self._next = None
            self._window.append(sample)
            samples.append(sample)
        for sample in samples:
            sample.sent = now
        return samples

    def acknowledge(self, sequence: int, refused: bool, boot: "int | None" = None) -> None:
        """Forget the frame with this number; one that is not waited for means nothing.

        `boot` is that of an earlier start, None of the present one.
        """
        for sample in self._window:
            if sample.sequence == sequence and sample.boot == boot:
                self._window.remove(sample)
                self.refused += refused
                if sample.spilled and self._spill is not None:
                    self._spill.settle()
                return

    @property
    def oldest(self) -> "int | None":
        """The node clock at which the oldest sample not acknowledged was taken, None for none."""
        return self._window[0].taken if self._window else None

    def next_due(self) -> "int | None":
        """Return the node clock at which a frame is to be sent again, None when none waits."""
        if not self._window:
            return None
        return min([sample.sent for sample in self._window]) + self._resend_ms

    def _take(self) -> "Sample | None":
        """Return the oldest sample that waits and may be sent, None where none may.

        What was spilled is older than all in memory; it may be ahead of the window.
        """
        while self._spill is not None and not self._spill.empty:
            spilled = self._spill.pop()
            if spilled is not None:
                return self._from_spill(*spilled)
            if self._window:  # what is behind has to wait for it
                return None
        if not len(self._waiting) or not self._has_room(None, self._next_sequence):
            return None
        return self.take_waiting()

    @property
    def has_waiting(self) -> bool:
        """Whether samples wait in memory that never had a number."""
        return len(self._waiting) > 0

    def take_waiting(self) -> Sample:
        """Return the oldest of them with its number, and forget it."""
        sample = self._pop()
        sample.sequence = self._number()
        return sample

    def unsettled(self) -> "Iterator[Sample]":
        """Give what has a number, is not acknowledged, and is in no file; its end forgets it."""
        spill = self._spill
        for sample in self._window + ([] if self._next is None else [self._next]):
            if not (sample.spilled and spill is not None and spill.reads_file):
                yield sample
        while spill is not None and spill.reads_memory:
            spilled = spill.pop()
            if spilled is not None:
                yield self._from_spill(*spilled)

    def _from_spill(self, boot: int, sequence: int, ended: int, packed: bytes) -> Sample:
        sample = _unpack(packed, 0)
        sample.sequence = sequence
        sample.spilled = True
        if boot != self._boot:  # taken before this start, however long the board had no power
            sample.boot = boot
            sample.taken = min(sample.clock - ended, 0)
        return sample

    def _number(self) -> int:
        self._next_sequence += 1
        return self._next_sequence - 1

    def _pop(self) -> Sample:
        sample = _unpack(self._waiting.pop(), self._clock_out)
        self._clock_out = sample.clock
        return sample

    def _has_room(self, boot: "int | None", sequence: int) -> bool:
        if not self._window:
            return True
        first = self._window[0]
        return boot == first.boot and sequence - first.sequence < WINDOW
