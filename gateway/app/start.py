"""Makes, connects and starts a gateway's parts; its stack stops them in reverse order."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from gateway.access.listeners import Listeners
from gateway.app.access import access_policies
from gateway.app.authenticators import Passwords
from gateway.app.bridges import Bridges, start_bridges
from gateway.app.certificates import watch_certificates
from gateway.app.channel_timeouts import ChannelTimeouts
from gateway.app.channels import ChannelCommands
from gateway.app.checks.check import check_configuration
from gateway.app.checks.warnings import warnings
from gateway.app.clock_stamp import ClockStamp, open_clock_stamp
from gateway.app.control import Control
from gateway.app.disk.damage import have_it_salvaged
from gateway.app.disk.data_folder import DataFolder, keep_private
from gateway.app.disk.own_files import watch_files
from gateway.app.disk.storage import StoragePart, open_storage
from gateway.app.disk.wear import Wear
from gateway.app.durable_sessions import StoreTime, open_store
from gateway.app.full_queues import FullQueues
from gateway.app.identity import watch_identity
from gateway.app.listeners import ListenerMaker, read_files, rights_of
from gateway.app.metrics import Metrics
from gateway.app.operator_socket import bind_operator_socket
from gateway.app.parts import Core, Run, Storage
from gateway.app.process_limits import (
    connection_limit,
    default_limit,
    for_clients,
    give_back_regularly,
    occupied,
    raise_limit,
    reserve_descriptors,
    set_up_heap,
)
from gateway.app.query.events import EventLog
from gateway.app.query.queries import Queries
from gateway.app.reload.broker import BrokerPart, broker_settings
from gateway.app.reload.listeners import ListenersPart
from gateway.app.reload.reload import Reload
from gateway.app.reload.uplinks import HistoryPart, UplinkNeeds
from gateway.app.telemetry import Telemetry
from gateway.app.watched_files import ListenerFiles
from gateway.background import background
from gateway.broker import access
from gateway.broker.broker import Broker
from gateway.broker.instant import Instant
from gateway.broker.restore import restore
from gateway.broker.store import Store
from gateway.compiled import build
from gateway.config.configuration import Configuration
from gateway.errors import RestartError
from gateway.pieces import complete
from gateway.server.listening.connection_limits import ProcessConnections
from gateway.server.listening.listener import Listener
from gateway.server.turn import Turn
from gateway.storage.engine.damage import UNREADABLE
from gateway.storage.engine.writer import Writer
from gateway.telemetry.systemd_notify import SystemdNotify
from gateway.version import describe

logger = logging.getLogger(__name__)


async def serve(
    configuration: Configuration,
    data: Path,
    read_again: Callable[[], Configuration] | None = None,
    *,
    durable: bool = True,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Run a gateway until SIGINT or SIGTERM; raise TidegateError if it cannot start.

    `read_again` returns the present configuration, for a reload.

    Raises RestartError if only another start can fix what was found.
    """
    set_up_heap()
    keep_private()
    raise_limit()
    reserve_descriptors()
    notify = SystemdNotify()
    alarms: dict[str, str] = {}
    run = Run(configuration, data, AsyncExitStack(), alarms, read_again)
    while await _serve_once(run, notify, on_ready, alarms, durable=durable):
        logger.warning("starting again")
        run = Run(run.configuration, data, AsyncExitStack(), alarms, read_again)


async def _serve_once(
    run: Run,
    notify: SystemdNotify,
    on_ready: Callable[[], None],
    alarms: dict[str, str],
    *,
    durable: bool,
) -> bool:
    """Run a gateway until it ends; return whether it must start again, and with which `alarms`."""
    loop = asyncio.get_running_loop()
    async with run.stack:
        alarms.clear()
        loop.add_signal_handler(signal.SIGHUP, _is_starting)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, run.end)
        try:
            gateway = await start(run, durable=durable)
        except UNREADABLE as error:
            have_it_salvaged(run, error)
            return True
        gateway.reload.before = notify.reloading
        gateway.reload.after = lambda: notify.ready(gateway.status)
        loop.add_signal_handler(signal.SIGHUP, gateway.reload.signal)
        notify.ready(gateway.status)
        logger.info("%s: %s", describe(build()), gateway.status)
        on_ready()
        await run.ended.wait()
        logger.info("stopping")
        loop.add_signal_handler(signal.SIGHUP, _is_starting)
        if not run.restarting:
            notify.stopping()
    if run.fault:
        raise RestartError(f"{run.data}: {run.fault}; start again")
    alarms.update(run.next_alarms)
    return run.restarting


def _is_starting() -> None:
    logger.info("SIGHUP comes too early or too late for a reload; a start reads all files")


class Gateway(NamedTuple):
    """The parts of a gateway that runs."""

    run: Run
    storage: Storage
    core: Core
    listeners: list[Listener]
    operator_socket: Listener | None
    telemetry: Telemetry
    bridges: Bridges
    reload: Reload

    @property
    def status(self) -> str:
        """One line with the state and the addresses."""
        places = ", ".join(each.description for each in self.listeners)
        text = f"gateway {self.run.configuration.gateway_id} listens on {places}"
        return text + (f"; reload refused: {self.reload.refusal}" if self.reload.refusal else "")


async def start(run: Run, *, durable: bool) -> Gateway:
    """Start every part; raise TidegateError if one cannot work."""
    # not split: the order is what matters here, and most parts need several of those before them
    folder = DataFolder(run.data)
    run.stack.callback(folder.close)
    storage = await open_storage(run, durable=durable)
    folder.hold()  # the database may be a new one
    events = EventLog(run, storage)
    await events.begin()
    files = watch_files(run, storage, folder)
    clock_stamp = await open_clock_stamp(run.clock, storage.database)
    store_time = StoreTime(clock_stamp)
    store, restored = await open_store(run, storage, store_time, durable=durable)
    core = _make_core(run, storage, store, clock_stamp)
    store_time.follow(core.turn, store)
    clock_stamp.watch(core.broker.expiry, storage.writer)
    maker, listeners, operator_socket = await _bind_listeners(run, core)
    metrics = Metrics(run)
    await metrics.bind()
    telemetry = Telemetry(run, core)
    run.stack.callback(telemetry.stop)
    run.alarm.publish(telemetry.sys_topics.alarm)
    telemetry.sys_topics.refresh.append(storage.writer.attempts.figures.show_means)
    telemetry.start()
    if files is not None:
        files.start(core.turn)
    FullQueues(run, core.broker).start()
    ChannelTimeouts(run, core.broker.channels).start()
    watch_certificates(run)
    wear = Wear(run, storage.writer)
    wear.start()
    run.at_stop.append(wear.stop)
    control = Control()
    await watch_identity(run, storage, control)
    channels = ChannelCommands(run, storage, core, control, telemetry.sys_topics)
    queries = Queries(run, storage, core, control, events, check_configuration)
    core.broker.subscribe_inline(control, control.topic_filters)
    history = HistoryPart(UplinkNeeds(run, storage, core, control, telemetry, queries))
    await history.start()
    restore(core.broker, restored, Instant(*clock_stamp.at_start()))
    await channels.restore_created()
    await channels.restore_pauses()
    telemetry.sys_topics.publish()  # restored values, before anyone can query them
    for listener in listeners:
        await listener.serve()
    if operator_socket is not None:
        await operator_socket.serve()
    bridges = await start_bridges(run, storage, core, control, queries.responder)
    _give_memory_back(run)
    listening = ListenersPart(run, maker, listeners, operator_socket)
    reload = Reload(run, queries.responder, _follow_files(run, core, listeners))
    reload.know(
        history.prepare,  # first: beginning with uplinks may fail
        BrokerPart(core, telemetry.sys_topics, queries.topics).prepare,
        bridges.prepare,
        listening.prepare,
        metrics.prepare,
        StoragePart(run, storage.writer, wear, durable=durable).prepare,
    )
    await metrics.serve(storage.writer, telemetry.sys_topics, bridges)
    return Gateway(run, storage, core, listeners, operator_socket, telemetry, bridges, reload)


def _make_core(run: Run, storage: Storage, store: Store, clock_stamp: ClockStamp) -> Core:
    configuration = run.configuration
    limit = configuration.memory.limit or default_limit()
    broker = Broker(
        broker_settings(configuration, for_clients(limit, occupied())),
        run.counters,
        durability=storage.writer,
        store=store,
        new_client_id=lambda: f"auto-{os.urandom(8).hex()}",
        # even enough, and without importing `random`
        randrange=lambda below: int.from_bytes(os.urandom(8), "little") % below,
        timer=run.clock.nanoseconds,
    )
    policies = access_policies(configuration)
    complete(access.apply(broker, policies, now=0.0))  # there is no session yet
    for warning in warnings(configuration, run.data):
        logger.warning("%s", warning)
    core = Core(broker, Turn(broker, storage.writer, run.clock), policies)
    run.stack.push_async_callback(_finish, run, storage.writer, core, clock_stamp)
    return core


def _follow_files(run: Run, core: Core, listeners: Sequence[Listener]) -> ListenerFiles:
    """Return the object that reads listeners' files again, also when they have changed."""
    files = ListenerFiles(run, core, listeners)
    watching = background(files.watch())
    run.stack.callback(watching.cancel)
    return files


def _give_memory_back(run: Run) -> None:
    giving = background(give_back_regularly())
    run.stack.callback(giving.cancel)


async def _bind_listeners(
    run: Run, core: Core
) -> tuple[ListenerMaker, list[Listener], Listener | None]:
    """Bind every address first: a busy port ends the start before anything is sent.

    Returns the maker of listeners, the listeners, and the operators' socket if there is one.
    """
    maker = ListenerMaker(
        core,
        ProcessConnections(connection_limit()),
        Passwords(core.turn, core.broker.failed_logins, run.stack),
    )
    configuration = run.configuration
    listeners: list[Listener] = []
    run.stack.push_async_callback(_close, listeners)
    for index, policy in enumerate(core.policies):
        files = read_files(configuration, index)
        listeners.append(maker.make(configuration, index, policy, files))
    for listener in listeners:
        await listener.bind()
    socket = await bind_operator_socket(run, core.turn, maker.process)
    sockets = [] if socket is None else [socket]
    core.broker.listeners = Listeners(rights_of(listeners), rights_of(sockets))
    return maker, listeners, socket


async def _close(listeners: Sequence[Listener]) -> None:
    for listener in reversed(listeners):
        await listener.close()


async def _finish(run: Run, writer: Writer, core: Core, clock_stamp: ClockStamp) -> None:
    """Write pending rows to disk; the listeners have disconnected their clients before."""
    clock_stamp.check(core.broker.expiry)  # nothing else does any more
    core.broker.conflation.flush(run.clock.monotonic())
    for gather in run.at_stop:
        gather()
    await writer.close()
    core.turn.end()
    core.turn.stop()
