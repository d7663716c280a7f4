"""Figures, alarms and log lines about uplinks: a full outbox, an outage, a link that is down."""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack

from gateway.app.parts import Run
from gateway.app.uplink.headroom import (
    Capacity,
    Load,
    drains,
    spell_seconds,
    survives,
)
from gateway.counters import Counters
from gateway.settings.when_full import CONSEQUENCES, WhenFull
from gateway.storage.engine.damage import free_bytes
from gateway.storage.engine.database import Database
from gateway.storage.engine.free_space import RESERVE_BYTES
from gateway.storage.outbox.bounds import for_rows
from gateway.storage.outbox.outbox import (
    Outbox,
)
from gateway.telemetry.figure import Kind, begin_at_zero
from gateway.telemetry.uplink_metrics import UPLINK
from gateway.uplink.uplink import Uplink

logger = logging.getLogger(__name__)


INTERVAL = 10.0
"""Seconds between two measurements."""

WINDOW = 600.0
"""Seconds over which the rate of new messages is averaged, exponentially."""

FULL_SECONDS = 1.0
"""Seconds between two checks whether the outbox is full."""

QUIET_SECONDS = 10.0
"""Seconds without a refusal after which an outbox with capacity counts as not full."""

ALARM = "outbox_full"

LINK_SECONDS = 10.0
"""Seconds between two checks whether it is time for a reminder."""

REMINDER_SECONDS = 3600.0
"""Seconds between two reminders."""

WORTH_TELLING = 5.0
"""Seconds of an outage above which its end is logged."""

DOWN = "disconnected"
"""The state in which the link is down unintentionally."""

EXPECTED = ("waiting", "off")
"""States in which the link is down intentionally: there are no reminders."""


PART = "tidegate/uplink/"
"""Prefix of an uplink's lines; with several its name follows."""
CONNECTED = "connected"

GAUGES = {figure.name for figure in UPLINK if figure.kind is Kind.GAUGE}
"""The figures of an uplink's present state."""


class Outage:
    """Updates `tidegate/outbox/survives_seconds` and `drains_seconds`.

    The first is how long an outage that begins now could last at the present rate. The second is
    how long the messages of such an outage take to be sent at the best rate since the start; it is
    absent before anything was sent.
    """

    def __init__(self, run: Run, database: Database, outbox: Outbox) -> None:
        self._run = run
        self._database = database
        self._outbox = outbox
        self._accepted = self._acknowledged = 0
        self._rate = 0.0
        self._best = 0.0
        self._row_bytes = 0.0
        self._measured = self._started = run.clock.monotonic()
        self._warned = False

    def start(self) -> None:
        """Measure at each interval while the gateway runs."""
        self._run.every(INTERVAL, self.check)

    def check(self) -> None:
        """Update the figures and the alarm."""
        self._measure()
        if not self._row_bytes:
            return
        load, capacity = Load(self._rate, self._row_bytes), self._capacity()
        seconds = survives(load, capacity)
        counters = self._run.counters
        counters.set("tidegate/outbox/survives_seconds", int(seconds))
        if self._best:
            waiting = self._outbox.rows + self._rate * seconds
            drained = drains(waiting, self._best, self._rate)
            counters.set("tidegate/outbox/drains_seconds", int(drained))
        self._warn(seconds)

    def _measure(self) -> None:
        now, counters = self._run.clock.monotonic(), self._run.counters
        accepted = counters.count("tidegate/rules/accepted")
        acknowledged = counters.count("tidegate/uplink/acknowledged")
        elapsed = max(now - self._measured, 1e-3)
        weight = min(1.0, elapsed / min(WINDOW, max(now - self._started, elapsed)))
        self._rate += weight * ((accepted - self._accepted) / elapsed - self._rate)
        self._best = max(self._best, (acknowledged - self._acknowledged) / elapsed)
        self._accepted, self._acknowledged, self._measured = accepted, acknowledged, now
        if self._outbox.rows:
            self._row_bytes = self._outbox.bounds.bytes / self._outbox.rows

    def _capacity(self) -> Capacity:
        config = self._run.configuration.outbox
        disk = None
        if not self._database.in_memory:
            held = 0 if self._database.reserve.held_bytes else RESERVE_BYTES
            disk = max(0, free_bytes(self._run.data) - held)
        messages = None
        if config.maximum_messages is not None:
            messages = max(0, config.maximum_messages - self._outbox.rows)
        return Capacity(
            max(0, for_rows(config.maximum_bytes) - self._outbox.bounds.bytes), disk, messages
        )

    def _warn(self, seconds: float) -> None:
        """Raise the alarm `headroom` while an outage of the length in `survive` would be too long.

        Only with an empty outbox: during an outage the remaining time shrinks naturally.
        """
        target = self._run.configuration.outbox.survive
        short = target > seconds
        if short is self._warned or not target or (short and self._outbox.rows > self._rate * 60):
            return
        self._warned = short
        text = (
            f"at {self._rate:.1f} messages a second of {self._row_bytes:.0f} bytes the outbox"
            f" bears an outage of {spell_seconds(seconds)}; `survive` requires"
            f" {spell_seconds(target)}"
        )
        self._run.alarm("headroom", text if short else "")


class FullOutbox:
    """Raises an alarm when messages begin not to fit into the outbox, and ends it later.

    `text` is what `/healthz` shows, "" while they fit.
    """

    def __init__(self, run: Run, outbox: Outbox) -> None:
        self.text = ""
        self._run = run
        self._outbox = outbox
        self._counted = self._count()
        self._before = 0
        self._last = 0.0

    def start(self) -> None:
        """Check at each interval while the gateway runs."""
        self._run.every(FULL_SECONDS, self.check)

    def check(self) -> None:
        """Raise or end the alarm by the counts since the last check."""
        counted, now = self._count(), self._run.clock.monotonic()
        if counted > self._counted:
            if not self.text:
                self._begin()
            self._counted, self._last = counted, now
        elif self.text and now - self._last >= QUIET_SECONDS and self._outbox.bounds.have_capacity:
            self._end()

    def _begin(self) -> None:
        self._before = self._counted
        self.text = f"the outbox is full: {CONSEQUENCES[self._run.configuration.outbox.when_full]}"
        logger.warning("%s", self.text)
        self._run.alarm(ALARM, self.text)

    def _end(self) -> None:
        self.text = ""
        lost = self._counted - self._before
        logger.warning("the outbox accepts messages again: meanwhile %d did not fit", lost)
        self._run.alarm(ALARM, "")

    def _count(self) -> int:
        """Return how many messages did not fit, or were evicted for others, so far."""
        counters = self._run.counters
        evicted = sum(counters.count(f"tidegate/outbox/evicted/{policy}") for policy in WhenFull)
        return evicted + counters.count("tidegate/outbox/rejected")


class LinkLines:
    """Follows the state of the uplink."""

    def __init__(self, run: Run, uplink: Uplink, outbox: Outbox) -> None:
        self._run = run
        self._uplink = uplink
        self._outbox = outbox
        self._name = f"uplink {uplink.name}" if uplink.name else "uplink"
        self._index = outbox.uplinks.names.index(uplink.name)
        self._down_since: float | None = run.clock.monotonic()
        self._reminded = self._down_since

    def start(self, stack: AsyncExitStack) -> None:
        """Follow it until the stack ends."""
        self._uplink.on_state.append(self.check)
        self._run.every(LINK_SECONDS, self.check, stack)

    def end(self) -> None:
        """End the link's events: it is rebuilt or removed."""
        self._run.event.ends("link", self._name, "was rebuilt or removed")

    def check(self) -> None:
        """Log changes."""
        now = self._run.clock.monotonic()
        if self._uplink.state != "connected":
            if self._down_since is None:
                self._down_since = self._reminded = now
            elif now - self._down_since >= WORTH_TELLING and self._uplink.state == DOWN:
                state = f"{self._uplink.state}{self._reason}"
                self._run.event.begins("link", self._name, state)
            if now - self._reminded >= REMINDER_SECONDS:
                self._reminded = now
                self._remind(now - self._down_since)
        elif self._down_since is not None:
            self._run.event.ends("link", self._name, "is back")
            away, self._down_since = now - self._down_since, None
            if away >= WORTH_TELLING or self._rows:
                logger.info(
                    "%s: was down for %s; %s", self._name, spell_seconds(away), self._waiting()
                )

    def _remind(self, away: float) -> None:
        state = self._uplink.state
        if state in EXPECTED:
            return
        text = f"{state} for {spell_seconds(away)}{self._reason}; {self._waiting()}"
        logger.warning("%s: %s", self._name, text)

    @property
    def _reason(self) -> str:
        """Why the link is down, in brackets, "" if that is unknown."""
        return f" ({self._uplink.error})" if self._uplink.error else ""

    @property
    def _rows(self) -> int:
        """How many messages wait for this uplink."""
        return self._outbox.uplinks.rows[self._index]

    def _waiting(self) -> str:
        rows, oldest = self._rows, self._outbox.oldest.time
        if not rows or oldest is None:
            return "no message waits"
        if self._outbox.uplinks.several:  # the oldest may be another uplink's
            return f"{rows:,} messages wait"
        waited = max(0, self._run.clock.wall_ms() - oldest) / 1000
        return f"{rows:,} messages wait, the oldest for {spell_seconds(waited)}"


class UplinkCounters(Counters):
    """The figures of one of several uplinks, which are shown by name.

    In the common figures counts are sums and words are listed. The state is that of the first
    uplink that is not connected. The next attempt to connect is the first of all.
    """

    __slots__ = ("_all", "_name", "_of_all")

    def __init__(self, counters: Counters, name: str, of_all: "Sequence[UplinkCounters]") -> None:
        super().__init__()
        self._all = counters
        self._name = name
        self._of_all = of_all
        begin_at_zero(self, UPLINK)

    @property
    def name(self) -> str:
        """The name of the uplink."""
        return self._name

    def show(self) -> None:
        """Show its figures in the common ones, whose uplinks have changed."""
        for name, value in self.values.items():
            if isinstance(value, str) or name in GAUGES:
                self._all.set(self._named(name), value)
                self._all.set(name, self._together(name))

    def add(self, name: str, count: int = 1) -> None:
        """Raise the counter by its own name and in the sum."""
        super().add(name, count)
        self._all.add(name, count)
        self._all.set(self._named(name), self.values[name])

    def add_each(self, names: tuple[str, ...]) -> None:
        """Raise each of these counters in the same way."""
        for name in names:
            self.add(name)

    def set(self, name: str, value: int | float | str) -> None:  # noqa: PYI041
        """Set the gauge by its own name and the common one."""
        super().set(name, value)
        self._all.set(self._named(name), value)
        self._all.set(name, self._together(name))

    def _named(self, name: str) -> str:
        return f"{PART}{self._name}/{name.removeprefix(PART)}"

    def _together(self, name: str) -> int | float | str:
        known = [(each._name, each.values[name]) for each in self._of_all if name in each.values]  # noqa: SLF001
        if name == f"{PART}state":
            return next((state for _, state in known if state != CONNECTED), CONNECTED)
        if name == f"{PART}next_attempt_seconds":
            return min((value for _, value in known if value), default=0)
        if any(isinstance(value, str) for _, value in known):
            return "; ".join(f"{uplink}: {value}" for uplink, value in known if value)
        return sum(value for _, value in known if not isinstance(value, str))
