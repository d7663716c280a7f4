"""The level of log lines: `[log]`."""

from enum import StrEnum

from gateway.settings.checks import one_of
from gateway.settings.declaration import key, keys_of, settings_class


class Level(StrEnum):
    """The least severity of lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


AS_LEVEL = "as `level`"


@settings_class
class LogSettings:
    """Levels of the log, for all and for a [part](#log)."""

    level: Level = key(one_of(*Level), "lines of this severity and above are written", Level.INFO)
    app: Level | None = key(
        one_of(*Level), "the same for the start, files, alarms and commands", None, shown=AS_LEVEL
    )
    bridges: Level | None = key(
        one_of(*Level), "the same for bridges and nodes", None, shown=AS_LEVEL
    )
    broker: Level | None = key(
        one_of(*Level),
        "the same for clients: connections, refusals",
        None,
        shown=AS_LEVEL,
    )
    server: Level | None = key(
        one_of(*Level), "the same for listeners, TLS and WebSocket", None, shown=AS_LEVEL
    )
    storage: Level | None = key(
        one_of(*Level), "the same for the database and the disk", None, shown=AS_LEVEL
    )
    uplink: Level | None = key(
        one_of(*Level), "the same for links to the fleet", None, shown=AS_LEVEL
    )


ALL = "all"
"""Represents every part without its own level, to which `level` applies."""

PARTS = (ALL, *[each.attribute for each in keys_of(LogSettings)][1:])
