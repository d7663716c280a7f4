"""A gateway's parts made, joined and started; its stack stops them in the opposite order."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from gateway.access.listeners import ListenerRights, Listeners
from gateway.app.access import access_policies
from gateway.app.allocator import give_back_regularly, keep_buffers
from gateway.app.bridges import start_bridges
from gateway.app.channels import ChannelDesk
from gateway.app.checks.warnings import warnings
from gateway.app.clock_stamp import open_clock_stamp
from gateway.app.control import Control
from gateway.app.descriptors import connection_limit, make_room, raise_limit
from gateway.app.disk.damage import have_it_salvaged
from gateway.app.disk.data_folder import DataFolder, keep_private
from gateway.app.disk.own_files import watch_files
from gateway.app.disk.storage import open_storage
from gateway.app.disk.wear import Wear
from gateway.app.durable_sessions import open_store
from gateway.app.full_queues import FullQueues
from gateway.app.gateway import Gateway
from gateway.app.history import record
from gateway.app.listeners import make_listeners
from gateway.app.memory_limit import default_limit, for_clients, occupied
from gateway.app.metrics import bind_metrics
from gateway.app.operator_socket import bind_operator_socket
from gateway.app.telemetry import Telemetry
from gateway.app.watched_files import watch
from gateway.broker import access
from gateway.broker.broker import Broker
from gateway.broker.instant import Instant
from gateway.broker.restore import restore
from gateway.broker.store import Store
from gateway.compiled import build
from gateway.config.configuration import Configuration
from gateway.errors import RestartError
from gateway.pieces import complete
from gateway.server.listening.connection_limits import Room
from gateway.server.listening.listener import Listener
from gateway.server.turn import Turn
from gateway.storage.engine.damage import UNREADABLE
from gateway.telemetry.systemd_notify import SystemdNotify
from gateway.version import VERSION

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
            await start(gateway, durable=durable)
        except UNREADABLE as error:
            have_it_salvaged(gateway, error)
            return True
        loop.add_signal_handler(signal.SIGHUP, _reload, gateway)
        notify.ready(gateway.status)
        logger.info("tidegate %s (%s): %s", VERSION, build(), gateway.status)
        on_ready()
        await gateway.ended.wait()
        logger.info("stopping")
        if not gateway.anew:
            notify.stopping()
    if gateway.fault:
        raise RestartError(f"{data}: {gateway.fault}; start again")
    alarms.update(gateway.next_alarms)
    return gateway.anew


async def start(gateway: Gateway, *, durable: bool) -> None:
    """Start every part; raise TidegateError if one cannot work."""
    gateway.folder = DataFolder(gateway.data)
    gateway.stack.callback(gateway.folder.close)
    alarms = await open_storage(gateway, durable=durable)  # which goes on to add to them
    gateway.folder.hold()  # the database may be a new one
    alarms.update(gateway.alarms)
    files = watch_files(gateway)
    gateway.clock_stamp = await open_clock_stamp(gateway)
    store, kept = await open_store(gateway, durable=durable)
    _make_broker(gateway, store)
    gateway.clock_stamp.watch()
    await _bind_listeners(gateway)
    metrics = await bind_metrics(gateway)
    _start_telemetry(gateway, alarms)
    if files is not None:
        files.start()
    FullQueues(gateway).start()
    _watch_wear(gateway)
    gateway.control = Control()
    channels = ChannelDesk(gateway)
    gateway.broker.subscribe_inline(gateway.control, gateway.control.topic_filters)
    await _start_uplink(gateway)
    restore(gateway.broker, kept, Instant(*gateway.clock_stamp.at_start()))
    await channels.keep_pauses()
    gateway.telemetry.say()  # what was restored, before anyone can ask
    for listener in gateway.listeners:
        await listener.serve()
    if gateway.operator_socket is not None:
        await gateway.operator_socket.serve()
    await start_bridges(gateway)
    _give_memory_back(gateway)
    _watch_files(gateway)
    if metrics is not None:
        await metrics.serve()


def _make_broker(gateway: Gateway, store: Store) -> None:
    gateway.broker = Broker(
        replace(
            gateway.configuration.broker,
            subscription_filters=gateway.configuration.subscription_filters,
            durability=gateway.configuration.durability,
            default_durability=gateway.configuration.storage.durability,
            channels=gateway.configuration.channels,
            delivery=gateway.configuration.delivery,
            memory_limit=for_clients(
                gateway.configuration.memory.limit or default_limit(), occupied()
            ),
        ),
        gateway.counters,
        durability=gateway.writer,
        store=store,
        new_client_id=lambda: f"auto-{os.urandom(8).hex()}",
        # as even as makes no difference, and without the module `random` in memory
        randrange=lambda below: int.from_bytes(os.urandom(8), "little") % below,
        timer=gateway.clock.nanoseconds,
    )
    gateway.policies = access_policies(gateway.configuration)
    complete(access.apply(gateway.broker, gateway.policies, now=0.0))  # there is no session yet
    for warning in warnings(gateway.configuration, gateway.data):
        logger.warning("%s", warning)
    gateway.turn = Turn(gateway.broker, gateway.writer, gateway.clock)
    gateway.stack.push_async_callback(_finish, gateway)


def _start_telemetry(gateway: Gateway, alarms: dict[str, str]) -> None:
    gateway.telemetry = Telemetry(gateway)
    gateway.stack.callback(gateway.telemetry.stop)
    for name, text in alarms.items():
        gateway.telemetry.alarm(name, text)
    gateway.telemetry.start()


def _watch_wear(gateway: Gateway) -> None:
    wear = Wear(gateway)
    wear.start()
    gateway.at_stop.append(wear.stop)


async def _start_uplink(gateway: Gateway) -> None:
    """Join the history to the broker, and what goes up, where the configuration has it."""
    if not gateway.configuration.uplinks:
        await record(gateway, None, ())
        return
    from gateway.app.uplink.uplinks import start_uplinks

    await start_uplinks(gateway)


def _watch_files(gateway: Gateway) -> None:
    watching = asyncio.get_running_loop().create_task(watch(gateway, gateway.files_changed))
    gateway.stack.callback(watching.cancel)


def _give_memory_back(gateway: Gateway) -> None:
    keep_buffers()
    giving = asyncio.get_running_loop().create_task(give_back_regularly())
    gateway.stack.callback(giving.cancel)


async def _bind_listeners(gateway: Gateway) -> None:
    """Take every address first: a busy port ends the start before anything is sent."""
    room = Room(connection_limit())
    for listener in make_listeners(gateway, room):
        await listener.bind()
        gateway.stack.push_async_callback(listener.close)
        gateway.listeners.append(listener)
    await bind_operator_socket(gateway, room)
    socket = gateway.operator_socket
    gateway.broker.listeners = Listeners(
        _rights(gateway.listeners), _rights([socket] if socket is not None else [])
    )


def _rights(listeners: Sequence[Listener]) -> dict[str, ListenerRights]:
    return {each.settings.name: each.connections.rights for each in listeners}


async def _finish(gateway: Gateway) -> None:
    """Bring what was gathered to disk; the listeners have seen their clients off before."""
    gateway.clock_stamp.look()  # nothing else does any more
    for gather in gateway.at_stop:
        gather()
    await gateway.writer.close()
    gateway.turn.end()
    gateway.turn.stop()


def _reload(gateway: Gateway) -> None:
    """Read again what can change while the gateway runs: certificates, passwords, bridges."""
    gateway.files_changed.set()
    gateway.bridges.reload()
