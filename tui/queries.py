"""Queries of the screens (docs/operate/query.md): when each is sent, and its answer."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tui.text import printable

PATIENCE = 5.0
"""seconds after which a query counts as unanswered"""
SILENCE = f"no answer within {PATIENCE:.0f} s"
AGAIN = 10.0
"""seconds after which a query that was refused is asked again: rights and settings change"""
MAX_OPEN = 8
"""queries on their way at a time; the gateway lets 32 wait"""
MAX_ANSWERS = 64
"""queries whose last answers are kept; the one asked for longest ago goes"""
LARGEST = 256 * 1024
"""bytes of an answer that is read"""
LARGEST_NUMBER = 1e15
"""above it is no number that a gateway means: milliseconds since 1970 are below for 30,000 years"""
MOST_REASON = 300
"""characters of a refusal"""

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Query:
    """A query, its request, and the seconds between two answers; 0 to ask once."""

    what: str
    request: tuple[tuple[str, object], ...] = ()
    every: float = 2.0

    @property
    def key(self) -> str:
        """What distinguishes it from others."""
        return f"{self.what} {json.dumps(dict(self.request))}"


def query(what: str, every: float = 2.0, **request: object) -> Query:
    """Return a query with these keys; those that are None are left out."""
    given = tuple((key, value) for key, value in request.items() if value is not None)
    return Query(what, given, every)


STATUS = query("status", 2.0)
SILENT = query("topics", 5.0, state="silent", sort="silent_seconds", limit=20)
EVENTS = query("events", 5.0, limit=100)
"""what is asked whatever is in view: the verdict"""


@dataclass(slots=True)
class Answer:
    """What is known of a query: the last document, when it arrived, and why there is none."""

    document: Document = field(default_factory=dict)
    at: float | None = None
    error: str = ""
    sent_at: float | None = None
    """when it was asked, while it is open"""
    last_sent: float = 0.0

    def age(self, now: float) -> float | None:
        """Return the seconds since the answer arrived."""
        return None if self.at is None else max(0.0, now - self.at)

    def text(self, key: str, limit: int = 256) -> str:
        """Return a text of the document, printable."""
        value = self.document.get(key)
        return printable(value, limit) if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        """Return a number of the document."""
        return number(self.document.get(key))

    def rows(self, key: str = "rows") -> list[Document]:
        """Return the objects of a list in the document."""
        value = self.document.get(key)
        return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def number(value: object) -> float | None:
    """Return a value of a document if it is a number, and not absurdly large."""
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not abs(value) < LARGEST_NUMBER
    ):
        return None
    return float(value)


def text(value: object, limit: int = 256) -> str:
    """Return a value of a document as printable text; empty if there is none."""
    if value is None:
        return ""
    return printable(value if isinstance(value, str) else str(value), limit)


class Queries:
    """Asks what the screens in view want, each when it is due; a closed screen costs nothing."""

    def __init__(self, send: Callable[[str, str, bytes], object]) -> None:
        self._send = send
        self._answers: dict[str, Answer] = {}
        self.refused = ""
        """why the gateway does not let us ask; empty if it does"""

    def get(self, wanted: Query) -> Answer:
        """Return what is known of a query."""
        return self._answers.get(wanted.key) or Answer()

    def get_status(self) -> Answer:
        """Return what is known of the status."""
        return self.get(STATUS)

    def get_by_key(self, key: str) -> Answer:
        """Return what is known of the query with this key."""
        return self._answers.get(key) or Answer()

    def open_since(self, now: float) -> float:
        """Return for how many seconds the oldest open query has waited."""
        sent = [each.sent_at for each in self._answers.values() if each.sent_at is not None]
        return now - min(sent) if sent else 0.0

    def want(self, wanted: list[Query], now: float) -> None:
        """Send those that are due; call a few times a second with what is in view."""
        self._give_up(now)
        for each in wanted:
            if len([a for a in self._answers.values() if a.sent_at is not None]) >= MAX_OPEN:
                return
            answer = self._answers.get(each.key)
            if answer is None:
                answer = self._answers[each.key] = Answer()
                self._forget_old()
            if answer.sent_at is None and self._is_due(answer, each, now):
                self.ask(each, now)

    def ask(self, wanted: Query, now: float) -> None:
        """Send a query now."""
        answer = self._answers.pop(wanted.key, None) or Answer()
        self._answers[wanted.key] = answer  # at the end: those asked long ago go first
        answer.sent_at = answer.last_sent = now
        request = json.dumps(dict(wanted.request)).encode()  # ASCII: a text may be no UTF-8
        self._send(wanted.key, wanted.what, request)

    def answered(self, key: str, payload: bytes, now: float) -> None:
        """Take an answer."""
        answer = self._answers.get(key)
        if answer is None:
            return  # it was given up long ago
        answer.sent_at = None
        document = _parse(payload)
        error = document.get("error")
        if document and not error:
            answer.document, answer.at, answer.error = document, now, ""
            self.refused = ""
        else:
            answer.error = text(error, MOST_REASON) or "the answer is not one that we know"

    def acknowledged(self, key: str, refusal: str) -> None:
        """Take the PUBACK of a query: what it refuses has no other answer, or one that follows."""
        answer = self._answers.get(key)
        if answer is not None and refusal:
            answer.sent_at = None
            answer.error = answer.error or refusal
            if "authorized" in refusal.lower():
                self.refused = refusal

    def lost(self) -> None:
        """Take it that the connection ended: nothing open is answered any more."""
        for each in self._answers.values():
            each.sent_at = None
            each.last_sent = 0.0

    def _is_due(self, answer: Answer, wanted: Query, now: float) -> bool:
        if not answer.last_sent:
            return True
        pause = wanted.every
        if answer.error:
            pause = max(pause, 1.0 if answer.error == SILENCE else AGAIN)
        return bool(pause) and now - answer.last_sent >= pause

    def _give_up(self, now: float) -> None:
        for each in self._answers.values():
            if each.sent_at is not None and now - each.sent_at > PATIENCE:
                each.sent_at = None
                each.error = SILENCE

    def _forget_old(self) -> None:
        for key in list(self._answers)[:-1]:
            if len(self._answers) <= MAX_ANSWERS:
                return
            if self._answers[key].sent_at is None:
                del self._answers[key]


def _parse(payload: bytes) -> dict[str, object]:
    if len(payload) > LARGEST:
        return {}
    try:
        document = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
