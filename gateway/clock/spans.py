"""Spans of time in which the wall clock ran without a step, and later findings about them.

A board without a real-time clock starts with any time. Nothing that was recorded with such a clock
is changed later: a finding about a span becomes a record of its own
(docs/understand/fleet-interface.md).
"""

from dataclasses import dataclass, field, replace

from gateway.clock.clock import Clock

STEP_MS = 500
"""The least difference of wall and monotonic time that is a step: NTP slews what is less."""

DRIFT = 100e-6
"""The largest drift of an unsynchronized crystal: 100 ppm, 8.6 s a day."""

RELEASED_MS = 1_763_596_800_000
"""2025-11-20: an earlier wall clock is wrong, whatever the kernel reports."""

MAX_SPANS = 64
"""Uncorrected spans of one boot that are remembered; the oldest stay uncorrected."""

READ_TRIES = 8
"""Attempts to read two clocks within a millisecond: on a busy board other processes interfere."""

Numbers = dict[str, int]
"""The last number of each stream."""


@dataclass(slots=True)
class Span:
    """One span of an epoch; `ends` is None while it lasts. Times are ms by the clock of the span.

    `offset` is wall time less time since boot; `first` and `last` are the last numbers of each
    stream at its beginning and end.
    """

    boot: str
    epoch: str
    offset: int
    begins: int
    ends: int | None = None
    first: Numbers = field(default_factory=dict)
    last: Numbers | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of a span: its times are off by `offset`, give or take `uncertainty`.

    Both in ms; add `offset` to a time. `uncertainty` None means unknown.
    """

    span: Span
    offset: int
    uncertainty: int | None


def read_both(clock: Clock) -> tuple[int, int]:
    """Return wall time and time since boot (ms) of one moment, as precisely as READ_TRIES allow."""
    readings = []
    for _ in range(READ_TRIES):
        before, wall, after = clock.uptime_ms(), clock.wall_ms(), clock.uptime_ms()
        readings.append((after - before, wall, before))
        if after - before <= 1:
            break
    # the shortest reading is the most exact one
    _, wall, uptime = min(readings)
    return wall, uptime


class ClockSpans:
    """Watches one clock in one epoch: `sample` it every few seconds, and before each number.

    `earlier` are uncorrected spans of other epochs in the same boot: they share the time since
    boot, and so later findings. `synchronized` and `uncertainty` are the present ones, `steps`
    counts.
    """

    def __init__(self, clock: Clock, epoch: str, earlier: list[Span]) -> None:
        self.steps = 0
        self.last_offset = 0
        self.synchronized = False
        self.uncertainty: int | None = None
        self._clock = clock
        self._epoch = epoch
        self._boot = clock.boot_id()
        self.uncorrected = list(earlier)
        for span in self.uncorrected:
            if span.ends is None:  # its start ended before this one began
                span.ends = clock.uptime_ms() + span.offset
        self.span = self._begin({})
        self._ask(self.span.begins)

    def beginning(self) -> Finding:
        """Return what is known of the span that has just begun."""
        return Finding(replace(self.span), 0, self.uncertainty)

    def has_stepped(self, wall_ms: int, uptime_ms: int) -> bool:
        """Return whether the wall clock was set since the last sample."""
        return abs(wall_ms - uptime_ms - self.span.offset) > STEP_MS

    def sample(self, numbers: Numbers) -> list[Finding]:
        """Return new findings: of spans that ended, and last of the one that begins.

        `numbers` are the last that were given.
        """
        wall, uptime = read_both(self._clock)
        was_synchronized = self.synchronized
        self._ask(wall)
        stepped = self.has_stepped(wall, uptime)
        if not stepped and was_synchronized is self.synchronized:
            return []
        ended = self.span
        ended.ends = uptime + ended.offset
        ended.last = dict(numbers)
        if stepped:
            self.steps += 1
        self.span = self._begin(numbers)
        if stepped or self.synchronized:
            self.last_offset = self.span.offset - ended.offset
        findings = self._findings(ended, stepped=stepped, was_synchronized=was_synchronized)
        return [*findings, self.beginning()]

    def _findings(self, ended: Span, *, stepped: bool, was_synchronized: bool) -> list[Finding]:
        """Return what the end of a span shows of it, and of uncorrected earlier ones."""
        if was_synchronized and not stepped:
            return []  # it was right, and still is
        if not was_synchronized:
            self.uncorrected.append(ended)
            del self.uncorrected[:-MAX_SPANS]
        if not self.synchronized:
            return [self._finding(ended)]
        spans = [ended] if was_synchronized else self.uncorrected
        findings = [self._finding(span) for span in spans]
        self.uncorrected = []
        return findings

    def _finding(self, span: Span) -> Finding:
        offset = self.span.offset - span.offset
        if self.uncertainty is None:
            return Finding(span, offset, None)
        # The time since boot drifts with the crystal from the span's beginning until now.
        since = self.span.begins - self.span.offset - (span.begins - span.offset)
        return Finding(span, offset, self.uncertainty + round(DRIFT * max(0, since)))

    def _begin(self, numbers: Numbers) -> Span:
        wall, uptime = read_both(self._clock)
        return Span(self._boot, self._epoch, wall - uptime, wall, first=dict(numbers))

    def _ask(self, wall: int) -> None:
        state = self._clock.synchronization()
        self.synchronized = state.synchronized and wall >= RELEASED_MS
        self.uncertainty = state.error_ms if self.synchronized else None
