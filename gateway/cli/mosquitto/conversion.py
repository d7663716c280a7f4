"""Converts a mosquitto.conf to a configuration of the gateway."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.cli.mosquitto.bridge import Bridge, NoPlaceError, is_true, whole
from gateway.cli.mosquitto.lines import Line, lines_of
from gateway.cli.mosquitto.listener import KEEP_ALIVE, LOOPBACK, SECURITY, Listener
from gateway.cli.mosquitto.options import why_not

Table = dict[str, Any]

UPLINKS = 8
"""Uplinks of a gateway."""

UNBOUNDED_MESSAGES = 100_000_000
SMALLEST_PACKET = 1024
LARGEST_INFLIGHT = 65_535

TIMES = {"h": 3_600, "d": 86_400, "w": 604_800, "m": 2_592_000, "y": 31_536_000}
"""Seconds of the letters that may follow a number in Mosquitto: a month has 30 days."""

TIME = re.compile(r"([0-9]+)([hdwmy])")

VERBOSE = ("debug", "all")
"""Log types that enable everything."""


def _bound(least: int, none: int | None) -> Callable[[Line], object]:
    """Return a reader of a bound, of which 0 means none."""
    return lambda line: none if whole(line) <= 0 else max(least, whole(line))


def _sys_interval(line: Line) -> object:
    if whole(line) == 0:
        raise NoPlaceError("figures under $SYS are always there")
    return f"{min(whole(line), 3_600)}s"


def _expiration(line: Line) -> object:
    match = TIME.fullmatch(line.value)
    if match is None:
        raise NoPlaceError("a number and one of h, d, w, m and y")
    return f"{int(match[1]) * TIMES[match[2]]}s"


KEYS: dict[str, tuple[str, str, Callable[[Line], object]]] = {
    "max_packet_size": ("broker", "maximum_packet_size", _bound(SMALLEST_PACKET, None)),
    "message_size_limit": ("broker", "maximum_packet_size", _bound(SMALLEST_PACKET, None)),
    "max_inflight_messages": ("broker", "maximum_inflight", _bound(1, LARGEST_INFLIGHT)),
    "max_queued_messages": ("broker", "maximum_queued_messages", _bound(1, UNBOUNDED_MESSAGES)),
    "max_queued_bytes": ("broker", "maximum_queued_bytes", _bound(1024, None)),
    "max_topic_alias": ("broker", "topic_alias_maximum", _bound(0, 0)),
    "sys_interval": ("broker", "sys_interval", _sys_interval),
    "persistent_client_expiration": ("broker", "maximum_session_expiry", _expiration),
    "persistence": ("storage", "durability", lambda line: None if is_true(line) else "memory"),
    "connection_messages": ("log", "broker", lambda line: None if is_true(line) else "warning"),
    "log_type": ("log", "level", lambda line: "debug" if line.value in VERBOSE else None),
}
"""Options that become one key: its table, its name, and its reader."""


class Conversion:
    """The tables of a configuration, and the lines without an equivalent.

    `unconverted` has each such line with the reason, and whether something differs without it;
    `secrets` are passwords by the name of the file that must contain them.
    """

    def __init__(self, file: Path) -> None:
        self.broker: Table = {}
        self.storage: Table = {}
        self.log: Table = {}
        self.unconverted: list[tuple[Line, str, bool]] = []
        self.secrets: dict[str, str] = {}
        self.remarks: list[str] = []
        self._shared: Table = {}
        self._default = Listener()
        self._has_default = False
        self._listeners: list[Listener] = []
        self._bridges: list[Bridge] = []
        self._per_listener = False
        lines = list(lines_of(file))
        for line in lines:
            if line.option == "per_listener_settings":
                self._per_listener = line.value == "true"
        for line in lines:
            try:
                if not self._apply(line):
                    why, needless = why_not(line.option)
                    self.unconverted.append((line, why, not needless))
            except NoPlaceError as error:
                self.unconverted.append((line, str(error), True))
        self.listeners = self._made_listeners()
        self.uplinks = self._made_uplinks()

    def _apply(self, line: Line) -> bool:
        """Read a line into its part; return False if it has no equivalent."""
        if line.option == "listener":
            self._listeners.append(Listener.of(line))
            return True
        if line.option == "connection":
            self._bridges.append(Bridge(line.value, line))
            return True
        return self._take_security(line) or self._take_default(line) or self._take_part(line)

    def _take_part(self, line: Line) -> bool:
        """Read a line of the broker, of the last bridge or of the last listener."""
        if self._take_broker(line):
            return True
        if self._bridges and self._bridges[-1].apply(line):
            return True
        return (self._listeners or [self._default])[-1].apply(line)

    def _take_security(self, line: Line) -> bool:
        """Read who may connect and the longest keep alive: for all listeners, or for the last."""
        option = line.option
        if option == KEEP_ALIVE:  # mosquitto.conf(5) has it among the general options
            if (seconds := whole(line)) > 0:
                self._shared[KEEP_ALIVE] = f"{seconds}s"
            return True
        if option != "allow_anonymous" and option not in SECURITY:
            return False
        own = self._per_listener
        where = (self._listeners or [self._default])[-1].security if own else self._shared
        where[option] = is_true(line) if option == "allow_anonymous" else line.value
        return True

    def _take_default(self, line: Line) -> bool:
        """Read the address of the listener without a `listener` line."""
        if line.option == "port":
            self._default.port = whole(line)
        elif line.option == "bind_address":
            self._default.host = line.value
        else:
            return False
        self._has_default = True
        return True

    def _take_broker(self, line: Line) -> bool:
        key = KEYS.get(line.option)
        if key is None:
            return False
        table, name, value_of = key
        value = value_of(line)
        if value is not None:
            tables: dict[str, Table] = {"broker": self.broker, "storage": self.storage}
            tables.get(table, self.log)[name] = value
        return True

    def _made_listeners(self) -> list[tuple[str, Table]]:
        local_only = not self._listeners and not self._has_default
        listeners = list(self._listeners)
        if self._has_default or not listeners:
            listeners.insert(0, self._default)
            if local_only:
                self._default.host = LOOPBACK
        made = []
        for listener in listeners:
            table, lines = listener.table(self._shared, local_only=local_only)
            self.unconverted += [(line, why, not why.startswith("needless")) for line, why in lines]
            heading = "" if listener.line is None else listener.line.place
            made.append((heading, table))
            if table.get("host") == "0.0.0.0":  # noqa: S104 - compared
                self.remarks.append(
                    f'listener {table["port"]}: only IPv4; for IPv6 add one with host = "::"'
                )
        return made

    def _made_uplinks(self) -> list[tuple[str, Table]]:
        made: list[tuple[str, Table]] = []
        names: set[str] = set()
        for place, bridge in enumerate(self._bridges, start=1):
            if place > UPLINKS:
                self.unconverted.append((bridge.line, f"a gateway has {UPLINKS} uplinks", True))
                continue
            table, unconverted = bridge.tables(place, only_one=len(self._bridges) == 1)
            while table.get("name") in names:
                table["name"] = f"{table['name'][:12]}-{place}"
            names.add(table.get("name", ""))
            self.unconverted += [(line, why, True) for line, why in unconverted]
            if bridge.password is not None:
                file = f"{bridge.uplink_name}.password"
                self.secrets[file] = bridge.password
                table["password_file"] = file
            made.append((bridge.line.place, table))
        return made
