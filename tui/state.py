"""What a gateway has told about itself and its sensors, without a screen or a connection."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag, auto

from tui import figures
from tui.every_figure import EveryFigure
from tui.payload import as_count, as_object, as_objects, as_text, seconds_of, text_of
from tui.rates import OWN, Rates
from tui.sensors import Sensors
from tui.text import printable

MAX_LOG_LINES = 500
"""lines; the oldest is dropped"""
MAX_ALARMS = 32
"""alarms; a further one is counted and not kept"""
NO_BRIDGES = ("channels", "uplink")
"""parts of a gateway whose names have a state, too"""
MAX_PORTS = 64
"""bridges; a further one is counted and not kept"""
MAX_HISTORY = 60
"""values kept of what is drawn over time"""
MAX_TEXT = 256
"""characters of a text"""
MAX_NAME = 64
"""characters of a port's, alarm's or logger's name"""


class Change(Flag):
    """The parts of the state that a message changed."""

    NOTHING = 0
    FIGURES = auto()
    SENSORS = auto()
    PORTS = auto()
    ALARMS = auto()
    LOG = auto()


@dataclass(slots=True)
class Port:
    """A bridge: `open`, `waiting`, `silent` or `off`, and why."""

    state: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A raised alarm; `raised` is in seconds since 1970, None when it does not say."""

    text: str
    raised: float | None


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of the log; `time` is in seconds since 1970."""

    time: float
    level: str
    logger: str
    message: str


class GatewayState:
    """The last value of everything shown; `apply` takes each message that arrives.

    `root` is the topic above `broker/…`. All times are in seconds since 1970.
    """

    def __init__(self, root: str = "$SYS") -> None:
        self._prefix = f"{root}/broker/"
        self.counts: dict[str, int] = {}
        self.words: dict[str, str] = {}
        self.uptime: int | None = None
        self.ports: dict[str, Port] = {}
        self.alarms: dict[str, Alarm] = {}
        self.left_out = 0
        """messages about bridges and alarms beyond their bounds"""
        self.log: deque[LogLine] = deque(maxlen=MAX_LOG_LINES)
        self.logged = 0
        """lines of the log ever taken"""
        self.sensors = Sensors()
        self.every_figure = EveryFigure()
        self.rates = Rates()
        self.traffic_history: deque[float] = deque(maxlen=MAX_HISTORY)
        self.outbox_history: deque[float] = deque(maxlen=MAX_HISTORY)

    def apply(self, topic: str, payload: bytes, now: float, *, retained: bool = False) -> Change:
        """Take a message of any topic and payload and return what it changed. Never raises."""
        if not topic.startswith(self._prefix):
            self.sensors.hear(topic, payload, now, retained=retained)
            return Change.SENSORS
        name = topic.removeprefix(self._prefix)
        self.every_figure.take(name, payload)
        if name in figures.COUNTS:
            return self._take_count(name, payload)
        if name in figures.WORDS:
            self.words[name] = as_text(payload, MAX_TEXT)
            return Change.FIGURES
        if name == figures.UPTIME:
            return self._take_uptime(payload, now, retained=retained)
        return self._take_named(name, payload, now, retained=retained)

    def settle(self, now: float, heard: int = 0) -> Change:
        """Derive the rates when a round of counters is complete; call a few times a second.

        `heard` are the messages that came over our own connection.
        """
        if not self.rates.settle(now, heard):
            return Change.NOTHING
        self.traffic_history.append(self.incoming() or 0.0)
        self.outbox_history.append(float(self.counts.get(figures.OUTBOX_ROWS, 0)))
        return Change.FIGURES

    def begin(self, now: float) -> None:
        """Forget what a gateway tells anew at each connection; keep the sensors and the log."""
        self.counts.clear()
        self.every_figure.clear()
        self.words.clear()
        self.ports.clear()
        self.alarms.clear()
        self.rates.forget()
        self.uptime = None
        self.left_out = 0
        self.sensors.listen(now)

    def note(self, level: str, message: str, now: float) -> None:
        """Add a line of the screen's own to the log."""
        self._add_line(LogLine(now, level, "screen", printable(message, MAX_TEXT)))

    def count(self, name: str) -> int | None:
        """Return a count, or None while it is not known.

        A gateway publishes a count when it first differs from 0.
        """
        return self.counts.get(name, 0 if figures.GATEWAY_ID in self.words else None)

    def incoming(self) -> float | None:
        """Return the messages per second that clients publish and bridges read."""
        parts = [self.rates.get(name) for name in (figures.RECEIVED, figures.BRIDGE_READINGS)]
        known = [part for part in parts if part is not None]
        return sum(known) if known else None

    def outgoing(self) -> float | None:
        """Return the messages per second that clients are sent, this screen left out."""
        sent, own = self.rates.get(figures.SENT), self.rates.get(OWN)
        return None if sent is None or own is None else max(0.0, sent - own)

    def word(self, name: str) -> str:
        """Return a text; empty while it is not known."""
        return self.words.get(name, "")

    def uplinks(self) -> dict[str, dict[str, str]]:
        """Return the figures of several uplinks by name; nothing if there is one."""
        found = self.every_figure.by_name("uplink")
        return {name: told for name, told in found.items() if "state" in told}

    def uplink_state(self, name: str = "") -> str:
        """Return the state of one of several uplinks, or of all; empty while it is not known."""
        if name:
            return self.uplinks().get(name, {}).get("state", "")
        return self.word(figures.UPLINK_STATE)

    def _take_count(self, name: str, payload: bytes) -> Change:
        count = as_count(payload)
        if count is None:
            self.counts.pop(name, None)
        else:
            self.counts[name] = count
            self.rates.count(name, count)
        return Change.FIGURES

    def _take_uptime(self, payload: bytes, now: float, *, retained: bool) -> Change:
        self.uptime = as_count(payload.removesuffix(b" seconds"))
        if self.uptime is not None:
            self.rates.begin_round(self.uptime, now, retained=retained)
        return Change.FIGURES

    def _take_named(self, name: str, payload: bytes, now: float, *, retained: bool) -> Change:
        """Take what has a name of its own below `$SYS/broker/tidegate/`."""
        match name.split("/", 4):
            case ["tidegate", "log"]:
                return self._take_line(payload, now)
            case ["tidegate", "log", "recent"]:
                return self._take_recent(payload, retained=retained)
            case ["tidegate", "alarm", alarm]:
                return self._take_alarm(printable(alarm, MAX_NAME), payload)
            case ["tidegate", kind, bridge, "state" | "error" as field] if kind not in NO_BRIDGES:
                return self._take_port(printable(f"{kind} {bridge}", MAX_NAME), field, payload)
            case _:
                return Change.NOTHING

    def _take_line(self, payload: bytes, now: float) -> Change:
        line = as_object(payload) or {"message": as_text(payload, MAX_TEXT)}
        self._add_line(_log_line(line, now))
        return Change.LOG

    def _take_recent(self, payload: bytes, *, retained: bool) -> Change:
        """Take the lines from before the connection; later ones come by themselves."""
        if not retained:
            return Change.NOTHING
        last = max((line.time for line in self.log if line.logger != "screen"), default=0.0)
        lines = [_log_line(line, 0.0) for line in as_objects(payload)[-MAX_LOG_LINES:]]
        for line in lines:
            if line.time > last:
                self._add_line(line)
        return Change.LOG

    def _add_line(self, line: LogLine) -> None:
        self.log.append(line)
        self.logged += 1

    def _take_alarm(self, name: str, payload: bytes) -> Change:
        if not payload:
            self.alarms.pop(name, None)
            return Change.ALARMS
        if name not in self.alarms and len(self.alarms) >= MAX_ALARMS:
            self.left_out += 1
            return Change.ALARMS
        alarm = as_object(payload) or {"text": as_text(payload, MAX_TEXT)}
        self.alarms[name] = Alarm(text_of(alarm, "text", MAX_TEXT), seconds_of(alarm, "raised"))
        return Change.ALARMS

    def _take_port(self, name: str, field: str, payload: bytes) -> Change:
        if name not in self.ports and len(self.ports) >= MAX_PORTS:
            self.left_out += 1
            return Change.PORTS
        port = self.ports.setdefault(name, Port())
        if field == "state":
            port.state = as_text(payload, MAX_NAME)
        else:
            port.error = as_text(payload, MAX_TEXT)
        return Change.PORTS


def _log_line(line: Mapping[str, object], now: float) -> LogLine:
    return LogLine(
        seconds_of(line, "time") or now,
        text_of(line, "level", MAX_NAME).lower(),
        text_of(line, "logger", MAX_NAME) or "gateway",
        text_of(line, "message", MAX_TEXT),
    )
