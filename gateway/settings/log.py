"""The level of log lines: `[log]`."""

from enum import StrEnum

from gateway.settings.checks import one_of
from gateway.settings.declaration import Check, key, keys_of, settings_class


class Level(StrEnum):
    """The least severity of lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_LEVEL = one_of(*Level)
_OF_A_PART = Check(_LEVEL.read, "level", _LEVEL.schema)


@settings_class
class LogSettings:
    """Levels of the log; by default each [part](#log) has that of `level`."""

    level: Level = key(_LEVEL, "lowest severity", Level.INFO)
    app: Level | None = key(_OF_A_PART, "start, files, alarms, commands", None)
    bridges: Level | None = key(_OF_A_PART, "bridges and nodes", None)
    broker: Level | None = key(_OF_A_PART, "clients: connections, refusals", None)
    server: Level | None = key(_OF_A_PART, "listeners, TLS, WebSocket", None)
    storage: Level | None = key(_OF_A_PART, "database and disk", None)
    uplink: Level | None = key(_OF_A_PART, "links to the fleet", None)


ALL = "all"
"""Represents every part without its own level, to which `level` applies."""

PARTS = (ALL, *[each.attribute for each in keys_of(LogSettings)][1:])
