"""The known topics, each with its last message, and the tree that they make."""

import base64
import binascii
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tui.payload import MOST_PARSED, seconds_of, text_of
from tui.queries import Document, number, text
from tui.text import printable, size

MOST_TEXT = 64
"""characters of a value that is not a number"""
MOST_UNIT = 12
"""characters of a unit"""
LARGEST_DRAWN = 1e300
"""a number; the difference of two larger ones may not be finite"""
HEAD_SHOWN = 8
"""bytes of a binary payload written as hexadecimal digits"""


@dataclass(frozen=True, slots=True)
class Reading:
    """A sensor's value as text, with its number, unit and time where the payload gives them."""

    text: str
    number: float | None = None
    unit: str = ""
    time: float | None = None
    """seconds since 1970, by the sender's clock"""


def read(payload: bytes) -> Reading:
    """Return what to show of any payload; never raises.

    Understands `{"value": …, "unit": …, "time": ms}` (docs/understand/serial-protocol.md) and a
    bare JSON value; other text is shown as it is, and other bytes by their number and the first
    of them.
    """
    if not payload:
        return Reading("(empty)")
    if len(payload) > MOST_PARSED:
        return Reading(f"({size(len(payload))})")
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return Reading(f"({size(len(payload))}) {payload[:HEAD_SHOWN].hex(' ')}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return Reading(printable(text, MOST_TEXT))
    if isinstance(document, dict) and "value" in document:
        return _from_object(document)
    if isinstance(document, dict | list):
        return Reading(printable(text, MOST_TEXT))
    return Reading(*_value(document))


def _from_object(document: dict[str, object]) -> Reading:
    text, number = _value(document["value"])
    return Reading(text, number, text_of(document, "unit", MOST_UNIT), seconds_of(document, "time"))


def _value(value: object) -> tuple[str, float | None]:
    """Return a JSON value as text and, if it can be plotted, as a number."""
    if isinstance(value, str):
        return printable(value, MOST_TEXT), None
    if isinstance(value, bool):
        return ("true" if value else "false"), float(value)
    if isinstance(value, int | float):
        return _number(value)
    if value is None:
        return "null", None
    return ("{…}" if isinstance(value, dict) else "[…]"), None


def _number(value: float) -> tuple[str, float | None]:
    try:
        number = float(value)
    except OverflowError:
        return "(too large)", None
    drawn = number if abs(number) <= LARGEST_DRAWN else None  # NaN compares as false
    return f"{number:.7g}", drawn


MAX_TOPICS = 5_000
"""topics kept; the one without a message for longest is dropped and counted"""
MAX_TOPIC = 256
"""characters of a topic; a message on a longer one is counted and not kept"""
MAX_RECENT = 120
"""numbers kept of each topic for its course"""
MAX_PAYLOAD = 4_096
"""bytes kept of the last payload"""
MAX_BEFORE = 1_024
"""bytes kept of the payload before it"""


@dataclass(slots=True)
class Topic:
    """One topic: its last message, and what the gateway knows of it."""

    name: str
    payload: bytes = b""
    before: bytes = b""
    updated: float | None = None
    """seconds since 1970; None for a retained message that does not say when it was sent"""
    retained: bool = False
    size: int = 0
    interval: float | None = None
    rate: float | None = None
    silent: bool = False
    publisher: str = ""
    messages: int = 0
    known: float = 0.0
    """when its last message arrived"""
    recent: list[tuple[float, float]] = field(default_factory=list)
    """its last numbers, and when they arrived"""
    reading: Reading = field(default_factory=lambda: Reading(""))

    def age(self, now: float) -> float | None:
        """Return the seconds since the last message; None when nobody knows."""
        return None if self.updated is None else max(0.0, now - self.updated)

    def numbers(self) -> list[float]:
        """Return the last numbers, the oldest first."""
        return [value for _, value in self.recent]

    def hear(self, payload: bytes, now: float, *, retained: bool) -> None:
        """Take a message."""
        self._take(payload, len(payload))
        self.retained = retained
        self.updated = self.reading.time if retained else now
        self.messages += 1
        self.known = now
        if self.reading.number is not None and not retained:
            self._keep(now, self.reading.number)

    def tell(self, row: Document, ahead: float, now: float = 0.0) -> None:
        """Take what the gateway knows; `ahead` is by how much its clock is ahead of ours."""
        self.known = now
        sent = number(row.get("time"))
        at = None if sent is None else sent / 1_000 - ahead
        payload = _payload(row)
        if at is not None and at != self.updated:
            self._take(payload, int(number(row.get("size")) or len(payload)))
            if self.reading.number is not None and (not self.recent or at > self.recent[-1][0]):
                self._keep(at, self.reading.number)
        self.updated = at
        self.retained = row.get("retained") is True
        self.silent = row.get("silent") is True
        self.interval = number(row.get("interval_seconds"))
        self.rate = number(row.get("rate"))
        self.messages = int(number(row.get("count")) or 0)
        self.publisher = text(row.get("publisher"), 128) or "the gateway"

    def _keep(self, at: float, value: float) -> None:
        self.recent.append((at, value))
        if len(self.recent) > MAX_RECENT:
            del self.recent[0]

    def _take(self, payload: bytes, size: int) -> None:
        self.before, self.payload = self.payload[:MAX_BEFORE], payload[:MAX_PAYLOAD]
        self.size = size
        self.reading = read(payload)


def _payload(row: Document) -> bytes:
    if isinstance(found := row.get("payload"), str):
        return found.encode(errors="surrogatepass")
    try:
        return base64.b64decode(str(row.get("payload_base64") or ""))
    except (binascii.Error, ValueError):
        return b""


class Topics:
    """At most MAX_TOPICS topics by name, the one without a message for longest first."""

    def __init__(self, limit: int = MAX_TOPICS) -> None:
        self.limit = limit
        self.dropped = 0
        """topics forgotten because there were too many"""
        self.refused = 0
        """messages whose topic was too long"""
        self.revision = 0
        """rises whenever a topic is added or dropped"""
        self._by_name: OrderedDict[str, Topic] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def get(self, name: str) -> Topic | None:
        """Return what is known of a topic, or None."""
        return self._by_name.get(name)

    def hear(self, name: str, payload: bytes, now: float, *, retained: bool = False) -> None:
        """Take a message; `now` is in seconds since 1970. Never raises."""
        topic = self._of(name)
        if topic is None:
            return
        if not payload and retained:
            self.forget(name)
        else:
            topic.hear(payload, now, retained=retained)

    def tell(self, rows: Iterable[Document], ahead: float, now: float = 0.0) -> None:
        """Take rows of the gateway's answer to `topics`."""
        for row in rows:
            name = row.get("topic")
            topic = self._of(name) if isinstance(name, str) else None
            if topic is not None:
                topic.tell(row, ahead, now)

    def silent(self, rows: Sequence[Document], now: float, *, complete: bool) -> None:
        """Take it that these topics have been silent for longest of all, or are all silent ones."""
        names = {each for row in rows if isinstance(each := row.get("topic"), str)}
        shortest = min((number(row.get("silent_seconds")) or 0.0 for row in rows), default=0.0)
        for topic in self._by_name.values():
            if topic.name not in names and (complete or (topic.age(now) or 0.0) > shortest):
                topic.silent = False

    def forget(self, name: str) -> None:
        """Forget a topic."""
        if self._by_name.pop(name, None) is not None:
            self.revision += 1

    def clear(self) -> None:
        """Forget all."""
        self._by_name.clear()
        self.dropped = self.refused = 0
        self.revision += 1

    def _of(self, name: str) -> Topic | None:
        if len(name) > MAX_TOPIC:
            self.refused += 1
            return None
        topic = self._by_name.get(name)
        if topic is None:
            if len(self._by_name) >= self.limit:
                self._by_name.popitem(last=False)
                self.dropped += 1
            self.revision += 1
            topic = self._by_name[name] = Topic(name)
        else:
            self._by_name.move_to_end(name)
        return topic


@dataclass(slots=True)
class Branch:
    """A level of the tree: a topic, what is below it, or both."""

    path: str
    label: str
    depth: int
    topic: Topic | None = None
    below: list[Topic] = field(default_factory=list)
    children: "dict[str, Branch]" = field(default_factory=dict)

    def silent(self) -> int:
        """Return how many topics at and below it are silent."""
        return sum(each.silent for each in self.below)

    def rate(self) -> float | None:
        """Return the messages a second at and below it."""
        known = [each.rate for each in self.below if each.rate is not None]
        return sum(known) if known else None

    def updated(self) -> float | None:
        """Return when the last message at or below it arrived."""
        return max((each.updated for each in self.below if each.updated is not None), default=None)


class TopicTree:
    """The branches of topics; rebuilt only when topics come or go."""

    def __init__(self) -> None:
        self._made_of: object = None
        self._roots: dict[str, Branch] = {}

    def make(self, key: object, topics: Iterable[Topic]) -> Mapping[str, Branch]:
        """Make the tree of sorted topics, unless it was made with this key; return its top."""
        if self._made_of != key:
            self._made_of = key
            self._roots = {}
            for topic in topics:
                self._add(topic)
        return self._roots

    def visible(self, opened: set[str], wanted: "frozenset[str] | None") -> list[Branch]:
        """Return the branches in view, top down: those whose parents are open.

        With `wanted`, names of topics, only what leads to them is shown, and all of that.
        """
        found: list[Branch] = []

        def walk(level: Mapping[str, Branch]) -> None:
            for branch in level.values():
                if wanted is not None and not any(each.name in wanted for each in branch.below):
                    continue
                found.append(branch)
                if branch.children and (wanted is not None or branch.path in opened):
                    walk(branch.children)

        walk(self._roots)
        return found

    def _add(self, topic: Topic) -> None:
        level, path = self._roots, ""
        parts = topic.name.split("/")
        for depth, part in enumerate(parts):
            path = f"{path}/{part}" if depth else part
            branch = level.get(part)
            if branch is None:
                branch = level[part] = Branch(path, part, depth)
            branch.below.append(topic)
            if depth == len(parts) - 1:
                branch.topic = topic
            level = branch.children
