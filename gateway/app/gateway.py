"""A whole gateway: its parts made, joined, started, and stopped in the opposite order."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.app.access import access_policies
from gateway.app.allocator import give_back_regularly, keep_buffers
from gateway.app.bridges import Bridges, start_bridges
from gateway.app.broker_settings import broker_settings, subscription_filters
from gateway.app.checks.warnings import warnings
from gateway.app.clock_stamp import ClockStamp, open_clock_stamp
from gateway.app.control import Control
from gateway.app.descriptors import make_room, raise_limit
from gateway.app.disk.damage import have_it_salvaged
from gateway.app.disk.data_folder import DataFolder, keep_private
from gateway.app.disk.own_files import watch_files
from gateway.app.disk.storage import open_storage
from gateway.app.disk.wear import Wear
from gateway.app.durability import durability_entries
from gateway.app.durable_sessions import open_store
from gateway.app.history import record
from gateway.app.listeners import make_listeners, reload_listeners
from gateway.app.memory_limit import default_limit
from gateway.app.metrics import bind_metrics
from gateway.app.telemetry import Telemetry
from gateway.app.watched_files import watch
from gateway.broker import access
from gateway.broker.broker import Broker
from gateway.broker.instant import Instant
from gateway.broker.restore import restore
from gateway.broker.store import Store
from gateway.clock import Clock
from gateway.config.durability import commit_within
from gateway.config.settings import Configuration
from gateway.counters import Counters
from gateway.errors import RestartError
from gateway.mqtt.reason_codes import ReasonCode
from gateway.routing.where.message import Message
from gateway.server.listener import Listener
from gateway.server.turn import Turn
from gateway.storage.engine.damage import UNREADABLE
from gateway.storage.engine.database import Database
from gateway.storage.engine.writer import Writer
from gateway.telemetry.systemd_notify import SystemdNotify
from gateway.version import VERSION

if TYPE_CHECKING:
    from gateway.server.password_logins import PasswordThread

logger = logging.getLogger(__name__)


async def serve(
    configuration: Configuration,
    data: Path,
    *,
    durable: bool = True,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Run a gateway until SIGINT or SIGTERM; raise TidegateError if it cannot start.

    Raises RestartError where only another start can mend what was found.
    """
    keep_private()
    raise_limit()
    make_room()
    notify = SystemdNotify()
    alarms: dict[str, str] = {}
    while await _serve_once(configuration, data, notify, on_ready, alarms, durable=durable):
        logger.warning("starting anew")


async def _serve_once(
    configuration: Configuration,
    data: Path,
    notify: SystemdNotify,
    on_ready: Callable[[], None],
    alarms: dict[str, str],
    *,
    durable: bool,
) -> bool:
    """Run a gateway until it ends; return whether it is to start anew, and with which `alarms`."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        gateway = Gateway(configuration, data, stack)
        gateway.alarms = dict(alarms)
        alarms.clear()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, gateway.end)
        try:
            await gateway.start(durable=durable)
        except UNREADABLE as error:
            have_it_salvaged(gateway, error)
            return True
        loop.add_signal_handler(signal.SIGHUP, gateway.reload)
        notify.ready(gateway.status)
        logger.info("tidegate %s: %s", VERSION, gateway.status)
        on_ready()
        await gateway.ended.wait()
        logger.info("stopping")
        if not gateway.anew:
            notify.stopping()
    if gateway.fault:
        raise RestartError(f"{data}: {gateway.fault}; start again")
    alarms.update(gateway.next_alarms)
    return gateway.anew


class Gateway:
    """The parts of one gateway; what `start` made, the stack takes apart again."""

    def __init__(self, configuration: Configuration, data: Path, stack: AsyncExitStack) -> None:
        self.configuration = configuration
        self.data = data
        self.stack = stack
        self.clock = Clock()
        self.counters = Counters()
        self.epoch = os.urandom(5).hex()
        self.listeners: list[Listener] = []
        self.database: Database
        self.writer: Writer
        self.starts: int
        self._password_thread: PasswordThread | None = None
        self.clock_stamp: ClockStamp
        self.bridges: Bridges
        self.ended = asyncio.Event()
        self.fault = ""
        """Why the gateway ends by itself."""
        self.anew = False
        """Whether it starts once more after its end."""
        self.alarms: dict[str, str] = {}
        """What the start has to tell from the beginning, by name."""
        self.next_alarms: dict[str, str] = {}
        """What the start that follows at once has to tell."""
        self.at_stop: list[Callable[[], None]] = []
        """Called when nothing comes in any more, to gather rows for the last batch."""

    @property
    def status(self) -> str:
        """One line that says what runs and where."""
        places = ", ".join(each.description for each in self.listeners)
        return f"gateway {self.configuration.gateway_id} listens on {places}"

    async def start(self, *, durable: bool) -> None:
        """Start every part; raise TidegateError if one cannot work."""
        self.stack.callback(DataFolder(self.data).close)
        alarms = await open_storage(self, durable=durable)  # which goes on to add to them
        alarms.update(self.alarms)
        files = watch_files(self)
        self.clock_stamp = await open_clock_stamp(self)
        store, kept = await open_store(self, durable=durable)
        self._make_broker(store)
        self.clock_stamp.watch()
        await self._bind_listeners()
        metrics = await bind_metrics(self)
        self._start_telemetry(alarms)
        if files is not None:
            files.start()
        self._watch_wear()
        self.control = Control()
        self.broker.subscribe_inline(self.control, self.control.topic_filters)
        await self._start_uplink()
        restore(self.broker, kept, Instant(*self.clock_stamp.at_start()))
        for listener in self.listeners:
            await listener.serve()
        await start_bridges(self)
        self._give_memory_back()
        self._watch_files()
        if metrics is not None:
            await metrics.serve()

    def password_thread(self) -> "PasswordThread":
        """Return the thread in which passwords are checked, which begins with the first."""
        if self._password_thread is None:
            from gateway.server.password_logins import PasswordThread

            self._password_thread = PasswordThread(self.turn.loop, self.turn.now)
            self.stack.callback(self._password_thread.close)
        return self._password_thread

    def end(self, fault: str = "") -> None:
        """Let the gateway end, because of a `fault` or because it was asked to."""
        if not self.ended.is_set():
            self.fault = fault
        self.anew = False
        self.ended.set()

    def start_anew(self) -> None:
        """Let the gateway end and start once more, unless it ends already."""
        if not self.ended.is_set():
            self.end()
            self.anew = True

    def reload(self) -> None:
        """Read again what can change while the gateway runs: certificates, passwords, bridges."""
        reload_listeners(self)
        self.bridges.reload()

    def publish(self, message: Message) -> ReasonCode:
        """Publish a message of the gateway's own in this turn."""
        return self.broker.publish(message, self.turn.instant)

    def _make_broker(self, store: Store) -> None:
        self.broker = Broker(
            replace(
                broker_settings(self.configuration.broker),
                subscription_filters=subscription_filters(self.configuration),
                durability=durability_entries(self.configuration),
                default_durability=commit_within(self.configuration.storage.durability),
                memory_limit=self.configuration.memory.limit or default_limit(),
            ),
            self.counters,
            durability=self.writer,
            store=store,
            new_client_id=lambda: f"auto-{os.urandom(8).hex()}",
            timer=self.clock.nanoseconds,
        )
        self.policies = access_policies(self.configuration)
        if len(set(self.policies)) == 1:  # else who is away is asked about when it is back
            self.broker.access = self.policies[0]
        access.apply(self.broker, self.policies)
        for warning in warnings(self.configuration):
            logger.warning("%s", warning)
        self.turn = Turn(self.broker, self.writer, self.clock)
        self.stack.push_async_callback(self._finish)

    def _start_telemetry(self, alarms: dict[str, str]) -> None:
        self.telemetry = Telemetry(self)
        self.stack.callback(self.telemetry.stop)
        for name, text in alarms.items():
            self.telemetry.alarm(name, text)
        self.telemetry.start()

    def _watch_wear(self) -> None:
        wear = Wear(self)
        wear.start()
        self.at_stop.append(wear.stop)

    async def _start_uplink(self) -> None:
        """Join the history to the broker, and what goes up, where the configuration has it."""
        config = self.configuration.uplink
        if config is None:
            await record(self, None, ())
            return
        from gateway.app.uplink import start_uplink

        await start_uplink(self, config)

    def _watch_files(self) -> None:
        watching = asyncio.get_running_loop().create_task(watch(self))
        self.stack.callback(watching.cancel)

    def _give_memory_back(self) -> None:
        keep_buffers()
        giving = asyncio.get_running_loop().create_task(give_back_regularly())
        self.stack.callback(giving.cancel)

    async def _bind_listeners(self) -> None:
        """Take every address first: a busy port ends the start before anything is sent."""
        for listener in make_listeners(self):
            await listener.bind()
            self.stack.push_async_callback(listener.close)
            self.listeners.append(listener)

    async def _finish(self) -> None:
        """Bring what was gathered to disk; the listeners have seen their clients off before."""
        self.clock_stamp.look()  # nothing else does any more
        for gather in self.at_stop:
            gather()
        await self.writer.close()
        self.turn.end()
        self.turn.stop()
