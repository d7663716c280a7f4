"""One bridge that is restarted after any fault, with a longer wait each time."""

import asyncio
import logging
from collections.abc import Iterable
from importlib import import_module

from gateway.access.access import EVERYTHING
from gateway.bridges.kind import BridgeKind
from gateway.bridges.settings import BridgeSettings
from gateway.bridges.supervision.host import Host
from gateway.bridges.supervision.interfaces import Bridge, BridgeError, Receive, Services
from gateway.extras import how_to_install
from gateway.mqtt.message import Message
from gateway.mqtt.reason_codes import ReasonCode


class Backoff:
    """Waits in seconds: `first`, then `growth` times as long each time, at most `most`."""

    def __init__(self, first: float, growth: float, most: float) -> None:
        self._first = first
        self._growth = growth
        self._most = most
        self._following = first

    def next(self) -> float:
        """Return how long to wait now."""
        wait = self._following
        self._following = min(wait * self._growth, self._most)
        return wait

    def reset(self) -> None:
        """Start again at `first`."""
        self._following = self._first


RESTART_FIRST = 1.0
"""Seconds from a bridge's fault to its next start; doubled at each further fault."""

RESTART_MAX = 60.0
"""Most seconds between two starts, and how long a bridge must run to count as healthy again."""

RELEASED_CHECK = 0.5
"""Seconds between two checks whether a released device is back early."""

STOP_TIMEOUT = 5.0
"""Seconds that a bridge has to end; one that takes longer is abandoned, counted and reported."""

logger = logging.getLogger(__name__)


class Supervised:
    """Runs a bridge with these settings until `close`."""

    def __init__(
        self, kind: BridgeKind, name: str, settings: BridgeSettings, services: Services
    ) -> None:
        self._kind = kind
        self._settings = settings
        self._services = services
        self.host = Host(
            kind.name,
            name,
            services,
            retain=settings.retain,
            silence=settings.silence,
            reading_map=settings.map,
        )
        self._retry = Backoff(*kind.retry)
        self._faults = Backoff(RESTART_FIRST, 2.0, RESTART_MAX)
        self._restarts = 0
        self._bridge: Bridge | None = None
        self._work: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._give_up = asyncio.Event()
        self._released_until = 0.0
        self._received_at: float | None = None
        """The value of `host.received_at` at the last BridgeError."""

    def start(self) -> None:
        """Begin; needs a running event loop."""
        self._keeping = asyncio.create_task(self._keep_running(), name=self.host.title)

    async def close(self) -> None:
        """Stop the bridge, wait until it has closed its device, and end its alarm."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})
        self.host.close()

    def release_port(self, seconds: float) -> None:
        """Release the device to another program, and open it again after so many seconds.

        0 ends the release early.
        """
        self._released_until = asyncio.get_running_loop().time() + seconds
        if seconds and self._work is not None:
            self._work.cancel()

    def check_silence(self, now: float) -> None:
        """Report a silence, and restart the bridge to end it; later each time.

        A bridge that waits for its device is only reported.
        """
        silent = self.host.silence.check(now)
        if silent is None:
            return
        usual = f"usually a reading comes within {self.host.silence.usual:.3g} s"
        if self._work is None or self._work.done():
            self.host.silent(f"nothing for {silent:.0f} s ({usual})")
            return
        self.host.silent(f"nothing for {silent:.0f} s ({usual}); started again")
        self._bridge = None
        self._work.cancel()
        asyncio.get_running_loop().call_later(STOP_TIMEOUT, self._give_up.set)

    async def _keep_running(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                started = loop.time()
                delay = await self._run_once()
                if loop.time() - started > RESTART_MAX:
                    self._faults.reset()
                await asyncio.sleep(self._faults.next() if delay is None else delay)
        finally:
            await self._stop_work()

    async def _run_once(self) -> float | None:
        """Run the bridge to its end; return the seconds to wait, None after a fault."""
        left = self._released_until - asyncio.get_running_loop().time()
        if left > 0:
            self.host.waiting("released to another program")
            return min(left, RELEASED_CHECK)
        self._released_until = 0.0
        try:
            if self._bridge is None:
                self.host.release()
                self._bridge = await self._make()
            if not await self._work_until_end(self._bridge):
                if not self._released_until:  # else it was stopped for the release
                    self._count_restart()
                return 0.0
            self._fault("it ended by itself")
        except BridgeError as failure:
            if (
                self.host.received_at != self._received_at
            ):  # not at opening, which may succeed on a dying device
                self._retry.reset()
            self._received_at = self.host.received_at
            self.host.waiting(str(failure))
            return self._retry.next()
        except Exception as fault:
            logger.exception("%s: fault", self.host.title)
            self._fault(f"{type(fault).__name__}: {fault}")
        return None

    async def _work_until_end(self, bridge: Bridge) -> bool:
        """Run the bridge; return False if a silence ended it, re-raise its exceptions."""
        self._give_up = asyncio.Event()
        work = self._work = asyncio.create_task(bridge.run(), name=self.host.title)
        giving_up = asyncio.create_task(self._give_up.wait())
        try:
            await asyncio.wait({work, giving_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            giving_up.cancel()
        if not work.done():
            logger.error("%s: does not end; it is abandoned", self.host.title)
            return False
        if work.cancelled():
            return False
        work.result()
        return True

    def _fault(self, reason: str) -> None:
        self._bridge = None
        self._count_restart()
        self.host.waiting(f"fault: {reason}")

    def _count_restart(self) -> None:
        self._restarts += 1
        self.host.show("restarts", self._restarts)

    async def _make(self) -> Bridge:
        try:
            # in a thread: importing a library may take a board seconds
            await asyncio.to_thread(_load, self._kind.needs)
        except ImportError as failure:
            how = f": {how_to_install(self._kind.extra)}" if self._kind.extra else ""
            raise BridgeError(
                f"needs {failure.name or failure}, which is not installed{how}"
            ) from None
        return self._kind.make(self._settings, self.host)

    async def _stop_work(self) -> None:
        work, self._work = self._work, None
        if work is None or work.done():
            return
        work.cancel()
        _, pending = await asyncio.wait({work}, timeout=STOP_TIMEOUT)
        if pending:
            logger.error("%s: does not end; it is abandoned", self.host.title)


def _load(modules: Iterable[str]) -> None:
    for name in modules:
        import_module(name)


class Subscriber:
    """An inline client that hands messages to a bridge.

    A fault of the bridge refuses the message.
    """

    inline = True
    access = EVERYTHING

    def __init__(self, client_id: str, receive: Receive) -> None:
        self.client_id = client_id
        self.refusal = f"{client_id} accepts no messages now"
        self._receive = receive

    def receive(self, message: Message, topic_filters: list[str]) -> ReasonCode:  # noqa: ARG002 - an inline client's shape
        """Hand a message to the bridge."""
        try:
            return self._receive(message)
        except Exception:
            logger.exception("%s: fault with a message on %.80r", self.client_id, message.topic)
            return ReasonCode.UNSPECIFIED_ERROR
