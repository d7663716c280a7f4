"""Keeps the link to the fleet up, and reports why it is down; catches every exception."""

import asyncio
import logging
import math
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from gateway.clock import Clock
from gateway.counters import Counters
from gateway.settings.uplink import UplinkSettings
from gateway.storage.outbox.outbox import Outbox
from gateway.storage.outbox.rejected import Rejected
from gateway.uplink.begin_connection import BeginConnection, begin_connection
from gateway.uplink.context import AtTurnEnd, UplinkContext, soon
from gateway.uplink.destination import Destination, Link
from gateway.uplink.errors import End, LinkError, TakenOverError
from gateway.uplink.link.backoff import Backoff
from gateway.uplink.link.budget import Metering
from gateway.uplink.link.schedule import CHECK_SECONDS, LinkPermit, schedule_of
from gateway.uplink.remote_session import RemoteSession
from gateway.uplink.reports.control_messages import ControlMessages

logger = logging.getLogger(__name__)


UNDISTURBED_SECONDS = 60.0
"""Seconds for which a link must be up after a take-over until the alarm ends."""

ALARM = "uplink_taken_over"

TAKE_OVERS = 3
"""Take-overs within TAKE_OVER_SECONDS that reveal another gateway with the same identity: one of
the two must be stopped, or each ends the other's connection for ever."""

TAKE_OVER_SECONDS = 120.0
"""Two gateways that reconnect 10 s after each other reach TAKE_OVERS within it."""


LASTING_RECONNECT = 300.0
"""Seconds before the next attempt after an error that only the other end can fix."""

STABLE_SECONDS = 30.0
"""Seconds for which a link must have been up for the next wait to be the shortest again."""

RETURN_SECONDS, RETURN_LONGEST = 30.0, 3600.0
"""Seconds of a link to a later address before the first one is tried; twice as long each time that
it answers and does not stay."""


class TakeOvers:
    """Follows how connections end; `alarm` gets the name and text, "" when it is over.

    After TAKE_OVERS within TAKE_OVER_SECONDS `stop` is called, to pause the uplink. A take-over is
    what the fleet reports (0x8E), or what the other gateway's retained status shows after the next
    connection. A connection that ends without a reason may have ended with the broker. It counts at
    once as the last of TAKE_OVERS, so that the other one, whose connection that was, is not ended
    again.
    """

    def __init__(self, uplink: str = "") -> None:
        self._alarm_name = f"{ALARM}_{uplink}" if uplink else ALARM
        self._resume = f"tidegate uplink resume {uplink}".rstrip()
        self.alarm: Callable[[str, str], None] = lambda _name, _text: None
        self.stop: Callable[[], None] = lambda: None
        self._raised = False
        self._last = ""
        self._recent: deque[float] = deque(maxlen=TAKE_OVERS)

    def ended(self, error: LinkError, now: float) -> None:
        """Raise the alarm if a connection ended by a take-over, `now` (monotonic seconds)."""
        recent = self._recent
        while recent and now - recent[0] > TAKE_OVER_SECONDS:
            recent.popleft()
        if isinstance(error, TakenOverError):
            self._last = str(error)
        elif len(recent) < TAKE_OVERS - 1 or error.end not in (End.CLOSED, End.RESET):
            return
        recent.append(now)
        if len(recent) == TAKE_OVERS:
            recent.clear()
            self._report(
                f"{self._last}: paused after {TAKE_OVERS} times within {TAKE_OVER_SECONDS:.0f} s;"
                f" give one of the two another [gateway] id, or stop it, then `{self._resume}` here"
            )
            self.stop()
        elif not self._raised:
            self._report(self._last)

    def _report(self, text: str) -> None:
        self._raised = True
        self.alarm(self._alarm_name, text)

    def end(self) -> None:
        """End the alarm, as there is no such link any more."""
        self.check(UNDISTURBED_SECONDS)

    def check(self, seconds_up: float) -> None:
        """End the alarm once a link has been up for long enough."""
        if self._raised and seconds_up >= UNDISTURBED_SECONDS:
            self._raised = False
            self.alarm(self._alarm_name, "")


def _fraction() -> float:
    """Return a random number from 0 to 1, without the module `random` and its tables in memory."""
    return int.from_bytes(os.urandom(4), "little") / 2**32


class Uplink:
    """Sends the outbox to the destination that the settings name.

    The state (`connecting`, `connected`, `disconnected`, `waiting` for its schedule or the next
    day's budget, `paused`) and the reason are in `tidegate/uplink/state` and
    `tidegate/uplink/error`. No error of a destination is raised from here: the link is disconnected
    and tried again later. Messages from the gateway itself are sent with `control_messages.send`,
    to either destination; `requests`, to be set before `start`, has the handlers of the fleet's
    requests. With `resume` the session that an earlier run left at the fleet's broker continues; at
    the end, `session` tells whether a later run may resume it. `uplink` is its bit in the outbox,
    one of several if that has several, and `counters` are its own.
    """

    def __init__(
        self,
        settings: UplinkSettings,
        outbox: Outbox,
        rejected: Rejected,
        counters: Counters,
        clock: Clock,
        random: Callable[[], float] = _fraction,
        metering: Metering | None = None,
        at_turn_end: AtTurnEnd = soon,
        begin: BeginConnection = begin_connection,
        *,
        resume: bool = False,
        uplink: int = 1,
    ) -> None:
        self.name = settings.name or ""
        self.control_messages = ControlMessages(self.wake)
        metering = metering or Metering(None, None, counters, clock)
        self.session = self._new_session(settings, known=resume)
        self._context = context = UplinkContext(
            settings,
            outbox,
            rejected,
            counters,
            clock,
            self.control_messages,
            metering,
            self.session,
            at_turn_end,
            begin,
            uplink=uplink,
        )
        self._permit = LinkPermit(schedule_of(settings.schedule), metering, clock)
        self.requests = context.requests
        self.destination = _destination(context, random)
        self._place = 0  # of the address, of those that the settings name
        self._failures = 0  # of one address after the other
        self._returning = False
        self._return_after = RETURN_SECONDS
        self._return_at = 0.0
        self._coming: UplinkContext | None = None
        self.paused = False
        self.on_state: list[Callable[[], None]] = []
        self.take_overs = TakeOvers(self.name)
        self.take_overs.stop = self.pause
        self._counters = counters
        self._clock = clock
        self._backoff = _backoff(settings, random)
        self._random = random
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._change = asyncio.Event()
        self._closing = False
        self._connections = 0
        self._up_since: float | None = None
        self._attempt_at: float | None = None
        counters.set("tidegate/uplink/destination", self.destination.name)

    @property
    def settings(self) -> UplinkSettings:
        """Its settings, or those of its next connection."""
        return (self._coming or self._context).settings

    @property
    def metering(self) -> Metering:
        """Counts the day's budget."""
        return self._context.metering

    @property
    def counters(self) -> Counters:
        """Its own figures."""
        return self._counters

    @property
    def state(self) -> str:
        """What `tidegate/uplink/state` shows."""
        return str(self._counters.values.get("tidegate/uplink/state", "off"))

    @property
    def error(self) -> str:
        """What `tidegate/uplink/error` shows."""
        return str(self._counters.values.get("tidegate/uplink/error", ""))

    @property
    def next_attempt_seconds(self) -> int | None:
        """The seconds until it connects by itself, None while that is not planned."""
        if self._attempt_at is None:
            return None
        return max(0, math.ceil(self._attempt_at - self._clock.monotonic()))

    async def start(self) -> None:
        """Begin to connect; return at once."""
        self._context.outbox.on_change.append(self.wake)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def wake(self) -> None:
        """Wake the destination: rows of the outbox were committed or removed."""
        if self._link is not None:
            self._link.wake.set()

    def pause(self) -> None:
        """Disconnect cleanly and stay disconnected; rows stay in the outbox."""
        self.paused = True
        self._changed()

    def resume(self) -> None:
        """Connect again after `pause`."""
        self.paused = False
        self._changed()

    def change(self, settings: UplinkSettings) -> None:
        """Use these settings from a new connection on; rows stay in the outbox.

        Another broker, or another client of it, does not know the present session.
        """
        coming = self._coming or self._context
        old, session = coming.settings, coming.session
        if (old.url, old.client_id) != (settings.url, settings.client_id):
            session = self._new_session(settings, known=bool(settings.down))
        session.change(
            persistent=settings.session_expiry > 0,
            maximum_ends=settings.reject_after_ends,
            retry_seconds=settings.retry_refused_for,
        )
        self._coming = replace(self._context, settings=settings, session=session)
        self._changed()

    def _new_session(self, settings: UplinkSettings, *, known: bool) -> RemoteSession:
        """Return the session at a broker; a `known` one goes on, since what waits there comes."""
        return RemoteSession(
            self.control_messages,
            persistent=settings.session_expiry > 0,
            known=known,
            maximum_ends=settings.reject_after_ends,
            retry_seconds=settings.retry_refused_for,
        )

    async def close(self) -> None:
        """Disconnect cleanly and stop."""
        self._closing = True
        self._changed()
        if self._task is not None:
            await self._task
            self._task = None
            self._context.outbox.on_change.remove(self.wake)

    def _changed(self) -> None:
        self._change.set()
        if self._link is not None and (self.paused or self._closing or self._coming is not None):
            self._link.stop()

    def _adopt(self, context: UplinkContext) -> None:
        """Use another context, while there is no connection."""
        if context.session is not self.session:
            self.session.abandon()
        self._coming, self._context, self.session = None, context, context.session
        self._place = self._failures = 0
        schedule = schedule_of(context.settings.schedule)
        self._permit = LinkPermit(schedule, context.metering, self._clock)
        self.destination = _destination(context, self._random)
        self._counters.set("tidegate/uplink/destination", self.destination.name)
        self._backoff = _backoff(context.settings, self._random)

    def _move(self, place: int) -> None:
        """Send to another address from the next connection on.

        What the old one has not acknowledged goes up from the outbox; what waits there for this
        gateway comes down when it is the other's turn again.
        """
        context, settings = self._context, self._context.settings
        if place == self._place:
            return
        self._place = place
        self.session.abandon()
        self.session = self._new_session(settings, known=bool(settings.down))
        there = replace(settings, urls=(settings.urls[place],))
        self.destination = _destination(
            replace(context, settings=there, session=self.session), self._random
        )
        self._counters.set("tidegate/uplink/destination", self.destination.name)

    def _next_address(self, delay: float) -> float:
        """Go on with the next address after a failure; return the seconds to wait.

        After a link that was up the first one is next, and so it is when all have failed.
        """
        self._failures = 0 if self._up_since is not None else self._failures + 1
        count = len(self._context.settings.urls)
        if count < 2:
            return delay
        if self._failures and self._failures % count:
            self._move((self._place + 1) % count)
            return 0.0
        self._move(0)
        return delay

    async def _run(self) -> None:
        while not self._closing:
            self._change.clear()
            if self._coming is not None:
                self._adopt(self._coming)
            if self.paused:
                self._show("paused", "")
                await self._change.wait()
                continue
            if (closed := self._permit.closed()) is not None:
                self._show("waiting", closed.text)
                await self._pause_for(closed.seconds)
                continue
            delay = await self._run_once()
            if delay is not None:
                await self._pause_for(self._next_address(delay))
            elif self._returning:
                self._returning = False
                self._return_after = min(2 * self._return_after, RETURN_LONGEST)
                self._move(0)
        self._show("off", "")

    async def _run_once(self) -> float | None:
        """Run the destination; return the seconds to wait after a failure, None after a stop."""
        self._show("connecting", None)
        link = self._link = Link(self._report, self._taken_over)
        self._up_since = None
        watch = asyncio.get_running_loop().create_task(self._watch_gate(link))
        try:
            await self.destination.run(link)
        except LinkError as error:
            if not link.stopping:
                self.take_overs.ended(error, self._clock.monotonic())
                return self._failed(str(error), error.end, lasting=error.lasting, soon=error.soon)
            logger.info(
                "uplink to %s: stopped without DISCONNECT: %s", self.destination.name, error
            )
        except Exception as error:
            logger.exception("uplink: unexpected error")
            return self._failed(f"{type(error).__name__}: {error}")
        finally:
            self._link = None
            watch.cancel()
        return None

    async def _watch_gate(self, link: Link) -> None:
        """Stop a link whose window ends, or whose budget is used up."""
        while self._permit.closed() is None:
            await asyncio.sleep(CHECK_SECONDS)
            if self._up_since is not None:
                seconds_up = self._clock.monotonic() - self._up_since
                self.take_overs.check(seconds_up)
                if await self._may_return(seconds_up):
                    break
        link.stop()

    async def _may_return(self, seconds_up: float) -> bool:
        """Return whether the first address answers, to a link that is up to a later one."""
        if self._place == 0:
            if seconds_up >= STABLE_SECONDS:
                self._return_after = RETURN_SECONDS
            return False
        if self._clock.monotonic() < self._return_at:
            return False
        self._return_at = self._clock.monotonic() + self._return_after
        from gateway.uplink.fleet.client import answers

        self._returning = await answers(self._context.settings)
        return self._returning

    def _failed(
        self, text: str, end: End = End.FAILED, *, lasting: bool = False, soon: bool = False
    ) -> float:
        """Report how a connection ended; return the seconds to wait."""
        self._counters.set("tidegate/uplink/last_end", str(end))
        if end is not End.FAILED:
            self._counters.add(f"tidegate/uplink/ended_{end}")
        if text != self._counters.values.get("tidegate/uplink/error"):
            logger.warning("uplink to %s: %s", self.destination.name, text)
        self._show("disconnected", text)
        now = self._clock.monotonic()
        if soon or (self._up_since is not None and now - self._up_since >= STABLE_SECONDS):
            self._backoff.reset()
        if lasting:
            return LASTING_RECONNECT * (1 + self._random()) / 2
        return self._backoff.delay()

    async def _pause_for(self, seconds: float) -> None:
        self._attempt_at = self._clock.monotonic() + seconds
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._change.wait()
        self._attempt_at = None

    def _taken_over(self, error: TakenOverError) -> None:
        """Count a take-over that the status at the fleet's broker shows."""
        logger.warning("uplink to %s: %s", self.destination.name, error)
        self.take_overs.ended(error, self._clock.monotonic())

    def _report(self, trouble: str) -> None:
        """Record that the destination is up, with or without a problem."""
        if self._up_since is None:
            self._up_since = self._clock.monotonic()
            self._return_at = self._up_since + self._return_after
            self._connections += 1
            if self._connections > 1:
                self._counters.add("tidegate/uplink/reconnects")
            logger.info("uplink to %s: connected", self.destination.name)
        self._show("connected", trouble)

    def _show(self, state: str, error: str | None) -> None:
        self._counters.set("tidegate/uplink/state", state)
        if error is not None:
            self._counters.set("tidegate/uplink/error", error)
        for callback in self.on_state:
            callback()


def _destination(context: UplinkContext, random: Callable[[], float]) -> Destination:
    """Return the destination; its module is imported only if it is used, to save memory."""
    if context.settings.url is None:
        from gateway.uplink.landing.directory import DirectoryDestination

        return DirectoryDestination(context)
    from gateway.uplink.fleet.fleet import FleetDestination

    return FleetDestination(context, random)


def _backoff(settings: UplinkSettings, random: Callable[[], float]) -> Backoff:
    """Return the waits between attempts to connect."""
    return Backoff(settings.reconnect.minimum, settings.reconnect.maximum, random)
