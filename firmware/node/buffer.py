"""What a node keeps: samples that wait for their first sending, and frames not acknowledged."""

WINDOW = 8
"""Frames from the lowest number without an acknowledgement on; the gateway remembers as many."""

WAITING_MAX = 64
"""Samples that wait for a place in the window; one more drops the oldest of them."""

RESEND_MS = 1000
"""Milliseconds without an acknowledgement until a frame is sent again."""


class Sample:
    """Readings taken together, encoded, with the node's clock and, where known, the wall time."""

    def __init__(self, clock: int, wall: "int | None", readings: "list[bytes]") -> None:
        self.clock = clock
        self.wall = wall
        self.readings = readings
        self.sequence = 0  # until it is sent for the first time
        self.sent = 0


class Buffer:
    """Decides which samples are sent when; `dropped` and `refused` count since the start."""

    def __init__(self, resend_ms: int = RESEND_MS) -> None:
        self.dropped = 0
        self.refused = 0
        self._resend_ms = resend_ms
        self._next_sequence = 1
        self._waiting: list[Sample] = []
        self._window: list[Sample] = []  # by rising sequence number

    def add(self, sample: Sample) -> None:
        """Keep a new sample; the oldest that was not yet sent makes room when there is none."""
        if len(self._waiting) == WAITING_MAX:
            self._waiting.pop(0)
            self.dropped += 1
        self._waiting.append(sample)

    def due(self, now: int) -> "list[Sample]":
        """Return what is to be sent at `now` (node clock, ms), numbered and marked as sent."""
        samples = [sample for sample in self._window if now - sample.sent >= self._resend_ms]
        while self._waiting and self._has_room():
            sample = self._waiting.pop(0)
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

    def next_due(self) -> "int | None":
        """Return the node clock at which a frame is to be sent again, None when none waits."""
        if not self._window:
            return None
        return min([sample.sent for sample in self._window]) + self._resend_ms

    def _has_room(self) -> bool:
        return not self._window or self._next_sequence - self._window[0].sequence < WINDOW
