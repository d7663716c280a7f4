"""What a gateway has reported of itself and its topics, without a screen or a connection."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from tui import figures
from tui.figures import Figures
from tui.payload import as_number, as_object, as_objects, as_text, seconds_of, text_of
from tui.queries import Document, number
from tui.text import printable
from tui.topics import Topics

MAX_LOG_LINES = 500
"""lines; the oldest is dropped"""
MAX_ALARMS = 32
"""alarms; a further one is counted and not kept"""
MAX_TEXT = 256
"""characters of a text"""
MAX_NAME = 64
"""characters of an alarm's or logger's name"""
OWN = "own"
"""the name under which rounds have what this screen was sent besides figures"""
SELF = "screen"
"""the logger of lines about our own connection"""


QUESTIONS = (figures.ANSWERED, figures.REFUSED)
"""counters of what screens and commands ask"""


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


@dataclass(frozen=True, slots=True)
class Uplink:
    """What is known of one uplink; the only one has no name."""

    name: str
    state: str
    error: str
    destination: str
    waiting: int | None
    attempt: int | None
    """the seconds until it connects by itself, None while that is not planned"""
    unanswered: float = 0.0
    """the seconds since the fleet acknowledged a message, while some are sent and it is up"""

    @property
    def called(self) -> str:
        """The name that is shown."""
        return printable(self.name or "uplink", 24)


class GatewayState:
    """The last value of everything reported; call `apply` with each message that arrives.

    All times are in seconds since 1970.
    """

    def __init__(self) -> None:
        self.figures = Figures()
        self.rates = Rates()
        self.topics = Topics()
        self.where = ""
        """a `$where` for whose sample `passing` is"""
        self.passing = Topics()
        """the topics of messages that passed it"""
        self.uptime: float | None = None
        self.alarms: dict[str, Alarm] = {}
        self.not_stored = 0
        """messages about alarms beyond their bound"""
        self.log: deque[LogLine] = deque(maxlen=MAX_LOG_LINES)
        self.sampled = 0
        """messages ever sent to this screen to sample topics"""
        self._own = 0
        self._acknowledged: dict[str, tuple[int | None, float]] = {}
        self._round_at = 0.0
        self._settled = False
        self.since = 0.0
        """when we began to hear"""

    def begin(self, now: float) -> None:
        """Forget what a new connection reports again."""
        self.figures.clear()
        self.rates.forget()
        self.alarms.clear()
        self.uptime = None
        self.since = now
        self._acknowledged.clear()
        self._settled = False

    def filter(self, where: str) -> None:
        """Collect what passes another `$where` from now on, or nothing."""
        self.where = where
        self.passing.clear()

    def apply(
        self, topic: str, payload: bytes, now: float, *, retained: bool = False, where: str = ""
    ) -> None:
        """Take a message of any topic and payload, which has passed this. Never raises."""
        if not topic.startswith(figures.ROOT):
            self.sampled += 1
            self._own += 1
            self.topics.hear(topic, payload, now, retained=retained)
            if where and where == self.where:
                self.passing.hear(topic, payload, now, retained=retained)
            return
        if retained:
            self._settled = False  # the replay of what is retained is not over
        name = topic.removeprefix(figures.ROOT)
        match name.split("/", 3):
            case ["tidegate", "log"]:
                line = as_object(payload) or {"message": as_text(payload, MAX_TEXT)}
                self._add_line(_log_line(line, now))
            case ["tidegate", "log", "recent"]:
                self._apply_recent(payload, retained=retained)
            case ["tidegate", "alarm", alarm]:
                self._apply_alarm(printable(alarm, MAX_NAME), payload)
            case ["uptime"]:
                self._apply_uptime(payload, now, retained=retained)
            case _:
                self.figures.apply(name, payload)

    def note(self, level: str, message: str, now: float) -> None:
        """Add a line about our own doings to the log."""
        self._add_line(LogLine(now, level, SELF, printable(message, MAX_TEXT)))

    @property
    def lost(self) -> int | None:
        """The messages since the gateway's start that the fleet never gets; None if not known."""
        known = [each for name in figures.LOST if (each := self.figures.count(name)) is not None]
        return sum(known) if known else None

    # What both figures and the query `status` have is read here, so that a screen shows it once:
    # the figures, which come by themselves, and the answer where they may not be read.

    def uplinks(self, status: Document) -> list[Uplink]:
        """Return what is known of each uplink."""
        names = self.figures.uplinks()
        if names:
            return [self._uplink(each) for each in names]
        found = status.get("uplinks")
        rows = found if isinstance(found, list) else []
        return [_uplink_of(row) for row in rows if isinstance(row, dict)]

    def survives(self, status: Document) -> int | None:
        """Return the seconds of an outage until the outbox is full."""
        return self._count(figures.OUTBOX_SURVIVES, status.get("survives_seconds"))

    def up(self, status: Document) -> float | None:
        """Return for how many seconds the gateway has run."""
        return number(status.get("uptime_seconds")) if self.uptime is None else self.uptime

    def clients(self, status: Document) -> tuple[int | None, int | None]:
        """Return how many clients are connected, and how many sessions wait for theirs."""
        found = status.get("clients")
        reported = found if isinstance(found, dict) else {}
        connected = self._count(figures.CLIENTS, reported.get("connected"))
        return connected, self._count(figures.OFFLINE, reported.get("offline"))

    def _count(self, name: str, reported: object) -> int | None:
        known, answered = self.figures.count(name), number(reported)
        return known if known is not None or answered is None else int(answered)

    def _uplink(self, name: str) -> Uplink:
        begin, read = figures.uplink_prefix(name), self.figures
        waiting = read.count(f"{begin}waiting" if name else figures.OUTBOX_ROWS)
        state, error, destination = (
            read.word(begin + each) for each in ("state", "error", "destination")
        )
        attempt = read.count(begin + "next_attempt_seconds") or None
        unanswered = 0.0
        if state == "connected" and waiting and read.count(begin + "inflight"):
            count, since = self._acknowledged.get(name, (None, 0.0))
            if count == read.count(begin + "acknowledged"):
                unanswered = self._round_at - since
        return Uplink(name, state, error, destination, waiting, attempt, unanswered)

    def _note_acknowledged(self, now: float) -> None:
        """Note when each uplink's messages were acknowledged last, or it had none to send."""
        self._round_at = now
        for name in self.figures.uplinks():
            begin = figures.uplink_prefix(name)
            count = self.figures.count(begin + "acknowledged")
            before, _ = self._acknowledged.get(name, (None, 0.0))
            busy = self.figures.word(begin + "state") == "connected"
            if count != before or not busy or not self.figures.count(begin + "inflight"):
                self._acknowledged[name] = count, now

    def incoming(self) -> float | None:
        """Return the messages a second that clients publish and bridges read.

        What screens and commands ask of the gateway is none of them.
        """
        received = self.rates.get(figures.RECEIVED)
        readings = self.rates.get(figures.BRIDGE_READINGS) or 0.0
        return None if received is None else max(0.0, received - self._questions()) + readings

    def outgoing(self) -> float | None:
        """Return the messages a second that clients are sent, figures and answers left out."""
        sent, reported = self.rates.get(figures.SENT), self.rates.get(figures.SYS_SENT)
        if sent is None or reported is None:
            return None
        own = self.rates.get(OWN) or 0.0
        return max(0.0, sent - reported - self._questions() - own)

    def _questions(self) -> float:
        return sum(self.rates.get(each) or 0.0 for each in QUESTIONS)

    def _apply_uptime(self, payload: bytes, now: float, *, retained: bool) -> None:
        self.uptime = as_number(payload.removesuffix(b" seconds"))
        if self.uptime is None or retained:
            return
        self._note_acknowledged(now)
        # The uptime is the last figure of a round. A counter of questions is not there before the
        # first one is answered: until then it is 0.
        counts = dict.fromkeys(QUESTIONS, 0.0) | self.figures.numbers() | {OWN: self._own}
        if self._settled:
            self.rates.add_round(self.uptime, now, counts)
        self._settled = True

    def _apply_recent(self, payload: bytes, *, retained: bool) -> None:
        """Take the lines from before the connection; later ones come by themselves."""
        if not retained:
            return
        last = max((line.time for line in self.log if line.logger != SELF), default=0.0)
        for line in map(_recent_line, as_objects(payload)):
            if line.time > last:
                self._add_line(line)

    def _add_line(self, line: LogLine) -> None:
        """Add a line where its time belongs; nearly always that is at the end."""
        if not self.log or line.time >= self.log[-1].time:
            self.log.append(line)
            return
        lines = sorted([*self.log, line], key=lambda each: each.time)
        self.log.clear()
        self.log.extend(lines)

    def _apply_alarm(self, name: str, payload: bytes) -> None:
        if not payload:
            self.alarms.pop(name, None)
        elif name not in self.alarms and len(self.alarms) >= MAX_ALARMS:
            self.not_stored += 1
        else:
            alarm = as_object(payload) or {"text": as_text(payload, MAX_TEXT)}
            self.alarms[name] = Alarm(text_of(alarm, "text", MAX_TEXT), seconds_of(alarm, "raised"))


def _uplink_of(row: Document) -> Uplink:
    name, state, error, destination = (
        text_of(row, each, MAX_TEXT) for each in ("name", "state", "error", "destination")
    )
    waiting, attempt = number(row.get("waiting")), number(row.get("next_attempt_seconds"))
    return Uplink(
        *(name, state, error, destination),
        None if waiting is None else int(waiting),
        None if attempt is None else int(attempt),
    )


def _recent_line(line: Mapping[str, object]) -> LogLine:
    return _log_line(line, 0.0)


def _log_line(line: Mapping[str, object], now: float) -> LogLine:
    return LogLine(
        seconds_of(line, "time") or now,
        text_of(line, "level", MAX_NAME).lower(),
        text_of(line, "logger", MAX_NAME) or "gateway",
        text_of(line, "message", MAX_TEXT),
    )


WINDOW = 10.0
"""seconds that a rate is taken over, or the distance of two rounds if that is longer"""
MAX_ROUNDS = 128
"""rounds kept: as many as come in WINDOW at the shortest interval, 0.1 s"""
CLOCKS_APART = 1.5
"""seconds by which our clock may differ from the gateway's whole seconds before theirs counts"""
STALE_ROUNDS = 2.5
"""rounds that may be missing before a figure is stale"""
FIRST_PATIENCE = 15.0
"""seconds without a round before figures are stale while their interval is not known"""
LEAST_PATIENCE = 2.5
"""seconds before figures are stale at all"""


@dataclass(frozen=True, slots=True)
class Round:
    """One refresh of `$SYS`: the uptime in it, when it reached us, and the counters then."""

    uptime: float
    at: float
    counts: Mapping[str, float]


class Rates:
    """The counters' differences over the last ten seconds of rounds, for each second."""

    def __init__(self) -> None:
        self._rounds: deque[Round] = deque(maxlen=MAX_ROUNDS)
        self._rates: dict[str, float] = {}

    def get(self, name: str) -> float | None:
        """Return the rate of a counter, or None until two rounds with a value of it are known."""
        found = self._rates.get(name)
        return None if found is None else max(0.0, found)

    def change(self, name: str) -> float | None:
        """Return by how much a gauge rises a second, or falls."""
        return self._rates.get(name)

    def add_round(self, uptime: float, now: float, counts: Mapping[str, float]) -> None:
        """Take what the counters are as the uptime comes, which was not retained."""
        if self._rounds and uptime < self._rounds[-1].uptime:
            self._rounds.clear()  # the gateway restarted
        arriving = Round(uptime, now, counts)
        while len(self._rounds) > 1 and _between(self._rounds[1], arriving) >= WINDOW:
            self._rounds.popleft()
        self._rounds.append(arriving)
        self._rates = {}
        for name, count in counts.items():
            first = next((each for each in self._rounds if name in each.counts), arriving)
            elapsed = _between(first, arriving)
            if elapsed > 0:
                self._rates[name] = (count - first.counts[name]) / elapsed

    def interval(self) -> float | None:
        """Return the usual seconds between two rounds; None before the second."""
        if len(self._rounds) < 2:
            return None
        return _between(self._rounds[0], self._rounds[-1]) / (len(self._rounds) - 1)

    def stale(self, now: float, since: float) -> float | None:
        """Return for how long figures are missing, if for more than 2.5 rounds.

        `since` is when we began to hear.
        """
        last = self._rounds[-1].at if self._rounds else since
        interval = self.interval()
        limit = FIRST_PATIENCE if interval is None else STALE_ROUNDS * interval
        return now - last if now - last > max(LEAST_PATIENCE, limit) else None

    def forget(self) -> None:
        """Forget all rounds, as after a reconnection: earlier counts are of another connection."""
        self._rounds.clear()
        self._rates = {}


def _between(first: Round, last: Round) -> float:
    """Return the seconds between two rounds.

    The gateway's own clock has only whole seconds; it counts where a slow network moved ours.
    """
    ours, theirs = last.at - first.at, last.uptime - first.uptime
    return ours if abs(ours - theirs) <= CLOCKS_APART else theirs
