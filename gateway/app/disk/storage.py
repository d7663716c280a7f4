"""Opens the database and writer of a gateway, shows their durability, and watches its disk."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from gateway.app.disk.damage import watch_for_damage
from gateway.app.disk.wear import Wear
from gateway.app.parts import Run, Storage
from gateway.config.configuration import Configuration
from gateway.counters import Counters
from gateway.server.gateway_loop import GatewayLoop
from gateway.storage.engine.database import COUNT_START, Database, open_database, start_number
from gateway.storage.engine.database_file import is_writable_again
from gateway.storage.engine.free_space import FreeSpace
from gateway.storage.engine.unread import WHAT_TO_DO
from gateway.storage.engine.writer import Writer

MS = 1000
"""Milliseconds in a second."""

CHECK_SECONDS = 5.0
"""Seconds between two checks whether the disk accepts a database."""
REFUSES = "the disk could not be written at the start"
READ_ONLY = (
    "{reason}: everything is in memory only, and what was acknowledged is lost at the next stop;"
    " when the folder can be written again, restart the gateway"
)
WAITS = (
    "{reason}: publishers are refused until the disk can be written; then the gateway restarts"
    " with what is on it"
)


async def open_storage(run: Run, *, durable: bool) -> Storage:
    """Return the database and its writer.

    Raises StartError if the database cannot be opened in any way.
    """
    database = await open_database(run.data, run.clock, COUNT_START)
    run.stack.push_async_callback(database.close)
    loop = asyncio.get_running_loop()
    if isinstance(loop, GatewayLoop):
        database.writer.wake_through(loop.sockets.serve)
    starts = await start_number(database)
    durable = durable and not database.in_memory
    _report_salvage(run, database)
    writer = Writer(
        database.writer,
        run.counters,
        durable=durable,
        commit_delay=run.configuration.storage.commit_delay / MS,
        alarm=partial(run.alarm, "storage"),
    )
    show_durability(run.configuration, run.counters, durable=durable)
    watch_for_damage(run, database, writer)
    if database.in_memory:
        run.alarm("durability", wait_for_disk(run, database, writer))
    else:
        await _watch_free_space(run, database, writer)
    return Storage(database, writer, starts)


class StoragePart:
    """Changes how the disk is written to, and what is shown of that."""

    def __init__(self, run: Run, writer: Writer, wear: Wear, *, durable: bool) -> None:
        self._run = run
        self._writer = writer
        self._wear = wear
        self._durable = durable

    async def prepare(
        self, _old: Configuration, new: Configuration, _stack: AsyncExitStack
    ) -> Callable[[], Awaitable[None]]:
        """Return what lets a configuration hold."""

        async def switch() -> None:
            self._writer.commit_delay = new.storage.commit_delay / MS
            self._wear.change(new.storage)
            show_durability(new, self._run.counters, durable=self._durable)

        return switch


def _report_salvage(run: Run, database: Database) -> None:
    alarms = []
    salvage = database.salvage
    if salvage is not None and not database.in_memory:
        run.counters.add("tidegate/storage/salvaged", sum(salvage.salvaged.values()))
        run.counters.add("tidegate/storage/lost", salvage.all_lost)
        aside = database.set_aside
        alarms.append(f"the database was damaged and is set aside as {aside}: {salvage}")
    if database.unread:
        names = ", ".join(map(str, database.unread))
        alarms.append(WHAT_TO_DO.format(name=names, why="the log has the reason"))
    if alarms:
        run.alarm("database", "; ".join(alarms))


async def _watch_free_space(run: Run, database: Database, writer: Writer) -> None:
    alarm = partial(run.alarm, "disk")
    free_space = FreeSpace(database.path, database.writer, database.reserve, alarm, run.start_anew)
    writer.attempts.free_space = free_space
    run.stack.push_async_callback(free_space.close)
    await free_space.begin()


def wait_for_disk(run: Run, database: Database, writer: Writer) -> str:
    """Return the text of the alarm; if the disk may recover, refuse publishers until then."""
    if not database.may_recover:
        return READ_ONLY.format(reason=database.in_memory)
    writer.refuses = REFUSES
    checking = asyncio.get_running_loop().create_task(_wait_until_writable(run, database))
    run.stack.callback(checking.cancel)
    return WAITS.format(reason=database.in_memory)


async def _wait_until_writable(run: Run, database: Database) -> None:
    while True:
        if await asyncio.to_thread(is_writable_again, database.path, run.clock):
            run.start_anew()
            return
        await asyncio.sleep(CHECK_SECONDS)


def show_durability(configuration: Configuration, counters: Counters, *, durable: bool) -> None:
    """Show the durability classes under `$SYS`."""
    storage = configuration.storage
    counters.set("tidegate/storage/durability", storage.durability if durable else "memory")
    counters.set("tidegate/storage/durability_classes", _described(configuration))
    counters.set("tidegate/storage/commit_delay", storage.commit_delay)


def _described(configuration: Configuration) -> str:
    """Return each class that is not the default with its matches, such as "a/#: memory"."""
    entries = [
        f"client {each.client}: {each.durability}"
        if each.topic is None
        else f"topic {each.topic}: {each.durability}"
        for each in configuration.durability
    ]
    listeners = [
        f"listener[{index}]: {each.durability}"
        for index, each in enumerate(configuration.listeners)
        if each.durability is not None
    ]
    return "; ".join(entries + listeners)
