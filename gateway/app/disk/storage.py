"""Opens the database and writer of a gateway, and raises alarms about its disk."""

from functools import partial
from typing import TYPE_CHECKING

from gateway.app.disk.damage import watch_for_damage
from gateway.app.disk.no_disk import wait_for_disk
from gateway.app.durability import show_durability
from gateway.storage.engine.database import Database, open_database
from gateway.storage.engine.free_space import FreeSpace
from gateway.storage.engine.meta import COUNT_START, start_number
from gateway.storage.engine.unread import WHAT_TO_DO
from gateway.storage.engine.writer import Writer

if TYPE_CHECKING:
    from gateway.app.gateway import Gateway


async def open_storage(gateway: "Gateway", *, durable: bool) -> dict[str, str]:
    """Give the gateway its database and writer; return the alarms that this raised, by name.

    Raises StartError when the database can be opened in no way.
    """
    database = gateway.database = await open_database(gateway.data, gateway.clock, COUNT_START)
    gateway.stack.push_async_callback(database.close)
    gateway.starts = await start_number(database)
    durable = durable and not database.in_memory
    alarms = _salvaged(gateway, database)
    gateway.writer = Writer(
        database.writer,
        gateway.counters,
        durable=durable,
        commit_delay=gateway.configuration.storage.commit_delay / 1000,
        alarm=partial(_alarm, gateway, alarms, "storage"),
    )
    show_durability(gateway.configuration, gateway.counters, durable=durable)
    watch_for_damage(gateway, database, partial(_alarm, gateway, alarms))
    if database.in_memory:
        alarms["durability"] = wait_for_disk(gateway, database)
    else:
        await _watch_free_space(gateway, database, alarms)
    return alarms


def _salvaged(gateway: "Gateway", database: Database) -> dict[str, str]:
    alarms = {}
    salvage = database.salvage
    if salvage is not None and not database.in_memory:
        gateway.counters.add("tidegate/storage/salvaged", sum(salvage.salvaged.values()))
        gateway.counters.add("tidegate/storage/lost", salvage.all_lost)
        aside = database.set_aside
        alarms["database"] = f"the database was damaged and is set aside as {aside}: {salvage}"
    if database.unread:
        names = ", ".join(map(str, database.unread))
        text = WHAT_TO_DO.format(name=names, why="the log says why")
        alarms["database"] = "; ".join(filter(None, (alarms.get("database"), text)))
    return alarms


async def _watch_free_space(gateway: "Gateway", database: Database, alarms: dict[str, str]) -> None:
    alarm = partial(_alarm, gateway, alarms, "disk")
    free_space = FreeSpace(database.path, database.writer, database.reserve, alarm)
    gateway.writer.attempts.free_space = free_space
    gateway.stack.push_async_callback(free_space.close)
    await free_space.begin()


def _alarm(gateway: "Gateway", alarms: dict[str, str], name: str, text: str) -> None:
    """Raise or end an alarm; what is raised before there is any telemetry is kept for it."""
    if hasattr(gateway, "telemetry"):
        gateway.telemetry.alarm(name, text)
    else:
        alarms[name] = text
