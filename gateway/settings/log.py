"""What the log says: `[log]`."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.settings.checks import one_of
from gateway.settings.declaration import key


class Level(StrEnum):
    """From which severity on lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


AS_LEVEL = "as `level`"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What the log says, of all and of a [part](#log)."""

    level: Level = key(
        one_of(*Level), "lines of this severity and above it are written", Level.INFO
    )
    app: Level | None = key(
        one_of(*Level), "the same of the start, files, alarms and commands", None, shown=AS_LEVEL
    )
    bridges: Level | None = key(
        one_of(*Level), "the same of bridges and nodes", None, shown=AS_LEVEL
    )
    broker: Level | None = key(
        one_of(*Level),
        "the same of clients: who comes and goes, what is refused",
        None,
        shown=AS_LEVEL,
    )
    server: Level | None = key(
        one_of(*Level), "the same of listeners, TLS and WebSocket", None, shown=AS_LEVEL
    )
    storage: Level | None = key(
        one_of(*Level), "the same of the database and the disk", None, shown=AS_LEVEL
    )
    uplink: Level | None = key(
        one_of(*Level), "the same of links to the fleet", None, shown=AS_LEVEL
    )


ALL = "all"
"""Stands for every part that has no level of its own: what `level` is for."""

PARTS = (ALL, *LogSettings.__slots__[1:])
